"""`quenched fit` on files that are in order."""

import json
import subprocess
import sys
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
    assert "<strong>Trust " in page
    assert page.count("data:image/svg+xml") == 3
    for text in ("eta[7]", "check bound", fit.status, "results/eight_schools.npz", "results/eight_schools.html"):
        assert text in done.stdout


def test_a_target_of_another_name(call, tmp_path):
    code, printed, _ = call("fit", f"{EXAMPLES / 'regression.py'}:target", "--quiet")
    assert code == 0
    fit = qd.load(tmp_path / "out" / "regression-target.npz")
    assert abs(fit.hyper["noise_precision"] ** -0.5 - 0.2) < 0.03
    assert "parameters[0]" not in printed
    assert printed.startswith(fit.answer.trust.words)


def test_data_go_to_a_function_that_takes_them_and_to_no_other(call, write, tmp_path):
    write("model.py", GAUSSIAN)
    assert call("fit", "model.py", "--quiet")[0] == 0
    assert call("fit", "model.py:shifted", "--quiet")[0] == 0
    np.testing.assert_allclose(qd.load(tmp_path / "out" / "model.npz").mean["mu"], 1.5, atol=1e-6)
    np.testing.assert_allclose(qd.load(tmp_path / "out" / "model-shifted.npz").mean["mu"], 7.0, atol=1e-6)


def test_options_reach_the_fit(call, write, tmp_path):
    write("model.py", GAUSSIAN)
    options = "--family blocks --draws 20 --tolerance 0.25 --seed 5 --method alternating --starts 2 --max-seconds 100"
    assert call("fit", "model.py", *options.split(), "--out", "deep/er", "--quiet")[0] == 0
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


def test_resume_keeps_containers_that_the_file_format_does_not_know(call, write):
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
    assert call("fit", "model.py", "--quiet")[0] == 0
    assert call("fit", "model.py", "--quiet", "--resume")[0] == 0


def test_the_saved_file_is_readable_without_quenched(call, write, tmp_path):
    write("model.py", GAUSSIAN)
    call("fit", "model.py", "--quiet")
    with np.load(tmp_path / "out" / "model.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["fit.json"]))["status"] == "converged"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["--version"], f"quenched {qd.__version__}"), (["--help"], "datasets"), (["fit", "--help"], "--max-draws")],
)
def test_the_command_describes_itself(call, arguments, text):
    code, printed, _ = call(*arguments)
    assert code == 0
    assert text in printed


def test_python_runs_the_package_as_the_command(tmp_path):
    run = lambda *arguments: subprocess.run(
        [sys.executable, "-m", "quenched", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run("--version").stdout == f"quenched {qd.__version__}\n"
    done = run("fit", "nowhere.py")
    assert done.returncode == 2
    assert "nowhere.py" in done.stderr
