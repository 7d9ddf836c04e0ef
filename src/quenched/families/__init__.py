"""Gaussian posteriors w = mean + scale z: full, diagonal, blocks."""

from quenched.families.blocks import Blocks, BlocksGaussian
from quenched.families.diagonal import Diagonal, DiagonalGaussian
from quenched.families.full import Full, FullGaussian
from quenched.families.gaussian import LOG_TWO_PI, Family, Gaussian
from quenched.families.precision import NewtonSolver, factor_of_inverse, factors_of_inverse, inverse, positive_definite

families: dict[str, Family] = {"full": Full(), "diagonal": Diagonal()}

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
    "NewtonSolver",
    "factor_of_inverse",
    "factors_of_inverse",
    "families",
    "inverse",
    "positive_definite",
]
