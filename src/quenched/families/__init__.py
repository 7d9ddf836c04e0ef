"""Posteriors: Gaussians w = mean + scale z (full, diagonal, blocks), and warped ones."""

from quenched.families.blocks import Blocks, BlocksGaussian
from quenched.families.diagonal import Diagonal, DiagonalGaussian
from quenched.families.full import Full, FullGaussian
from quenched.families.gaussian import Family, Gaussian
from quenched.families.member import LOG_TWO_PI, Member, ask
from quenched.families.precision import NewtonSolver, factor_of_inverse, factors_of_inverse, inverse, positive_definite
from quenched.families.warped import Warped, WarpedGaussian

families: dict[str, Family] = {"full": Full(), "diagonal": Diagonal(), "warped": Warped()}

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
    "Member",
    "NewtonSolver",
    "Warped",
    "WarpedGaussian",
    "ask",
    "factor_of_inverse",
    "factors_of_inverse",
    "families",
    "inverse",
    "positive_definite",
]
