"""Stan programs, compiled by PyStan."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from programs import SCHOOLS, SUPPORTS, compiled

import quenched as qd
from quenched.cli import main
from quenched.frontends import from_stan_file

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
    assert "replicate is left out" in fit.verdict
    np.testing.assert_allclose(fit.predict(200)["twice"], 2.0 * samples["below"])
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
    assert main([*command, "--out", str(tmp_path), "--no-diagnosis"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"Compiling {tmp_path / 'schools.stan'}")
    assert "up to a constant" in " ".join(told.out.split())
    assert "Building" not in told.out + told.err  # PyStan's own
    assert "schools" in (tmp_path / "schools.html").read_text()
    assert sorted(qd.load(tmp_path / "schools.npz").mean) == ["mu", "tau", "z"]


def test_what_pystan_left_half_way_is_built_again(schools_model, tmp_path, monkeypatch):
    """PyStan gives up after five minutes, and then takes what its compiler has left for a whole program, for ever."""
    from httpstan import cache, models

    folder = cache.model_directory(schools_model.model_name)
    library = next(path for path in folder.iterdir() if path.suffix == ".so")
    shutil.copytree(folder, tmp_path / "kept")
    (folder / "stderr.log").unlink()

    async def compiler(code):
        shutil.copy(tmp_path / "kept" / library.name, library)
        return "no complaints"

    monkeypatch.setattr(models, "build_services_extension_module", compiler)
    (tmp_path / "schools.stan").write_text(SCHOOLS)
    again = from_stan_file(tmp_path / "schools.stan", schools_model.data)
    assert sorted(again.start) == ["mu", "tau", "z"]
    assert (folder / "stderr.log").read_text() == "no complaints"


def test_a_busy_machine_is_given_time(monkeypatch):
    """PyStan gives Stan's own compiler one second."""
    from httpstan import compile as translator

    calls = []

    def slow_at_first(code, name):
        calls.append(name)
        if len(calls) < 3:
            raise subprocess.TimeoutExpired("stanc", 1.0)
        raise ValueError("Syntax error in 'string', line 1")

    monkeypatch.setattr(translator, "compile", slow_at_first)
    (Path.cwd() / "wrong.stan").write_text("parameters { reel x; }")
    with pytest.raises(ValueError, match="Syntax error in 'string', line 1"):
        from_stan_file(Path("wrong.stan"))
    assert len(calls) == 3


def test_misuse(schools_model):
    with pytest.raises(ValueError, match=r"from_stan\(model\)"):
        qd.fit(schools_model)
    with pytest.raises(ValueError, match="z does not match"):
        qd.fit(qd.from_stan(schools_model), {"mu": 0.0, "tau": 1.0}, progress=False)
