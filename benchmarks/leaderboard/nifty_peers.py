"""NIFTy's MGVI and geoVI: the nearest relatives, whose samples are mirrored and frozen within a step.

They are not given a log density but a likelihood with a metric over standard normal parameters. So they can be given those
problems that have such a form; each is written here, with the way from its parameters to the problem's real line.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.leaderboard.method import Answer, Method, NotApplicable
from jax.scipy.special import ndtr, ndtri

_ITERATIONS, _SAMPLES, _DELTA = 6, 4, 1e-4  # of NIFTy's own introduction
_JUDGED = {"linear": 500, "nonlinear": 100}  # pairs of samples, drawn at the end for the judge


class Form(NamedTuple):
    """A model over standard normal parameters."""

    likelihood: str  # "gaussian", "poisson" or "bernoulli"
    data: Any
    predictor: Callable[[Any], Any]  # mean, log rate or log odds
    to_real: Callable[[Any], Any]  # to the problem's own coordinates
    noise: Any = None


def _half_normal(x: Any, scale: float) -> Any:
    return scale * ndtri(0.5 + 0.5 * ndtr(x))


def _logistic(centres: int) -> Form:
    from benchmarks.leaderboard.problems import banana

    features, labels = banana(centres)
    return Form("bernoulli", labels, lambda x: features @ (2.0 * x), lambda x: 2.0 * x)


def _eight_schools() -> Form:
    import posteriordb

    data = posteriordb.load_one("eight_schools-eight_schools_noncentered").data
    tau = lambda x: 5.0 * jnp.tan(0.5 * np.pi * ndtr(x[1]))
    return Form(
        "gaussian",
        data["y"],
        lambda x: 5.0 * x[0] + tau(x) * x[2:],
        lambda x: jnp.concatenate([5.0 * x[:1], jnp.log(tau(x))[None], x[2:]]),
        data["sigma"],
    )


def _poisson_process() -> Form:
    from scipy.stats import gamma, norm

    import posteriordb

    data = posteriordb.load_one("gp_pois_regr-gp_pois_regr").data
    grid = np.linspace(-8.0, 8.0, 4001)
    log_rho = np.log(
        np.where(grid < 0, gamma.ppf(norm.cdf(grid), 25.0, scale=0.25), gamma.isf(norm.sf(grid), 25.0, scale=0.25))
    )

    def natural(x):
        return {"alpha": _half_normal(x[0], 2.0), "f_tilde": x[1:-1], "rho": jnp.exp(jnp.interp(x[-1], grid, log_rho))}

    def to_real(x):
        parts = natural(x)
        return jnp.concatenate([jnp.log(parts["alpha"])[None], parts["f_tilde"], jnp.log(parts["rho"])[None]])

    return Form("poisson", data["k"], lambda x: posteriordb.process_quantities(natural(x), data)["f"], to_real)


def _poisson_mixed() -> Form:
    from benchmarks.leaderboard.problems import counts

    data = counts()
    tau = lambda x: _half_normal(x[2], 1.0)
    return Form(
        "poisson",
        data["y"],
        lambda x: x[0] + x[1] * data["x"] + tau(x) * x[3:][data["group"]],
        lambda x: jnp.concatenate([x[:2], jnp.log(tau(x))[None], x[3:]]),
    )


def _neural_network() -> Form:
    from benchmarks.leaderboard.problems import NETWORK_NOISE, curve, predicted

    data = curve()
    natural = lambda x: {"bias": x[:3], "into": x[3:6], "out": x[6:]}
    return Form(
        "gaussian", data["y"], lambda x: predicted(natural(x), data["x"]), lambda x: x, NETWORK_NOISE * np.ones(25)
    )


FORMS = {
    "logistic 101": partial(_logistic, 100),
    "logistic 401": partial(_logistic, 400),
    "eight schools": _eight_schools,
    "GP-Poisson": _poisson_process,
    "Poisson mixed model": _poisson_mixed,
    "neural network": _neural_network,
}


def _likelihood(form: Form, predictor: Callable, dim: int) -> Any:
    import nifty.re as jft

    domain = jax.ShapeDtypeStruct((dim,), jnp.float64)
    if form.likelihood == "gaussian":
        inner, model = jft.Gaussian(jnp.asarray(form.data), noise_std_inv=lambda r: r / form.noise), predictor
    elif form.likelihood == "poisson":
        inner, model = jft.Poissonian(jnp.asarray(form.data, int)), lambda x: jnp.exp(predictor(x))
    else:
        inner, model = _bernoulli(jnp.asarray(form.data)), predictor
    return inner.amend(model, domain=domain)


def _bernoulli(labels: Any) -> Any:
    """NIFTy has none with its geometry: the root of its Fisher metric, and the map of which that is the derivative."""
    import nifty.re as jft

    root = lambda s: jnp.sqrt(jax.nn.sigmoid(s) * jax.nn.sigmoid(-s))

    class Bernoulli(jft.Likelihood):
        def __init__(self):
            shape = jax.ShapeDtypeStruct(labels.shape, labels.dtype)
            super().__init__(domain=shape, lsm_tangents_shape=shape)

        def energy(self, primals):
            return jnp.sum(jnp.logaddexp(0.0, primals) - labels * primals)

        def metric(self, primals, tangents):
            return root(primals) ** 2 * tangents

        def left_sqrt_metric(self, primals, tangents):
            return root(primals) * tangents

        def transformation(self, primals):
            return 2.0 * jnp.arctan(jnp.exp(0.5 * primals))

        def normalized_residual(self, primals):
            return (labels - jax.nn.sigmoid(primals)) / root(primals)

    return Bernoulli()


def _nifty(mode: str) -> Callable:
    def load() -> Callable:
        import nifty.re as jft

        jft.logger.setLevel("ERROR")

        def prepare(problem: Any, log_density: Callable) -> Callable[[int], Any]:
            if problem.name not in FORMS:
                raise NotApplicable("no likelihood with a metric over standard normal parameters was written for it")
            form, counter = FORMS[problem.name](), getattr(log_density, "counter", None)
            predictor = form.predictor
            if counter is not None:
                from benchmarks.leaderboard.counting import passing

                predictor = lambda x: form.predictor(passing(x, counter))
            likelihood = _likelihood(form, predictor, problem.dim)
            machine = jft.OptimizeVI(likelihood, n_total_iterations=_ITERATIONS, linear_minimizer_jit=False)
            options = {
                "draw_linear_kwargs": {"cg_kwargs": {"absdelta": _DELTA * problem.dim / 10.0, "maxiter": 100}},
                "nonlinearly_update_kwargs": {"minimize_kwargs": {"xtol": _DELTA, "maxiter": 5}},
            }

            def run(seed: int) -> Any:
                key = jax.random.PRNGKey(seed)
                state = machine.init_state(
                    key,
                    n_samples=_SAMPLES,
                    sample_mode=f"{mode}_resample",
                    kl_kwargs={"minimize_kwargs": {"xtol": _DELTA, "maxiter": 35}},
                    **options,
                )
                samples = jft.Samples(pos=jnp.zeros(problem.dim), samples=None, keys=None)
                for _ in range(_ITERATIONS):
                    samples, state = machine.update(samples, state)
                jax.block_until_ready(samples.pos)
                return partial(judged, samples, jax.random.fold_in(key, 1))

            def judged(samples: Any, key: Any) -> Answer:
                drawn, _ = machine.draw_samples(
                    samples,
                    key=key,
                    sample_mode=f"{mode}_resample",
                    n_samples=_JUDGED[mode],
                    point_estimates=(),
                    **options,
                )
                return Answer.of_samples(jax.vmap(form.to_real)(drawn.samples))

            return run

        return prepare

    return load


_NIFTY = partial(Method, packages=("nifty", "jax"))
_SETTINGS = f"{_ITERATIONS} iterations, {_SAMPLES} pairs of samples, as in its introduction"
METHODS = {
    "NIFTy MGVI": _NIFTY(_nifty("linear"), settings=_SETTINGS),
    "NIFTy geoVI": _NIFTY(_nifty("nonlinear"), settings=_SETTINGS),
}
