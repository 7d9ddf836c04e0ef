"""Every family that has a name, and every kind of member: a new one has its line here."""

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

families: dict[str, Family] = {  # as in `family=...`
    "full": Full(),
    "diagonal": Diagonal(),
    "warped": Warped(),
    "sparse": Sparse(),
}

member_kinds: dict[str, type[Member]] = {  # as files call them
    "FullGaussian": FullGaussian,
    "DiagonalGaussian": DiagonalGaussian,
    "BlocksGaussian": BlocksGaussian,
    "WarpedGaussian": WarpedGaussian,
    "NestedGaussian": NestedGaussian,
    "SparseGaussian": SparseGaussian,
    "StretchedGaussian": StretchedGaussian,
    "LowRankGaussian": LowRankGaussian,
}
