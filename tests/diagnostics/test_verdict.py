"""Every sentence of a verdict: a problem that brings it about, and one that does not."""

import dataclasses
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm, t

import problems
import quenched as qd
from quenched import trust
from quenched.diagnostics import Diagnosis
from quenched.diagnostics.verdict import FINDINGS, findings
from quenched.families import Full
from quenched.posterior import Posterior
from quenched.trust import FAR_OFF, Departure, Further, Moved, weigh_ratios


def equicorrelated(w):
    return -0.5 * w @ jnp.linalg.inv(0.1 * jnp.eye(5) + 0.9) @ w


def double_well(w):
    return -jnp.sum((w**2 - 4.0) ** 2)


def log_gamma(w):
    return jnp.sum(2.0 * w - jnp.exp(w))


def two_bumps(w):
    return jnp.logaddexp(jnp.log(0.7) + norm.logpdf(w[0], -2.0), jnp.log(0.3) + norm.logpdf(w[0], 2.0))


def skewed_scale(parameters):
    return -jnp.log1p(parameters["tau"] ** 2) - 0.3 * parameters["tau"]


def student(w):
    return jnp.sum(t.logpdf(w, 5.0))


def nearly_normal(w):
    return jnp.sum(t.logpdf(w, 10.0))


def funnel(w):
    return norm.logpdf(w[0], 0.0, 3.0) + jnp.sum(norm.logpdf(w[1:], 0.0, jnp.exp(0.5 * w[0])))


def mixture(parameters, data):
    weights, away = jnp.array([0.5, 0.5]), data[:, None] - parameters["centre"]
    return jnp.sum(logsumexp(norm.logpdf(away), axis=1, b=weights)) + jnp.sum(
        norm.logpdf(parameters["centre"], 0.0, 5.0)
    )


def product(parameters):
    return 50.0 * norm.logpdf(parameters["a"] * parameters["b"], 4.0) + norm.logpdf(
        parameters["a"] / parameters["b"], 1.0
    )


TWO_HUMPS = np.concatenate([np.linspace(-4.0, -2.0, 30), np.linspace(2.0, 4.0, 30)])


def between_the_wells() -> qd.Fit:
    """A posterior put by hand where the bound is at a saddle."""
    fit = qd.fit(double_well, np.full(1, 1.0), progress=False)
    return dataclasses.replace(fit, posterior=Posterior(Full().isotropic(np.full(1, 0.2), np.full(1, 0.2), (1,))))


LOGISTIC = problems.logistic_problem(8, 60)

FITS = {
    "a Gaussian": lambda: qd.fit(equicorrelated, np.zeros(5), progress=False),
    "a Gaussian by halves": lambda: qd.fit(equicorrelated, np.zeros(5), family="diagonal", progress=False),
    "logistic": lambda: LOGISTIC.fit(),
    "logistic, one round": lambda: LOGISTIC.fit(method=qd.Alternating(max_rounds=1, steps=3), throw=False),
    "logistic, Laplace": lambda: qd.laplace(LOGISTIC.log_density, LOGISTIC.start, data=LOGISTIC.data, progress=False),
    "logistic, few draws": lambda: LOGISTIC.fit(draws=qd.iid(16, 8)),
    "between the wells": between_the_wells,
    "log gamma": lambda: qd.fit(log_gamma, np.zeros(3), progress=False),
    "two bumps": lambda: qd.fit(two_bumps, np.zeros(1), progress=False),
    "Student": lambda: qd.fit(student, np.zeros(1), progress=False),
    "nearly normal": lambda: qd.fit(nearly_normal, np.zeros(10), seed=2, progress=False),
    "mixture": lambda: qd.fit(mixture, {"centre": np.array([-1.0, 1.0])}, data=TWO_HUMPS, progress=False),
    "product": lambda: qd.fit(product, {"a": 2.0, "b": 2.0}, progress=False),
    "funnel": lambda: qd.fit(funnel, np.zeros(6), seed=2, progress=False),
    "as if nested": lambda: as_if_nested(diagnosed("funnel")),
}


def as_if_nested(diagnosis: Diagnosis) -> Diagnosis:
    fit = dataclasses.replace(diagnosis.fit, settings=diagnosis.fit.settings | {"outer_draws": 64})
    return dataclasses.replace(diagnosis, fit=fit, outer=weigh_ratios(np.zeros(500)))


@cache
def diagnosed(name: str) -> Diagnosis:
    fit = FITS[name]()
    return fit if isinstance(fit, Diagnosis) else fit.diagnose(progress=False)


@cache
def found(name: str) -> tuple[frozenset[str], str]:
    diagnosis = diagnosed(name)
    return frozenset(finding.name for finding in findings(diagnosis)), diagnosis.verdict


# finding: where it holds, where it does not, and words of the advice where it holds
EXPECTED = {
    "not a maximum": ("between the wells", "logistic", "starts=4"),
    "short of the top": ("logistic, one round", "logistic", "Resume with qd.fit"),
    "draws matter": ("logistic, few draws", "logistic", "Use more draws"),
    "draws suffice": ("logistic", "logistic, few draws", "more of them will not help"),
    "correlations left out": ("a Gaussian by halves", "a Gaussian", 'Use family="full".'),
    "skewed": ("log gamma", "a Gaussian by halves", "The target is skewed in"),
    "driven": ("funnel", "log gamma", "The spread of the others changes with parameters[0]"),
    "inner shapes": ("as if nested", "funnel", "which are not Gaussian given the outer ones"),
    "copies elsewhere": ("mixture", "logistic", "the 2 entries of centre are exchanged: this is one of 2 copies"),
}


def test_every_finding_is_expected_somewhere():
    assert set(EXPECTED) == {finding.name for finding in FINDINGS}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_problem_that_brings_it_about_and_one_that_does_not(name):
    holds, fails, words = EXPECTED[name]
    names, verdict = found(holds)
    assert name in names
    assert words in verdict
    assert name not in found(fails)[0]


def test_signs_that_change_together_are_noticed():
    diagnosis = FITS["product"]().diagnose(progress=False)
    assert [mirror.says for mirror in diagnosis.mirrors] == ["the sign of a and b is changed"]
    assert diagnosis.mirrors[0].nats == pytest.approx(np.log(2.0))


def test_linear_response_is_not_advised_where_it_takes_longer_than_the_fit():
    quick = FITS["a Gaussian by halves"]().diagnose(progress=False)
    assert quick.linear_response.n_gradients > quick.fit.n_evaluations
    assert "linear_response" not in quick.verdict
    slow = dataclasses.replace(quick, fit=dataclasses.replace(quick.fit, n_evaluations=10**6))
    assert "Use diagnosis.linear_response.sd, or" in slow.verdict


def test_laplace_is_told_to_raise_the_bound():
    names, verdict = found("logistic, Laplace")
    assert "short of the top" in names
    assert "qd.fit does" in verdict


def test_a_single_parameter_has_no_correlations_to_leave_out():
    fit = qd.fit(two_bumps, np.zeros(1), family="diagonal", progress=False)
    np.testing.assert_allclose(fit.diagnose(progress=False).missed_spread, 1.0)


def test_missed_spread_of_a_gaussian_is_exact():
    """Five coordinates that all correlate by 0.9: the diagonal keeps the conditional sds, blocks those within a block."""
    covariance = 0.1 * np.eye(5) + 0.9
    precision = np.linalg.inv(covariance)
    for family, blocks in (("diagonal", [[0], [1], [2], [3], [4]]), (qd.Blocks([2, 3]), [[0, 1], [2, 3, 4]])):
        kept = np.concatenate([np.diag(np.linalg.inv(precision[np.ix_(b, b)])) for b in blocks])
        fit = qd.fit(equicorrelated, np.zeros(5), family=family, progress=False)
        found = fit.diagnose(progress=False).missed_spread
        np.testing.assert_allclose(found, np.sqrt(np.diag(covariance) / kept), rtol=1e-4)


def test_draws_that_suffice_for_means_alone_are_said_to():
    few = qd.fit(skewed_scale, {"tau": 1.0}, transforms={"tau": qd.positive}, draws=8, seed=7, progress=False)
    assert "they suffice for means." in few.diagnose(progress=False).verdict


def test_sds_that_other_draws_would_move_are_not_to_be_used_as_they_are():
    diagnosis = diagnosed("a Gaussian")
    assert diagnosis.verdict.endswith("Use it as it is.")
    moving = dataclasses.replace(diagnosis, sd_error=0.12 * diagnosis.fit.sd)
    assert moving.answer.trust is trust.Trust.BOTH
    n = diagnosis.fit.n_draws
    assert moving.verdict.endswith(f"For closer sds use more draws (now {n}): draws={4 * n}.")


def test_an_sd_that_is_trusted_and_yet_depends_on_the_draws_is_said_to():
    fit = qd.fit(skewed_scale, {"tau": 1.0}, transforms={"tau": qd.positive}, family="warped", progress=False)
    unsure = trust.Drift(0.01, 0.001, "log tau", 0.14, 0.035, "log tau")
    facts = trust.Facts(fit, fit.weights, [], trust.Moved(0.0, 0.0), unsure)
    assert trust.answer(facts).trust is trust.Trust.BOTH
    assert str(trust.answer(facts)).endswith("; the sd of log tau is known to about 14%.")
    assert "known to" not in str(trust.answer(facts._replace(drift=unsure._replace(sd=0.09))))


def test_the_skewed_parameter_is_named():
    assert "skewed in parameters[" in found("log gamma")[1]


def test_a_leaf_of_which_few_entries_drive_the_others_is_not_nested_whole():
    apart = lambda p: norm.logpdf(p["scale"], 0.0, 3.0) + jnp.sum(norm.logpdf(p["x"], 0.0, jnp.exp(0.5 * p["scale"])))
    diagnosis = qd.fit(apart, {"scale": 0.0, "x": np.zeros(5)}, seed=2, progress=False).diagnose(progress=False)
    advice = lambda *driving: dataclasses.replace(diagnosis, driving=list(driving)).verdict
    assert "qd.nested(log_density, start, outer=['scale'])" in advice("x[3]", "scale")
    assert "Give x[3] a name apart from the others" in advice("x[3]")


def test_a_family_of_few_directions_that_is_far_off_is_not_told_to_take_more_draws():
    chain = lambda w: -0.5 * jnp.sum(w**2) - 0.5 * jnp.sum((w[1:] * jnp.exp(0.7 * w[:-1])) ** 2)
    diagnosis = qd.fit(chain, np.zeros(80), family=qd.LowRank(2), draws=160, progress=False).diagnose(progress=False)
    moved = {"mean_error": diagnosis.fit.sd, "skewness": np.zeros(80), "at_maximum": True, "optimisation_error": 0.0}
    diagnosis = dataclasses.replace(diagnosis, **moved)
    assert diagnosis.answer.rule == FAR_OFF
    assert "draws matter" in {finding.name for finding in findings(diagnosis)}
    assert diagnosis.verdict.endswith(
        "Try family=qd.LowRank(8), or write it as a sum of terms (qd.sum_of); if that does not reach it, reparametrise (a "
        "funnel: from centred to non-centred, or back), or use MCMC from fit.nuts_start()."
    )


def test_of_a_function_on_the_host_that_few_drive_the_advice_can_be_typed():
    def centred(x):
        scale, place = np.exp(0.5 * x[0]), x[1:]
        rest = -x[0] / 9.0 + 0.5 * np.sum((place / scale) ** 2) - 0.5 * len(place)
        return -0.5 * (x[0] / 3.0) ** 2 - 0.5 * np.sum((place / scale) ** 2) - 0.5 * len(place) * x[0], np.array(
            [rest, *(-place / scale**2)]
        )

    diagnosis = qd.fit(qd.from_value_and_grad(centred), np.zeros(4), progress=False).diagnose(progress=False)
    assert diagnosis.driving == ["parameters[0]"]
    assert diagnosis.verdict.endswith('Try family="warped"; if that does not reach it, reparametrise (a funnel: '
        "from centred to non-centred, or back), or use MCMC from fit.nuts_start().")  # fmt: skip


WIDER = Departure("parameters[0]", 0.0, 1.3, of_mean=False, of_sd=True)


@pytest.mark.parametrize(("spread", "departures", "resampled"), [(0.3, [], False), (0.02, [WIDER], True)])
def test_samples_are_not_resampled_to_where_none_comes(spread, departures, resampled):
    fit = dataclasses.replace(FITS["logistic"]().settled, outlook=Further(0.4, True, Moved(0.02, spread), departures))
    diagnosis = fit.diagnose(progress=False)
    assert diagnosis.answer.rule == ("sds differ" if resampled else "further out")
    assert ("fit.resample(n)" in diagnosis.verdict) == resampled


def test_a_fit_that_follows_its_draws_blames_no_parameter_of_the_target():
    fit = LOGISTIC.fit(draws=qd.iid(16, 8))
    assert fit.overfits
    diagnosis = dataclasses.replace(fit.diagnose(progress=False), driving=["parameters[0]"])
    assert "driven" not in {finding.name for finding in findings(diagnosis)}


@pytest.mark.parametrize("exact", [True, False])
def test_what_other_draws_would_change_is_put_in_figures_unless_it_is_rounding(exact):
    said = qd.fit(lambda w: -0.5 * w**2 - (0.0 if exact else 0.01 * w**4), 0.3, progress=False).verdict
    assert ("nothing changes but last digits" in said) is exact
    assert ("would raise the bound by about" in said) is not exact


@pytest.mark.parametrize("error", [0.3, 37.0])
def test_a_bound_that_is_hardly_known_agrees_with_nothing(error):
    fit = qd.fit(lambda w: -0.5 * w**2 - 0.01 * w**4, 0.3, progress=False).settled
    said = dataclasses.replace(fit, check_bound=fit.bound + 0.1, check_error=error).verdict
    assert ("agrees with its value on fresh draws" in said) is (error < 1.0)
    assert ("fresh draws cannot tell" in said) is (error > 1.0)
