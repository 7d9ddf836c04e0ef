"""Posteriors: Gaussians w = mean + scale z (full, diagonal, blocks), and warped ones."""

from quenched.families.blocks import Blocks, BlocksGaussian
from quenched.families.diagonal import Diagonal, DiagonalGaussian
from quenched.families.files import read_member, write_member
from quenched.families.full import Full, FullGaussian, from_scale
from quenched.families.gaussian import Family, Gaussian
from quenched.families.member import LOG_TWO_PI, Groups, Member, ask
from quenched.families.precision import NewtonSolver, cholesky_or_nan, factor_of_inverse, inverse, positive_definite
from quenched.families.registry import families, member_kinds
from quenched.families.roles import Role, roles
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
    "NewtonSolver",
    "Role",
    "Warped",
    "WarpedGaussian",
    "ask",
    "cholesky_or_nan",
    "factor_of_inverse",
    "families",
    "from_scale",
    "inverse",
    "member_kinds",
    "positive_definite",
    "read_member",
    "roles",
    "write_member",
]
