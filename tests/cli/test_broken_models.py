"""What `quenched fit` says about files and options that are not in order: no traceback of ours, and what to do."""

import os
import subprocess

import pytest

import quenched as qd
from quenched.fitting import progress

HEAD = "import jax.numpy as jnp\nstart = jnp.zeros(2)\n"
GOOD = HEAD + "def log_density(p):\n    return -jnp.sum(p**2)\n"

# name: (text of model.py, exit code, what the message must say)
BROKEN = {
    "no log_density": ("start = 1.0\n", 2, ["defines no `log_density`", "def log_density(parameters):"]),
    "no start": ("def log_density(p):\n    return 0.0\n", 2, ["defines no `start`", "start = {"]),
    "another name": (
        "start = 1.0\ndef likelihood(p):\n    return 0.0\n",
        2,
        ["it has likelihood", "write model.py:likelihood"],
    ),
    "syntax": ("x = 1\n\ndef f(:\n    pass\n", 2, ["model.py, line 3: SyntaxError", "def f(:"]),
    "import": ("\nimport no_such_module\n", 2, ["model.py, line 2: ModuleNotFoundError", "import no_such_module"]),
    "exception": ("x = 1\ny = x / 0\n", 2, ["model.py, line 2: ZeroDivisionError", "y = x / 0"]),
    "exit": ("raise SystemExit(4)\n", 2, ["ended the program (exit code 4)"]),
    "no data": (
        HEAD + "def log_density(p, data):\n    return -jnp.sum(p**2)\n",
        2,
        ["log_density takes `data`, but model.py defines none", "data = {"],
    ),
    "unused hyper": (
        GOOD + "hyper = 1.0\n",
        2,
        ["log_density(p) in model.py cannot be called as log_density(parameters, hyper)"],
    ),
    "error in the log density": (
        HEAD + "def log_density(p):\n    return -jnp.sum(p @ jnp.ones(3))\n",
        2,
        ["model.py, line 4, `return -jnp.sum(p @ jnp.ones(3))`: ", "must have the shapes that the function expects"],
    ),
    "error in a function it calls": (
        HEAD + "def inner(p):\n    return p['a']\n\ndef log_density(p):\n    return inner({'b': p})\n",
        2,
        ["model.py, line 4, in inner: KeyError: 'a'", "return p['a']"],
    ),
    "escape sequences": (
        HEAD + 'def log_density(p):\n    raise RuntimeError("\\x1b[31m")\n',
        2,
        ["RuntimeError: \\x1b[31m"],
    ),
    "vector": (HEAD + "def log_density(p):\n    return -(p**2)\n", 2, ["returned an array of shape (2,)"]),
    "not callable": ("start = 1.0\nlog_density = 3\n", 2, ["log_density=3 is not callable"]),
    "truth values": (GOOD.replace("jnp.zeros(2)", "[True, False]"), 2, ["start: 0 has dtype bool"]),
    "a branch": (
        HEAD + "def log_density(p):\n    return -p @ p if p[0] > 0 else 0.0\n",
        2,
        ["model.py, line 4, `return -p @ p if p[0] > 0 else 0.0`", "use jnp.where(condition, yes, no)"],
    ),
    "no return": (
        HEAD + "def log_density(p):\n    -p @ p\n",
        2,
        ["returned None", "model.py, line 3", "`return` missing"],
    ),
    "not finite": (
        HEAD + "def log_density(p):\n    return jnp.log(p[0] - 5.0)\n",
        1,
        ["the log density is nan at the start", "nothing was saved"],
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_model(kind, run, write, tmp_path):
    text, code, messages = BROKEN[kind]
    write("model.py", text)
    done = run("fit", "model.py")
    assert done.returncode == code
    for message in messages:
        assert message in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert "\x1b" not in done.stderr + done.stdout
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("letters", ["utf-8", "ascii"])
def test_what_nobody_reads_or_can_show_is_lost_and_nothing_else(letters, command, write, tmp_path):
    write("model.py", GOOD)
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as closed:
        environment = {**os.environ, "PYTHONIOENCODING": letters}
        arguments = [command, "fit", "model.py", "--no-diagnosis"]
        unread = subprocess.run(arguments, cwd=tmp_path, env=environment, stdout=closed, stderr=subprocess.PIPE)
    assert (unread.returncode, unread.stderr) == (0, b"")
    assert (tmp_path / "out" / "model.html").exists()
    read = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True)
    assert (read.returncode, read.stderr) == (0, b"")
    assert ("±" if letters == "utf-8" else "\\xb1").encode() in read.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "missing.py: there is no such file"),
        (["x" * 300 + ".py"], "there is no such file"),
        (["."], ". is a folder"),
        (["notes.txt"], "notes.txt is neither a Python file nor a Stan program"),
        (["model.py:nothing"], "model.py defines no `nothing` (it has log_density;"),
        (["model.py", "--draws", "3"], "the smallest number that works is 4"),
        (["model.py", "--draws", "many"], "argument --draws: invalid int value: 'many'"),
        (["model.py", "--family", "round"], "argument --family: invalid choice: 'round'"),
        (["model.py", "--tolerance", "-1"], "tolerance=-1.0: a positive number is needed"),
        (["model.py", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["model.py", "--resume"], "out/model.npz does not exist; run without --resume first"),
        (["model.py", "--out", "notes.txt/out"], "--out notes.txt/out: cannot make this folder"),
    ],
)
def test_misuse(arguments, message, call, write):
    write("model.py", GOOD)
    write("notes.txt", "not a model")
    code, _, complaints = call("fit", *arguments)
    assert code == 2
    assert message in complaints


@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
def test_too_little_memory_is_told_without_a_traceback(error, call, write, monkeypatch):
    """Each library has its own word for it."""

    def too_little():
        raise error("can't start new thread")

    monkeypatch.setattr(progress, "take_what_linear_algebra_needs", too_little)
    write("model.py", GOOD)
    code, _, complaints = call("fit", "model.py")
    assert code == 2
    assert complaints.startswith("quenched: memory: there is not enough of it (can't start new thread).")


def test_a_diagnosis_that_fails_loses_no_fit(call, write, monkeypatch, tmp_path):
    def fails(*arguments, **options):
        raise MemoryError("of the diagnosis")

    monkeypatch.setattr(qd.Fit, "diagnose", fails)
    write("model.py", GOOD)
    code, _, complaints = call("fit", "model.py", "--quiet")
    assert code == 0
    assert "the fit could not be diagnosed: MemoryError: of the diagnosis" in complaints
    assert qd.load(tmp_path / "out" / "model.npz").converged
    assert (tmp_path / "out" / "model.html").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pipe.py"], "pipe.py is a device or a pipe; name a file"),
        (["model.py", "--data", "/dev/zero"], "--data /dev/zero: is a device; give a file or a pipe"),
    ],
)
def test_what_may_never_end_is_not_read(arguments, message, call, write):
    os.mkfifo(write("model.py", GOOD).with_name("pipe.py"))
    code, _, complaints = call("fit", *arguments)
    assert code == 2
    assert message in complaints


@pytest.mark.parametrize(
    ("arguments", "message"), [(["missing.py"], "there is no such file"), (["--frobnicate"], "usage: quenched")]
)
def test_misuse_in_another_process(arguments, message, run):
    done = run("fit", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_resume_refuses_other_parameters(call, write):
    write("model.py", GOOD)
    assert call("fit", "model.py", "--quiet")[0] == 0
    write("model.py", GOOD.replace("zeros(2)", "zeros(3)"))
    code, _, complaints = call("fit", "model.py", "--resume")
    assert code == 2
    assert "holds other parameters than model.py now defines" in complaints


def test_resume_refuses_a_damaged_file(call, write, tmp_path):
    write("model.py", GOOD)
    (tmp_path / "out").mkdir()
    write("out/model.npz", "not an archive")
    code, _, complaints = call("fit", "model.py", "--resume")
    assert code == 2
    assert "is not a saved fit" in complaints
