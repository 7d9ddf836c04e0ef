"""A fit handed over to MCMC: the same target on the real line, and samplers that take it as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from quenched.export import nuts_start
from quenched.objective import log_ratios


def hierarchical(p, y):
    effects = -0.5 * jnp.sum(((p["theta"] - p["mu"]) / p["tau"]) ** 2) - len(y) * jnp.log(p["tau"])
    return effects - 0.5 * jnp.sum((y - p["theta"]) ** 2) - 0.5 * p["mu"] ** 2 - p["tau"]


START = {"theta": np.zeros(3), "mu": 0.0, "tau": 1.0}


@pytest.fixture(scope="module")
def fit():
    data = np.array([1.0, -0.5, 2.0])
    return qd.fit(hierarchical, START, data=data, transforms={"tau": qd.positive}, draws=32, progress=False)


def curve(w, x):
    return w[0] + jnp.tanh(w[1] * x)


INPUTS = np.linspace(-1.0, 1.0, 12)
TARGETS = {
    "a log density": lambda: problems.logistic_problem(2).fit(),
    "a regression": lambda: qd.fit(qd.regression(curve, INPUTS, INPUTS**2), np.full(2, 0.5), progress=False),
    "a function on the host": lambda: qd.fit(
        qd.from_value_and_grad(lambda w: (-0.5 * float(np.sum(w["s"] ** 2)), {"s": -w["s"]})),
        {"s": np.ones(2)},
        transforms=qd.positive,
        draws=16,
        progress=False,
    ),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_log_density_is_that_of_the_fit(name):
    """The bound is the mean of log p − log q, with every constant."""
    fit = TARGETS[name]()
    start, z = nuts_start(fit), np.random.default_rng(0).standard_normal((5, fit.posterior.dim))
    points = fit.posterior.transform(z)
    with jax.enable_x64(True):
        values = np.array([float(start.log_density(point)) for point in points])
        expected = log_ratios(fit.origin.problem, fit.posterior.member, fit.origin.hyper, z)
    np.testing.assert_allclose(values - fit.posterior.log_density(points), expected, rtol=1e-9)


def test_a_sampler_in_32_bits_leaves_the_fit_alone(fit):
    start = nuts_start(fit)
    gradient = jax.jit(jax.grad(start.potential))(jnp.asarray(start.mean, jnp.float32))
    assert gradient.dtype == jnp.float32
    assert np.isfinite(gradient).all()
    assert fit.origin.problem.noise == np.finfo(np.float64).eps


def test_positions_go_back_to_natural_units(fit):
    start = nuts_start(fit)
    vectors = start.positions(6, seed=2).reshape(2, 3, -1)
    natural = start.to_natural(vectors)
    assert natural["theta"].shape == (2, 3, 3)
    np.testing.assert_allclose(natural["tau"].ravel(), fit.sample(6, seed=2)["tau"])
    assert start.initvals.keys() == START.keys()
    assert start.initvals["tau"] == pytest.approx(np.exp(start.mean[1]))
    with pytest.raises(ValueError, match=r"vectors has shape \(4,\); its last axis must have 5 entries"):
        start.to_natural(np.zeros(4))


def test_the_covariance_follows_the_order_of_others(fit):
    start = nuts_start(fit)  # mu, tau, theta
    order = [1, 2, 3, 4, 0]
    expected = fit.covariance[np.ix_(order, order)]
    np.testing.assert_array_equal(start.covariance_of(["tau", "theta", "mu"]), expected)
    with pytest.raises(ValueError, match="there is no parameter 'sigma'; there are 'mu', 'tau', 'theta'"):
        start.covariance_of(["sigma"])


def test_a_loaded_fit_must_be_attached(fit, tmp_path):
    with pytest.raises(ValueError, match="attach"):
        nuts_start(qd.load(fit.save(tmp_path / "fit.npz")))


def moments(start, vectors):
    rows = np.asarray(vectors).reshape(-1, len(start.mean))
    return rows.mean(axis=0), np.cov(rows.T)


def check(start, vectors):
    """Samples of a posterior that is nearly a Gaussian have the moments of the fit."""
    mean, covariance = moments(start, vectors)
    sd = np.sqrt(np.diag(start.inverse_mass_matrix))
    np.testing.assert_allclose((mean - start.mean) / sd, 0.0, atol=0.2)
    np.testing.assert_allclose(covariance / np.outer(sd, sd), start.inverse_mass_matrix / np.outer(sd, sd), atol=0.3)


@pytest.fixture(scope="module")
def start():
    return nuts_start(problems.gaussian(4, 100.0).fit())


def test_numpyro_takes_it(start):
    infer = pytest.importorskip("numpyro.infer")
    nuts = infer.NUTS(potential_fn=start.potential, inverse_mass_matrix=start.inverse_mass_matrix, dense_mass=True)
    mcmc = infer.MCMC(nuts, num_warmup=100, num_samples=1000, progress_bar=False)
    with jax.enable_x64(True):
        mcmc.run(jax.random.PRNGKey(0), init_params=jnp.asarray(start.mean))
        check(start, mcmc.get_samples())


def test_blackjax_takes_it(start):
    blackjax = pytest.importorskip("blackjax")
    with jax.enable_x64(True):
        nuts = blackjax.nuts(start.log_density, start.step_size, start.inverse_mass_matrix)
        step = lambda state, key: (nuts.step(key, state)[0],) * 2
        keys = jax.random.split(jax.random.PRNGKey(0), 1000)
        _, states = jax.lax.scan(step, nuts.init(jnp.asarray(start.mean)), keys)
        check(start, states.position)


def test_the_lines_to_type_are_printed(start):
    printed = str(start)
    for name in ("potential", "log_density", "step_size", "inverse_mass_matrix", "initvals", "covariance_of", "mean"):
        assert f"start.{name}" in printed
        assert hasattr(start, name)
