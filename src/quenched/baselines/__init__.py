"""Other methods that return the same `Fit`, to compare with."""

from quenched.baselines.laplace import laplace

__all__ = ["laplace"]
