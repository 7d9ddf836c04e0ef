"""Every family of this library: a new one has its line here."""

from quenched.families.blocks import BlocksGaussian
from quenched.families.diagonal import Diagonal, DiagonalGaussian
from quenched.families.full import Full, FullGaussian
from quenched.families.gaussian import Family
from quenched.families.low_rank import LowRankGaussian
from quenched.families.member import Member
from quenched.families.nested import NestedGaussian
from quenched.families.sparse import Sparse, SparseGaussian
from quenched.families.stretched import StretchedGaussian
from quenched.families.warped import Warped, WarpedGaussian

# What `family=...` makes of its name, if it goes by name alone; and its members, which files call by their classes.
_KNOWN: tuple[tuple[Family | None, *tuple[type[Member], ...]], ...] = (
    (Full(), FullGaussian),
    (Diagonal(), DiagonalGaussian),
    (None, BlocksGaussian),
    (Warped(), WarpedGaussian),
    (None, NestedGaussian),
    (Sparse(), SparseGaussian, StretchedGaussian),
    (None, LowRankGaussian),
)

families: dict[str, Family] = {family.name: family for family, *_ in _KNOWN if family is not None}
member_kinds: dict[str, type[Member]] = {kind.__name__: kind for _, *kinds in _KNOWN for kind in kinds}
