"""`quenched fit` on files that are in order."""

import json
from pathlib import Path

import numpy as np
import pytest

import quenched as qd

EXAMPLES = Path(__file__).parents[2] / "examples"

GAUSSIAN = """
import numpy as np
import jax.numpy as jnp

data = {"y": np.array([1.0, 2.0, 3.0])}
start = {"mu": 0.0}


def log_density(parameters, data):
    return -0.5 * parameters["mu"] ** 2 - 0.5 * jnp.sum((data["y"] - parameters["mu"]) ** 2)


def shifted(parameters):
    return -0.5 * (parameters["mu"] - 7.0) ** 2
"""


def test_eight_schools_end_to_end(run, tmp_path):
    done = run("fit", EXAMPLES / "eight_schools.py", "--out", "results")
    assert done.returncode == 0, done.stderr
    fit = qd.load(tmp_path / "results" / "eight_schools.npz")
    assert fit.converged
    # Posterior of tau and mu by long MCMC (posteriordb): mu 4.4 (3.3), tau 3.6 (3.2).
    assert abs(fit.mean["mu"] - 4.4) < 0.3
    assert 2.5 < fit.mean["tau"] < 4.0
    page = (tmp_path / "results" / "eight_schools.html").read_text(encoding="utf-8")
    assert "<h1>eight_schools</h1>" in page
    assert "Converged, and the draws suffice" in page
    assert page.count("data:image/svg+xml") == 2
    for text in ("eta[7]", "check bound", fit.status, "results/eight_schools.npz", "results/eight_schools.html"):
        assert text in done.stdout


def test_a_target_of_another_name(run, tmp_path):
    done = run("fit", f"{EXAMPLES / 'regression.py'}:target", "--quiet")
    assert done.returncode == 0, done.stderr
    fit = qd.load(tmp_path / "out" / "regression-target.npz")
    assert abs(fit.hyper["noise_precision"] ** -0.5 - 0.2) < 0.03
    assert "parameters[0]" not in done.stdout
    assert fit.verdict in done.stdout


def test_data_go_to_a_function_that_takes_them_and_to_no_other(run, write, tmp_path):
    write("model.py", GAUSSIAN)
    assert run("fit", "model.py", "--quiet").returncode == 0
    assert run("fit", "model.py:shifted", "--quiet").returncode == 0
    np.testing.assert_allclose(qd.load(tmp_path / "out" / "model.npz").mean["mu"], 1.5, atol=1e-6)
    np.testing.assert_allclose(qd.load(tmp_path / "out" / "model-shifted.npz").mean["mu"], 7.0, atol=1e-6)


def test_options_reach_the_fit(run, write, tmp_path):
    write("model.py", GAUSSIAN)
    options = "--family blocks --draws 20 --tolerance 0.25 --seed 5 --method alternating --starts 2 --max-seconds 100"
    done = run("fit", "model.py", *options.split(), "--out", "deep/er", "--quiet")
    assert done.returncode == 0, done.stderr
    fit = qd.load(tmp_path / "deep" / "er" / "model.npz")
    assert fit.n_draws == 20
    assert fit.settings["seed"] == 5
    assert fit.settings["family"] == "blocks"
    assert fit.settings["method"] == "Alternating"
    assert fit.settings["tolerance"] == 0.25
    assert sum(optimum.n_starts for optimum in fit.optima) == 2


def test_resume_begins_where_the_last_fit_ended(run, write, tmp_path):
    write("model.py", "import jax.numpy as jnp\nimport numpy as np\nstart = np.full(3, 40.0)\n" + QUARTIC)
    stopped = run("fit", "model.py", "--max-seconds", "1e-9")
    assert stopped.returncode == 1
    partial = qd.load(tmp_path / "out" / "model.npz")
    assert partial.status == "max_seconds"
    assert "Not converged" in (tmp_path / "out" / "model.html").read_text(encoding="utf-8")
    resumed = run("fit", "model.py", "--resume", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    fit = qd.load(tmp_path / "out" / "model.npz")
    assert fit.converged
    assert fit.bound > partial.bound


QUARTIC = """
def log_density(parameters):
    return -jnp.sum(jnp.cosh(parameters - 1.0))
"""


def test_resume_keeps_containers_that_the_file_format_does_not_know(run, write):
    model = """
from typing import NamedTuple

class P(NamedTuple):
    a: float
    b: float

start = P(0.0, 0.0)

def log_density(p):
    return -0.5 * (p.a - 1.0) ** 2 - 0.5 * (p.b - 2.0) ** 2
"""
    write("model.py", model)
    assert run("fit", "model.py", "--quiet").returncode == 0
    done = run("fit", "model.py", "--quiet", "--resume")
    assert done.returncode == 0, done.stderr


def test_the_saved_file_is_readable_without_quenched(run, write, tmp_path):
    write("model.py", GAUSSIAN)
    run("fit", "model.py", "--quiet")
    with np.load(tmp_path / "out" / "model.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["fit.json"]))["status"] == "converged"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["fit", "--help"]])
def test_the_command_describes_itself(run, arguments):
    done = run(*arguments)
    assert done.returncode == 0
    assert {"--version": f"quenched {qd.__version__}", "--help": "datasets", "fit": "--max-draws"}[
        arguments[0]
    ] in done.stdout
