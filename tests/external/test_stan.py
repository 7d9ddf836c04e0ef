"""Stan programs, compiled by PyStan."""

import json

import numpy as np
import pytest
from programs import SCHOOLS, SUPPORTS, compiled

import quenched as qd
from quenched.cli import main

stan = pytest.importorskip("stan")


@pytest.fixture(scope="module")
def schools_model():
    from conftest import EFFECTS, ERRORS

    return compiled(SCHOOLS, {"J": 8, "effects": EFFECTS.tolist(), "errors": ERRORS.tolist()})


def test_a_fit_speaks_the_language_of_stan(schools_model, tmp_path):
    model = qd.from_stan(schools_model)
    fit = qd.fit(model, progress=False)
    samples = fit.sample(50)
    assert {name: value.shape[1:] for name, value in samples.items()} == dict(
        zip(schools_model.param_names, map(tuple, schools_model.dims), strict=True)
    )
    np.testing.assert_allclose(samples["theta"], samples["mu"][:, None] + samples["tau"][:, None] * samples["z"])
    np.testing.assert_array_equal(fit.predict(50)["log_lik"], samples["log_lik"])
    assert fit.model.log_likelihood(samples)["log_lik"].shape == (50, 8)
    exported = fit.to_arviz(50)
    assert exported.sample_stats["lp"].shape == (1, 50)
    # PyStan leaves constants out: this is said instead of a number.
    assert np.isnan(fit.evidence)
    assert np.isnan(fit.diagnose(progress=False).evidence)
    assert np.isfinite(fit.diagnose().family_gap)
    assert "up to a constant" in fit.diagnose().verdict or "up to a constant" in str(fit)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    assert np.isnan(loaded.evidence)
    np.testing.assert_array_equal(loaded.attach(model).sample(3)["theta"], fit.sample(3)["theta"])


def test_every_support(tmp_path):
    rows = np.random.default_rng(1).standard_normal((20, 3))
    model = qd.from_stan(compiled(SUPPORTS, {"N": 20, "rows": rows.tolist()}))
    fit = qd.fit(model, draws=128, progress=False)
    samples = fit.sample(200)
    assert "replicate" not in samples
    assert "random numbers anew" in fit.verdict
    assert np.all(samples["dynamic"] < samples["below"])
    assert np.all(samples["capped"] < 1.0)
    assert np.all(np.diff(samples["cuts"], axis=-1) > 0)
    np.testing.assert_allclose(samples["parts"].sum(axis=-1), 1.0)
    np.testing.assert_allclose(np.sum(samples["factor"] ** 2, axis=-1), 1.0)
    for name in ("nested", "table"):  # every number in its own place
        np.testing.assert_allclose(fit.mean[name], [[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]], atol=0.05)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    assert str(loaded) == str(fit)
    np.testing.assert_array_equal(loaded.attach(model).sample(3)["dynamic"], fit.sample(3)["dynamic"])


def test_the_command_line(tmp_path, schools_model, capsys):
    from conftest import EFFECTS, ERRORS

    (tmp_path / "schools.stan").write_text(SCHOOLS)
    data = {"J": 8, "effects": EFFECTS.tolist(), "errors": ERRORS.tolist()}
    (tmp_path / "data.json").write_text(json.dumps(data))
    command = ["fit", str(tmp_path / "schools.stan"), "--data", str(tmp_path / "data.json"), "--family", "full"]
    assert main([*command, "--out", str(tmp_path), "--no-diagnosis", "--quiet"]) == 0
    assert "up to a constant" in capsys.readouterr().out
    assert sorted(qd.load(tmp_path / "schools.npz").mean) == ["mu", "tau", "z"]


def test_misuse(schools_model):
    with pytest.raises(ValueError, match=r"from_stan\(model\)"):
        qd.fit(schools_model)
    with pytest.raises(ValueError, match="z does not match"):
        qd.fit(qd.from_stan(schools_model), {"mu": 0.0, "tau": 1.0}, progress=False)
