"""Models of other packages, each as one that `fit` takes alone: its own names, supports, dims and predictions are kept."""

from quenched.frontends.numpyro import from_numpyro
from quenched.frontends.pymc import from_pymc
from quenched.frontends.stan import from_stan, from_stan_file
from quenched.frontends.torch import from_torch

__all__ = ["from_numpyro", "from_pymc", "from_stan", "from_stan_file", "from_torch"]
