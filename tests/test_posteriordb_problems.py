"""The posteriordb problems against SciPy, which shares no line with them but the files they read."""

import os

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import posteriordb

jax.config.update("jax_enable_x64", True)

pytestmark = pytest.mark.skipif(
    "QUENCHED_DATA" not in os.environ, reason="QUENCHED_DATA, the folder that holds posteriordb, is not set"
)


@pytest.fixture(params=posteriordb.NAMES)
def posterior(request):
    return posteriordb.load_one(request.param)


def stored(posterior):
    """The data as they lie in the file, untouched by ``prepare``."""
    name = posteriordb.MODELS[posterior.name].reference or posterior.name
    contents = posteriordb.read(posteriordb.read(f"{name}.reference.json")["data"])
    return {key: np.array(value) for key, value in contents.items()}


def random_point(posterior, seed=20240229):
    """A point in the support: reals near 0, positives near 1, intervals anywhere inside."""
    generator = np.random.default_rng(seed)

    def draw(leaf, value):
        match posterior.constraints.get(leaf):
            case None:
                return 0.5 * generator.standard_normal(value.shape)
            case "positive":
                return np.exp(0.5 * generator.standard_normal(value.shape))
            case ("interval", lower, upper):
                return generator.uniform(lower, upper, value.shape)

    return {leaf: np.asarray(draw(leaf, value)) for leaf, value in posterior.start.items()}


def scipy_autoregression(data, alpha, beta, sigma):
    y, order = data["y"], int(data["K"])
    total = stats.norm(0, 10).logpdf(alpha) + stats.norm(0, 10).logpdf(beta).sum()
    total += stats.cauchy(0, 2.5).logpdf(sigma)
    for time in range(order, int(data["T"])):
        centre = alpha + sum(beta[lag - 1] * y[time - lag] for lag in range(1, order + 1))
        total += stats.norm(centre, sigma).logpdf(y[time])
    return total


def scipy_garch(data, mu, alpha0, alpha1, fraction):
    beta1, y = fraction * (1 - alpha1), data["y"]
    total, deviation = np.log(1 - alpha1), data["sigma1"]
    for time, value in enumerate(y):
        if time > 0:
            deviation = np.sqrt(alpha0 + alpha1 * (y[time - 1] - mu) ** 2 + beta1 * deviation**2)
        total += stats.norm(mu, deviation).logpdf(value)
    return total


def scipy_lotka_volterra(data, theta, z_init, sigma):
    def velocity(time, populations):
        hare, lynx = populations
        return [(theta[0] - theta[1] * lynx) * hare, (-theta[2] + theta[3] * hare) * lynx]

    solution = solve_ivp(
        velocity, (0, data["ts"][-1]), z_init, method="DOP853", t_eval=data["ts"], rtol=1e-12, atol=1e-12
    )
    total = stats.norm(1, 0.5).logpdf(theta[[0, 2]]).sum() + stats.norm(0.05, 0.05).logpdf(theta[[1, 3]]).sum()
    total += stats.lognorm(1, scale=np.exp(-1)).logpdf(sigma).sum() + stats.lognorm(1, scale=10).logpdf(z_init).sum()
    total += stats.lognorm(sigma, scale=z_init).logpdf(data["y_init"]).sum()
    return total + stats.lognorm(sigma, scale=solution.y.T).logpdf(data["y"]).sum()


def scipy_schools(data, theta, mu, tau):
    total = stats.norm(0, 5).logpdf(mu) + stats.cauchy(0, 5).logpdf(tau)
    return total + stats.norm(theta, data["sigma"]).logpdf(data["y"]).sum()


def scipy_schools_centred(data, theta, mu, tau):
    return scipy_schools(data, theta, mu, tau) + stats.norm(mu, tau).logpdf(theta).sum()


def scipy_schools_noncentred(data, theta_trans, mu, tau):
    return scipy_schools(data, mu + tau * theta_trans, mu, tau) + stats.norm.logpdf(theta_trans).sum()


def scipy_poisson_process(data, rho, alpha, f_tilde):
    x, count = data["x"], len(data["x"])
    kernel = [[alpha**2 * np.exp(-((a - b) ** 2) / (2 * rho**2)) for a in x] for b in x]
    f = np.linalg.cholesky(np.array(kernel) + 1e-10 * np.eye(count)) @ f_tilde
    total = stats.gamma(25, scale=1 / 4).logpdf(rho) + stats.norm(0, 2).logpdf(alpha)
    total += stats.multivariate_normal(np.zeros(count)).logpdf(f_tilde)
    return total + stats.poisson(np.exp(f)).logpmf(data["k"]).sum()


def scipy_diamonds(data, b, Intercept, sigma):
    covariates = data["X"][:, 1:] - data["X"][:, 1:].mean(axis=0)
    total = stats.norm.logpdf(b).sum() + stats.t(3, 8, 10).logpdf(Intercept) + stats.t(3, 0, 10).logpdf(sigma)
    return total + stats.norm(Intercept + covariates @ b, sigma).logpdf(data["Y"]).sum()


def scipy_linear_regression(data, beta, sigma):
    total = stats.norm(0, 10).logpdf(beta).sum() + stats.norm(0, 10).logpdf(sigma)
    return total + stats.norm(data["X"] @ beta, sigma).logpdf(data["y"]).sum()


def scipy_kidscore(data, beta, sigma):
    school, quotient = data["mom_hs"], data["mom_iq"]
    centre = beta[0] + beta[1] * school + beta[2] * quotient + beta[3] * school * quotient
    return stats.cauchy(0, 2.5).logpdf(sigma) + stats.norm(centre, sigma).logpdf(data["kid_score"]).sum()


def scipy_earnings(data, beta, sigma):
    height, male = data["height"], data["male"]
    centre = beta[0] + beta[1] * height + beta[2] * male + beta[3] * height * male
    return stats.norm(centre, sigma).logpdf(np.log(data["earn"])).sum()


def scipy_election(data, beta, sigma):
    age_effect = np.array([np.nan, 0.0, *beta[3:6]])[data["age_discrete"]]
    centre = beta[0] + beta[1] * data["real_ideo"] + beta[2] * data["race_adj"] + age_effect
    centre = centre + beta[6] * data["educ1"] + beta[7] * data["gender"] + beta[8] * data["income"]
    return stats.norm(centre, sigma).logpdf(data["partyid7"]).sum()


IN_SCIPY = {
    "arK-arK": scipy_autoregression,
    "garch-garch11": scipy_garch,
    "hudson_lynx_hare-lotka_volterra": scipy_lotka_volterra,
    "eight_schools-eight_schools_noncentered": scipy_schools_noncentred,
    "eight_schools-centered": scipy_schools_centred,
    "gp_pois_regr-gp_pois_regr": scipy_poisson_process,
    "diamonds-diamonds": scipy_diamonds,
    "sblrc-blr": scipy_linear_regression,
    "kidiq-kidscore_interaction": scipy_kidscore,
    "earnings-logearn_interaction": scipy_earnings,
    "nes1980-nes": scipy_election,
}


def test_log_density_equals_scipy(posterior):
    point = random_point(posterior)
    ours = jax.jit(posterior.log_density)(point, posterior.data)
    assert ours.shape == ()
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, IN_SCIPY[posterior.name](stored(posterior), **point), rtol=1e-7)


def test_start_is_the_origin_and_finite_with_its_gradient(posterior):
    for leaf, value in posterior.start.items():
        expected = {None: 0.0, "positive": 1.0}.get(posterior.constraints.get(leaf), 0.5)
        np.testing.assert_array_equal(value, np.full(value.shape, expected))
    value, gradient = jax.value_and_grad(posterior.log_density)(posterior.start, posterior.data)
    assert np.isfinite(value)
    assert all(np.isfinite(slope).all() for slope in jax.tree.leaves(gradient))


def test_vectorised_density_equals_the_single_one(posterior):
    points = [posterior.start, random_point(posterior)]
    batch = jax.tree.map(lambda *values: np.stack(values), *points)
    together = jax.jit(jax.vmap(posterior.log_density, in_axes=(0, None)))(batch, posterior.data)
    apart = [posterior.log_density(point, posterior.data) for point in points]
    np.testing.assert_allclose(together, apart, rtol=1e-10)


def test_reported_quantities_carry_the_reference_names(posterior):
    quantities = posterior.quantities(posterior.start, posterior.data)
    names = [
        name if np.ndim(value) == 0 else f"{name}[{index + 1}]"
        for name, value in quantities.items()
        for index in range(np.size(value))
    ]
    assert tuple(names) == posterior.names
    # jit sorts the keys of a dict, which must not change the order of the vector.
    reported = jax.jit(posterior.reported)(random_point(posterior), posterior.data)
    expected = posterior.quantities(random_point(posterior), posterior.data).values()
    np.testing.assert_allclose(reported, np.concatenate([np.ravel(value) for value in expected]), rtol=1e-8)
    assert posterior.reference_mean.shape == posterior.reference_sd.shape == reported.shape


def test_reference_covariance_agrees_with_its_deviations(posterior):
    np.testing.assert_allclose(np.sqrt(np.diag(posterior.reference_covariance)), posterior.reference_sd, rtol=1e-6)


def test_both_eight_schools_are_one_posterior():
    """They differ by the Jacobian of theta = mu + tau theta_trans, which is 8 log tau."""
    centred, noncentred = map(
        posteriordb.load_one, ("eight_schools-centered", "eight_schools-eight_schools_noncentered")
    )
    point = random_point(noncentred)
    quantities = noncentred.quantities(point, noncentred.data)
    difference = noncentred.log_density(point, noncentred.data) - centred.log_density(quantities, centred.data)
    np.testing.assert_allclose(difference, 8 * np.log(point["tau"]), rtol=1e-10)


def test_trajectory_has_converged_where_the_posterior_lies():
    posterior = posteriordb.load_one("hudson_lynx_hare-lotka_volterra")
    theta, z_init, sigma = np.split(posterior.reference_mean, [4, 6])
    point = {"theta": theta, "z_init": z_init, "sigma": sigma}
    ours = posterior.log_density(point, posterior.data)
    np.testing.assert_allclose(ours, scipy_lotka_volterra(stored(posterior), **point), atol=1e-5)


def test_wild_populations_stay_finite():
    posterior = posteriordb.load_one("hudson_lynx_hare-lotka_volterra")
    generator = np.random.default_rng(1)
    wild = {leaf: np.exp(3 * generator.standard_normal((100, *value.shape))) for leaf, value in posterior.start.items()}
    density = jax.jit(jax.vmap(jax.value_and_grad(posterior.log_density), in_axes=(0, None)))
    assert all(np.isfinite(part).all() for part in jax.tree.leaves(density(wild, posterior.data)))
