"""The ten posteriors of posteriordb, and eight schools in its centred form: the bars of the project.

Every posterior is fitted once, with every option at its default.
"""

import os
from functools import cache

import jax
import numpy as np
import pytest

import posteriordb
import quenched as qd
from quenched.posterior import to_natural
from quenched.trust import Trust

pytestmark = pytest.mark.skipif(
    "QUENCHED_DATA" not in os.environ, reason="QUENCHED_DATA, the folder that holds posteriordb, is not set"
)

CENTRED = "eight_schools-centered"
TEN = [name for name in posteriordb.NAMES if name != CENTRED]
LINEAR = [
    "arK-arK",
    "diamonds-diamonds",
    "sblrc-blr",
    "kidiq-kidscore_interaction",
    "earnings-logearn_interaction",
    "nes1980-nes",
]


def transform(constraint):
    return qd.positive if constraint == "positive" else qd.interval(*constraint[1:])


@cache
def fitted(name):
    posterior = posteriordb.load_one(name)
    transforms = {leaf: transform(constraint) for leaf, constraint in posterior.constraints.items()}
    return qd.fit(posterior.log_density, posterior.start, data=posterior.data, transforms=transforms, progress=False)


@cache
def mean_errors(name):
    """Distance of every reported mean from the reference, in reference standard deviations."""
    fit, posterior = fitted(name), posteriordb.load_one(name)
    draws = qd.matched(4096, fit.posterior.dim, seed=1).points
    natural = to_natural(fit.space, fit.posterior.transform(draws))
    reported = jax.vmap(lambda parameters: posterior.reported(parameters, posterior.data))(natural)
    return np.abs(np.asarray(reported).mean(axis=0) - posterior.reference_mean) / posterior.reference_sd


@pytest.mark.parametrize("name", posteriordb.NAMES)
def test_every_posterior_is_fitted(name):
    fit = fitted(name)
    assert fit.converged
    assert not fit.overfits
    assert np.median(mean_errors(name)) < 0.1
    assert "The draws suffice" in fit.verdict


def test_nine_of_ten_means_are_within_three_hundredths():
    medians = {name: float(np.median(mean_errors(name))) for name in TEN}
    assert sum(error < 0.03 for error in medians.values()) >= 9, medians


def test_half_of_them_need_at_most_800_gradients():
    evaluations = {name: fitted(name).n_evaluations for name in TEN}
    assert np.median(list(evaluations.values())) <= 800, evaluations


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("eight_schools-eight_schools_noncentered", 2000),
        ("garch-garch11", 1500),
        ("gp_pois_regr-gp_pois_regr", 4500),
    ],
)
def test_skewed_posteriors_need_no_more_gradients_than_they_did(name, most):
    assert fitted(name).n_evaluations <= most


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_need_at_most_25_evaluations_of_the_bound(name):
    assert fitted(name).n_objective_evaluations <= 25


def test_centred_eight_schools_does_not_run_away():
    """Its density grows without bound as tau falls; the bound does not."""
    fit = fitted(CENTRED)
    posterior = posteriordb.load_one(CENTRED)
    tau = posterior.names.index("tau")
    assert 0.5 < fit.mean["tau"] / posterior.reference_mean[tau] < 1.5
    assert fit.sd["tau"] > 0.2 * posterior.reference_sd[tau]
    assert mean_errors(CENTRED).max() < 0.4
    # The same evidence as the other form, of which it bounds a little less.
    assert fit.check_bound > fitted("eight_schools-eight_schools_noncentered").check_bound - 2.0


def test_deviations_are_those_of_the_reference():
    """Where the posterior is close to a Gaussian."""
    for name in LINEAR:
        fit, posterior = fitted(name), posteriordb.load_one(name)
        sds = np.concatenate([np.ravel(fit.sd[leaf]) for leaf in posterior.quantities(fit.sd, posterior.data)])
        np.testing.assert_allclose(sds, posterior.reference_sd, rtol=0.06, err_msg=name)


@pytest.mark.parametrize("name", ["garch-garch11", "eight_schools-eight_schools_noncentered"])
def test_a_warp_pays_where_the_posterior_is_skewed(name):
    posterior = posteriordb.load_one(name)
    transforms = {leaf: transform(constraint) for leaf, constraint in posterior.constraints.items()}
    options = {"data": posterior.data, "transforms": transforms, "progress": False}
    warped = qd.fit(posterior.log_density, posterior.start, family="warped", **options)
    full = fitted(name)
    assert warped.check_bound - 2.0 * warped.check_error > full.check_bound + 2.0 * full.check_error
    assert warped.n_objective_evaluations <= 30
    auto = qd.fit(posterior.log_density, posterior.start, family="auto", **options)
    assert auto.settings["family"] == "warped"
    assert auto.n_evaluations <= 2 * full.n_evaluations
    assert auto.answer.trust is Trust.BOTH


def test_what_a_warp_would_gain_is_not_bought_for_more_than_the_gaussian_took():
    """Thirteen parameters: bent, their posterior takes ten times the gradients; unbent, it gains nothing that is clear."""
    posterior = posteriordb.load_one("gp_pois_regr-gp_pois_regr")
    transforms = {leaf: transform(constraint) for leaf, constraint in posterior.constraints.items()}
    options = {"data": posterior.data, "transforms": transforms, "progress": False}
    auto = qd.fit(posterior.log_density, posterior.start, family="auto", **options)
    full = fitted("gp_pois_regr-gp_pois_regr")
    assert auto.settings["family"] == "full"
    assert full.n_evaluations < auto.n_evaluations <= 2 * full.n_evaluations
