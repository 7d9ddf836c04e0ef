"""`fit.diagnose`, `fit.summary` and `fit.attach` as a user meets them."""

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from fits import make_fit


@pytest.fixture(scope="module")
def fit():
    return problems.logistic_problem(2).fit()


def test_a_diagnosis_is_made_once_and_kept(fit):
    first = fit.diagnose()
    assert fit.diagnose() is first
    second = fit.diagnose(replicates=4, progress=False)
    assert second is not first
    assert fit.diagnosis is second
    assert fit.diagnose(replicates=8, progress=False).khat == first.khat


def test_the_summary_shows_the_errors_and_the_verdict(fit):
    summary = fit.summary()
    assert set(summary[0]) == {"name", "mean", "mean_error", "sd", "sd_error", "5%", "50%", "95%"}
    text = str(summary)
    assert "±" in text
    assert "k-hat" in text
    assert fit.diagnose().verdict.split(":")[0] in " ".join(text.split())


def test_the_same_fit_has_the_same_diagnosis(fit):
    again = problems.logistic_problem(2).fit().diagnose(progress=False)
    kept = fit.diagnose()
    assert np.array_equal(again.mean_error, kept.mean_error)
    assert (again.khat, again.evidence, again.bound_error) == (kept.khat, kept.evidence, kept.bound_error)


def test_a_loaded_fit_is_attached_and_then_diagnosed(fit, tmp_path):
    problem = problems.logistic_problem(2)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    with pytest.raises(ValueError, match="attach"):
        loaded.diagnose()
    with pytest.raises(ValueError, match="attach"):
        loaded.resample(10)
    assert set(loaded.summary()[0]) == {"name", "mean", "sd", "5%", "50%", "95%"}
    attached = loaded.attach(problem.log_density, problem.data)
    assert np.array_equal(attached.diagnose(progress=False).mean_error, fit.diagnose().mean_error)


def test_attaching_another_target_is_refused(fit, tmp_path):
    problem = problems.logistic_problem(2)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    other = {**problem.data, "labels": 1.0 - problem.data["labels"]}
    with pytest.raises(ValueError, match="the bound of this fit is"):
        loaded.attach(problem.log_density, other)


@pytest.mark.parametrize("family", ["diagonal", qd.Blocks([3, 5])])
def test_learned_precisions_and_structured_families_are_attached(family, tmp_path):
    problem = problems.logistic_problem(8, 60)

    def likelihood(w, data):
        scores = data["features"] @ w
        return data["labels"] @ scores - jnp.sum(jnp.logaddexp(0.0, scores))

    target = qd.with_gaussian_prior(likelihood)
    fit = qd.fit(target, problem.start, data=problem.data, family=family, progress=False)
    loaded = qd.load(fit.save(tmp_path / "fit.npz")).attach(target, problem.data)
    assert loaded.diagnose(progress=False).khat == pytest.approx(fit.diagnose(progress=False).khat, abs=1e-9)


@pytest.mark.parametrize("options", [{"replicates": 1}, {"samples": 10}, {"replicates": 2.5}])
def test_bad_options_are_named(fit, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        fit.diagnose(**options)


def test_a_fit_put_together_by_hand_has_nothing_to_diagnose():
    with pytest.raises(ValueError, match="attach"):
        make_fit(np.zeros(2)).diagnose()


def test_a_broken_fit_is_refused_with_its_message():
    broken = qd.fit(lambda w: float("nan") * w[0], np.zeros(1), throw=False, progress=False)
    with pytest.raises(ValueError, match="nothing to diagnose"):
        broken.diagnose()
