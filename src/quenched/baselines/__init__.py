"""Other methods that return the same `Fit`, to compare with."""

from quenched.baselines.expectation_propagation import expectation_propagation
from quenched.baselines.laplace import laplace
from quenched.baselines.nested_laplace import nested_laplace

__all__ = ["expectation_propagation", "laplace", "nested_laplace"]
