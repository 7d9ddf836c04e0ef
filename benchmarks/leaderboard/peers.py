"""Other people's methods on a log density in JAX, one small adapter each, in their recommended settings.

Where a package recommends none, the defaults; where there are none, those of its own examples. Each is compiled once and run
again from there where its interface allows that.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.leaderboard.method import Answer, Method

_STEPS = 10_000  # of stochastic gradients, one draw each (NumPyro)
_STEP_SIZE = 0.01
_FULL_RANK_STEPS = 5_000  # of a hundred draws each (BlackJAX)
_CHAINS, _WARM_UP, _KEPT = 4, 1000, 1000


# NumPyro.


def _flat_model(problem: Any, log_density: Callable) -> Callable:
    import numpyro
    from numpyro import distributions

    flat = distributions.ImproperUniform(distributions.constraints.real, (), (problem.dim,))

    def model():
        numpyro.factor("log_density", log_density(numpyro.sample("u", flat)))

    return model


def _numpyro_svi(guide_name: str, read: Callable) -> Callable:
    def load() -> Callable:
        import jax
        from numpyro.infer import SVI, Trace_ELBO, autoguide, init_to_value
        from numpyro.optim import Adam

        def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
            model = _flat_model(problem, log_density)
            guide = getattr(autoguide, guide_name)(
                model, init_loc_fn=init_to_value(values={"u": jax.numpy.asarray(problem.start)})
            )
            svi = SVI(model, guide, Adam(_STEP_SIZE), Trace_ELBO())
            program = jax.jit(lambda key: svi.run(key, _STEPS, progress_bar=False).params)

            def run(seed: int) -> Answer:
                parameters = program(jax.random.key(seed))
                if guide.prototype_trace is None:  # set up inside the program
                    guide(**{})
                return read(guide.get_posterior(parameters))

            return run

        return prepare

    return load


def _from_scale(posterior: Any) -> Answer:
    return Answer(np.asarray(posterior.loc, np.float64), np.asarray(posterior.scale_tril, np.float64))


def _from_covariance(posterior: Any) -> Answer:
    return Answer.gaussian(posterior.loc, posterior.covariance_matrix)


def _numpyro_nuts() -> Callable:
    import jax
    from numpyro.infer import MCMC, NUTS

    def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
        kernel = NUTS(potential_fn=lambda u: -log_density(u))
        chains = MCMC(
            kernel,
            num_warmup=_WARM_UP,
            num_samples=_KEPT,
            num_chains=_CHAINS,
            chain_method="vectorized",
            progress_bar=False,
        )

        def run(seed: int) -> Answer:
            about = np.random.default_rng(seed).uniform(-0.5, 0.5, (_CHAINS, problem.dim))
            chains.run(jax.random.key(seed), init_params=jax.numpy.asarray(problem.start + about))
            diverging = int(np.sum(chains.get_extra_fields()["diverging"]))
            return Answer.of_samples(chains.get_samples(), f"{diverging} divergences")

        return run

    return prepare


# BlackJAX.


def _blackjax_full_rank() -> Callable:
    import blackjax
    import jax
    import optax

    def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
        algorithm = blackjax.fullrank_vi(log_density, optax.adam(_STEP_SIZE))
        first = algorithm.init(jax.numpy.asarray(problem.start))

        @jax.jit
        def program(key):
            step = lambda state, key: (algorithm.step(key, state)[0], None)
            return jax.lax.scan(step, first, jax.random.split(key, _FULL_RANK_STEPS))[0]

        def run(seed: int) -> Answer:
            state, dim = program(jax.random.key(seed)), problem.dim
            scale = np.diag(np.exp(np.asarray(state.chol_params[:dim])))
            scale[np.tril_indices(dim, -1)] = np.asarray(state.chol_params[dim:])
            return Answer(np.asarray(state.mu), scale)

        return run

    return prepare


def _blackjax_pathfinder() -> Callable:
    import jax
    from blackjax.vi import pathfinder

    def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
        program = jax.jit(lambda key, start: pathfinder.approximate(key, log_density, start)[0])

        def run(seed: int) -> Answer:
            state = program(jax.random.key(seed), jax.numpy.asarray(problem.start))
            alpha, beta, gamma = (np.asarray(part) for part in (state.alpha, state.beta, state.gamma))
            covariance = np.diag(alpha) + beta @ gamma @ beta.T
            mean = np.asarray(state.position) + covariance @ np.asarray(state.grad_position)
            return Answer.gaussian(mean, covariance)

        return run

    return prepare


# Gaussian score matching.


def _gsm() -> Callable:
    import jax
    from gsmvi.gsm import GSM

    def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
        values = jax.jit(jax.vmap(log_density))
        scores = jax.jit(jax.vmap(jax.grad(log_density)))
        matching = GSM(problem.dim, values, scores)
        start = jax.numpy.asarray(problem.start)

        def run(seed: int) -> Answer:
            return Answer.gaussian(*matching.fit(jax.random.PRNGKey(seed), mean=start, verbose=False))

        return run

    return prepare


_NUMPYRO = partial(Method, packages=("numpyro", "jax"))
_SETTINGS = f"Adam, step {_STEP_SIZE}, {_STEPS} steps of one draw"
METHODS = {
    "NumPyro full rank": _NUMPYRO(_numpyro_svi("AutoMultivariateNormal", _from_scale), settings=_SETTINGS),
    "NumPyro low rank": _NUMPYRO(
        _numpyro_svi("AutoLowRankMultivariateNormal", _from_covariance), settings=_SETTINGS + ", rank √dim"
    ),
    "NumPyro Laplace": _NUMPYRO(_numpyro_svi("AutoLaplaceApproximation", _from_scale), settings=_SETTINGS),
    "BlackJAX full rank": Method(
        _blackjax_full_rank,
        ("blackjax", "optax", "jax"),
        f"Adam, step {_STEP_SIZE}, {_FULL_RANK_STEPS} steps of 100 draws, sticking the landing",
    ),
    "BlackJAX Pathfinder": Method(_blackjax_pathfinder, ("blackjax", "jax"), "defaults, one path"),
    "GSM-VI": Method(_gsm, ("gsmvi", "jax"), "defaults: 5000 iterations of 2 draws"),
    "NUTS": _NUMPYRO(_numpyro_nuts, settings=f"NumPyro, {_CHAINS} chains, {_WARM_UP} + {_KEPT} steps, side by side"),
}
