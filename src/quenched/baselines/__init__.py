"""The methods the paper compares with."""

from quenched.baselines.laplace import laplace

__all__ = ["laplace"]
