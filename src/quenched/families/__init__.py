"""Posteriors: Gaussians w = mean + scale z (full, diagonal, blocks), and warped ones."""

from quenched.families.blocks import Blocks, BlocksGaussian
from quenched.families.diagonal import Diagonal, DiagonalGaussian
from quenched.families.files import read_member, write_member
from quenched.families.full import Full, FullGaussian, from_scale
from quenched.families.gaussian import Family, Gaussian
from quenched.families.member import LOG_TWO_PI, Groups, Member, ask
from quenched.families.precision import cholesky_or_nan, factor_of_inverse, natural_units, positive_definite
from quenched.families.registry import families, member_kinds
from quenched.families.roles import Role, roles
from quenched.families.triangle import solve_lower
from quenched.families.warped import Warped, WarpedGaussian

__all__ = [
    "LOG_TWO_PI",
    "Blocks",
    "BlocksGaussian",
    "Diagonal",
    "DiagonalGaussian",
    "Family",
    "Full",
    "FullGaussian",
    "Gaussian",
    "Groups",
    "Member",
    "Role",
    "Warped",
    "WarpedGaussian",
    "ask",
    "cholesky_or_nan",
    "factor_of_inverse",
    "families",
    "from_scale",
    "member_kinds",
    "natural_units",
    "positive_definite",
    "read_member",
    "roles",
    "solve_lower",
    "write_member",
]
