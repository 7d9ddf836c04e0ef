"""Minimise a smooth function, one evaluation at a time."""

from quenched.optimise.lbfgs import LBFGS
from quenched.optimise.minimiser import Minimiser, State
from quenched.optimise.scaled_conjugate_gradients import ScaledConjugateGradients

__all__ = ["LBFGS", "Minimiser", "ScaledConjugateGradients", "State"]
