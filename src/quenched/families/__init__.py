"""Posteriors: Gaussians w = mean + scale z (full, diagonal, blocks), and warped ones."""

from quenched.families.blocks import Blocks, BlocksGaussian
from quenched.families.diagonal import Diagonal
from quenched.families.elimination import Factor, factor
from quenched.families.elimination_order import make_pattern
from quenched.families.files import read_member, write_member
from quenched.families.full import Full, FullGaussian, from_scale
from quenched.families.gaussian import Bound, Family
from quenched.families.low_rank import LowRank, LowRankGaussian
from quenched.families.member import LOG_TWO_PI, Member, ask
from quenched.families.monomials import count_monomials, monomials
from quenched.families.nearest_low_rank import leading
from quenched.families.nested import Layout, NestedGaussian, full_layout
from quenched.families.nested_at_draws import AtDraws, best_degree, nested_member
from quenched.families.positive_definite import cholesky_or_nan, factor_of_inverse, natural_units, positive_definite
from quenched.families.registry import families, member_kinds
from quenched.families.roles import Role, roles
from quenched.families.sparse import Sparse, SparseGaussian, keep_factor, kept_factor
from quenched.families.sparsity import Pattern
from quenched.families.stretch import power_of, stretch_around
from quenched.families.stretched import StretchedGaussian
from quenched.families.tails import lengthen, log_slopes, no_tails, turns
from quenched.families.triangle import pack, solve_lower
from quenched.families.warped import Warped

__all__ = [
    "LOG_TWO_PI",
    "AtDraws",
    "Blocks",
    "BlocksGaussian",
    "Bound",
    "Diagonal",
    "Factor",
    "Family",
    "Full",
    "FullGaussian",
    "Layout",
    "LowRank",
    "LowRankGaussian",
    "Member",
    "NestedGaussian",
    "Pattern",
    "Role",
    "Sparse",
    "SparseGaussian",
    "StretchedGaussian",
    "Warped",
    "ask",
    "best_degree",
    "cholesky_or_nan",
    "count_monomials",
    "factor",
    "factor_of_inverse",
    "families",
    "from_scale",
    "full_layout",
    "keep_factor",
    "kept_factor",
    "leading",
    "lengthen",
    "log_slopes",
    "make_pattern",
    "member_kinds",
    "monomials",
    "natural_units",
    "nested_member",
    "no_tails",
    "pack",
    "positive_definite",
    "power_of",
    "read_member",
    "roles",
    "solve_lower",
    "stretch_around",
    "turns",
    "write_member",
]
