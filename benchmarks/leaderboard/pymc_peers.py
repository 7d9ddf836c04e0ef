"""PyMC and pymc-extras on the same log density, which they call through an operation of PyTensor.

A model written in PyTensor would be compiled as a whole; through the operation every evaluation takes some hundred
microseconds more than it needs. Gradients and accuracy are theirs; of their times, read the order of magnitude.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.leaderboard.method import Answer, Method

_DRAWS = 4000  # from a fitted posterior, where there is no other way to know it


def _model(problem: Any, log_density: Callable) -> Any:
    import pymc as pm
    from pytensor import wrap_jax

    wrapped = wrap_jax(log_density)
    with pm.Model() as model:
        u = pm.Flat("u", shape=problem.dim, initval=problem.start)
        pm.Potential("log_density", wrapped(u))
    return model


def _full_rank_advi() -> Callable:
    import pymc as pm

    def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
        model = _model(problem, log_density)

        def run(seed: int) -> Answer:
            with model:
                fitted = pm.fit(method="fullrank_advi", random_seed=seed, progressbar=False)
            return Answer.gaussian(fitted.mean.eval(), fitted.cov.eval())

        return run

    return prepare


def _extras(fit: Callable, read: Callable) -> Callable:
    def load() -> Callable:
        from pymc_extras import inference

        def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
            model = _model(problem, log_density)

            def run(seed: int) -> Answer:
                with model:
                    return read(fit(inference, seed))

            return run

        return prepare

    return load


def _samples(data: Any) -> Answer:
    values = np.asarray(data.posterior["u"])
    return Answer.of_samples(values.reshape(-1, values.shape[-1]))


def _dadvi(extras: Any, seed: int) -> Any:
    return extras.fit_dadvi(random_seed=seed, progressbar=False, n_draws=_DRAWS)


def _laplace(extras: Any, seed: int) -> Any:
    return extras.fit_laplace(random_seed=seed, progressbar=False, draws=_DRAWS, freeze_model=False)


def _pathfinder(extras: Any, seed: int) -> Any:
    return extras.fit_pathfinder(random_seed=seed, progressbar=False, num_draws=_DRAWS, concurrent=None)


_EXTRAS = partial(Method, packages=("pymc-extras", "pymc", "pytensor", "jax"))
METHODS = {
    "PyMC full-rank ADVI": Method(_full_rank_advi, ("pymc", "pytensor", "jax"), "defaults: 10000 steps of one draw"),
    "pymc-extras DADVI": _EXTRAS(_extras(_dadvi, _samples), settings="defaults: 30 fixed draws, mean field, trust-ncg"),
    "pymc-extras Laplace": _EXTRAS(_extras(_laplace, _samples), settings="defaults: BFGS"),
    "pymc-extras Pathfinder": _EXTRAS(_extras(_pathfinder, _samples), settings="defaults: 4 paths, PSIS; one process"),
}
