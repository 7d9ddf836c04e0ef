"""Nested frozen draws: a posterior of a few outer parameters, with the best inner Gaussian solved for each of their draws."""

from quenched.nesting.whole import nested

__all__ = ["nested"]
