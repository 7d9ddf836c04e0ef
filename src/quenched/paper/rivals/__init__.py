"""The methods that the paper compares with and that no estimator of the library needs."""

from quenched.paper.rivals.jaakkola_jordan import jaakkola_jordan

__all__ = ["jaakkola_jordan"]
