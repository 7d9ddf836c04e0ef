"""Models of other packages, each as one that `fit` takes alone: its own names, supports, dims and predictions are kept."""

from quenched.frontends.numpyro import from_numpyro
from quenched.frontends.pymc import from_pymc

__all__ = ["from_numpyro", "from_pymc"]
