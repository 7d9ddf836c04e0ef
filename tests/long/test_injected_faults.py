"""Faults at every place where one can happen: nothing that was computed is lost, and no file is left damaged.

Interrupts at each piece of work of a fit, files that cannot be written at each step of writing them, functions that raise at
each call, processes that are killed while they save. `FAULTS` counts them; the last test insists on their number.
"""

import errno
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched import files, interrupts
from quenched.fitting.standing import Standing

FAULTS: Counter[str] = Counter()


def skewed(w, data=None):
    return -jnp.sum(jnp.cosh(w)) - 0.5 * jnp.sum((w - (0.5 if data is None else data)) ** 2)


def bent(w):
    return -0.5 * w[0] ** 2 - 0.5 * ((w[1] - w[0] ** 2) / 0.5) ** 2 - 0.5 * w[2] ** 2


def on_host(w):
    return -float(np.sum(np.cosh(w)) + 0.5 * np.sum((w - 0.5) ** 2)), -np.sinh(w) - (w - 0.5)


START = np.zeros(3)
QUICK = {"check": 64, "progress": False, "max_draws": 64}


# Ctrl-C.


class Pressed(interrupts._Waiting):
    """Ctrl-C before the piece of work with this number."""

    def __init__(self, at: int):
        super().__init__()
        self.at, self.pieces = at, 0

    @property
    def noted(self) -> bool:
        self.pieces += 1
        return self.pieces == self.at

    @noted.setter
    def noted(self, value: bool) -> None:
        pass


@pytest.fixture
def pressing(monkeypatch):
    """Run a fit with Ctrl-C at some piece of work; answers with its result, whether anything was known by then, and how many there were."""
    known = []
    keep = Standing.keep

    def noting(self, index, posterior, hyper, bound, *rest, **options):
        known.append(bool(np.isfinite(bound).any()))
        return keep(self, index, posterior, hyper, bound, *rest, **options)

    monkeypatch.setattr(Standing, "keep", noting)

    def press(at, work):
        known.clear()
        waiting = Pressed(at)
        monkeypatch.setattr(interrupts, "_waiting", waiting)
        try:
            return work(), any(known), waiting.pieces
        except KeyboardInterrupt:
            return None, any(known), waiting.pieces
        finally:
            monkeypatch.setattr(interrupts, "_waiting", interrupts._Waiting())
            signal.signal(signal.SIGINT, signal.default_int_handler)

    return press


FITS = {
    "full": lambda: qd.fit(skewed, START, **QUICK),
    "diagonal": lambda: qd.fit(skewed, START, family="diagonal", **QUICK),
    "warped": lambda: qd.fit(skewed, START, family="warped", draws=256, check=64, progress=False),
    "auto": lambda: qd.fit(bent, START, family="auto", check=640, max_draws=256, progress=False),
    "several starts": lambda: qd.fit(skewed, START, starts=3, **QUICK),
    "alternating": lambda: qd.fit(
        skewed, START, method=qd.Alternating(max_rounds=3), draws=16, check=64, progress=False
    ),
    "on the host": lambda: qd.fit(qd.from_value_and_grad(on_host), START, draws=16, check=64, progress=False),
    "prior": lambda: qd.fit(qd.with_gaussian_prior(skewed), START, **QUICK),
}


@pytest.mark.parametrize("name", FITS)
def test_an_interrupt_keeps_what_was_reached(name, pressing):
    whole, _, pieces = pressing(-1, FITS[name])
    assert whole.status == "converged" or name == "alternating"
    places = np.unique(np.linspace(1, pieces, 30).astype(int))
    lost = []
    for at in places:
        fit, known, _ = pressing(at, FITS[name])
        FAULTS["interrupts"] += 1
        if fit is None:
            lost += [at] * known
        else:
            assert np.isfinite(fit.bound)
            assert np.isfinite(fit.posterior.covariance).all()
    assert not lost, f"of {pieces} pieces of work"


def test_an_interrupt_of_many_keeps_those_that_ended(pressing):
    data = np.linspace(-1.0, 1.0, 12)[:, None] * np.ones(3)
    work = lambda: qd.fit_many(skewed, START, data, check=64, draws=16, progress=False)
    whole, _, pieces = pressing(-1, work)
    assert (whole.status == "converged").all()
    for at in np.unique(np.linspace(1, pieces, 20).astype(int)):
        fits, known, _ = pressing(at, work)
        FAULTS["interrupts of many"] += 1
        assert fits is not None or not known
        if fits is not None:
            same = fits.status == "converged"
            np.testing.assert_array_equal(fits.bound[same], whole.bound[same])


# Files.


@pytest.fixture
def broken(monkeypatch):
    """Let the n-th step of writing files fail: opening, putting on the disk, moving into place."""

    def arrange(at, number=errno.ENOSPC):
        steps = iter(range(1, 10**6))

        def failing(of):
            def step(*arguments, **options):
                if next(steps) >= at:
                    raise OSError(number, os.strerror(number))
                return of(*arguments, **options)

            return step

        monkeypatch.setattr(files, "open", failing(open), raising=False)
        monkeypatch.setattr(files.os, "fsync", failing(_FSYNC))
        monkeypatch.setattr(files.os, "replace", failing(_REPLACE))

    yield arrange
    monkeypatch.undo()


_FSYNC, _REPLACE = os.fsync, os.replace


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("at", range(1, 16))
def test_a_checkpoint_that_cannot_be_written_costs_no_fit(at, number, broken, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    before = qd.fit(skewed, START, draws=16, check=64, progress=False)
    before.save(path)
    broken(at, number)
    options = {"check": 64, "tolerance": 1e-9, "max_draws": 256, "progress": False, "checkpoint": path}
    FAULTS["files"] += 1
    if at == 1:  # found before anything is computed
        with pytest.raises(ValueError, match=r"checkpoint=.*no file can be written there"):
            qd.fit(skewed, START, **options)
    else:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fit = qd.fit(skewed, START, **options)
        assert np.isfinite(fit.bound)
        assert any("checkpoint" in str(one.message) for one in told) or at > 1 + 3 * fit.n_rounds
    monkeypatch.undo()
    assert np.isfinite(qd.load(path).bound)
    assert [one.name for one in tmp_path.iterdir()] == ["fit.npz"]


def test_many_fits_whose_folder_breaks(broken, tmp_path, monkeypatch):
    data = np.linspace(-1.0, 1.0, 200)[:, None] * np.ones(3)  # three shares
    options = {"check": 64, "draws": 16, "progress": False}
    whole = qd.fit_many(skewed, START, data, checkpoint=tmp_path / "whole", **options)
    for at in range(2, 12):
        broken(at)
        FAULTS["files of many"] += 1
        with pytest.warns(UserWarning, match="checkpoint"):
            fits = qd.fit_many(skewed, START, data, checkpoint=tmp_path / f"{at}", **options)
        np.testing.assert_array_equal(fits.bound, whole.bound)
        monkeypatch.undo()
        np.testing.assert_array_equal(
            qd.fit_many(skewed, START, data, checkpoint=tmp_path / f"{at}", **options).bound, whole.bound
        )


# Functions of the user's own.


@pytest.mark.parametrize("kind", [ValueError, MemoryError, OSError, ArithmeticError])
def test_a_function_that_raises_is_the_users_and_the_checkpoint_is_kept(kind, tmp_path):
    calls = iter(range(10**6))
    path = tmp_path / "fit.npz"
    options = {"check": 64, "draws": 16, "progress": False, "checkpoint": path}

    def failing(at):
        def function(w):
            if next(calls) == at:
                raise kind("mine")
            return on_host(w)

        return qd.from_value_and_grad(function)

    whole = qd.fit(failing(-1), START, **options)
    total = next(calls)
    for at in np.unique(np.linspace(0, total - 1, 12).astype(int)):
        calls = iter(range(10**6))
        FAULTS["functions"] += 1
        with pytest.raises(kind, match="mine") as raised:
            qd.fit(failing(at), START, **options)
        assert any("with parameters" in note for note in raised.value.__notes__)
        assert qd.load(path).bound == whole.bound


# Processes.

SAVING = """
import sys
import numpy as np
import quenched as qd
from quenched.results import load, save
fit = load(sys.argv[1])
print("ready", flush=True)
while True:
    save(fit, sys.argv[1])
"""


def test_a_killed_process_leaves_a_whole_file(tmp_path):
    path = qd.fit(skewed, START, draws=16, check=64, progress=False).save(tmp_path / "fit.npz")
    bound, random = qd.load(path).bound, np.random.default_rng(0)
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, cwd=tmp_path, text=True
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(random.uniform(0.0, 0.05))
        process.kill()
        process.wait()
        process.stdout.close()
        FAULTS["kills"] += 1
        assert qd.load(path).bound == bound
    left = [one for one in tmp_path.iterdir() if one.name != "fit.npz"]
    assert all(one.name.startswith(".quenched-") and one.name.endswith(".part") for one in left)
    for one in left:  # an hour later
        os.utime(one, (time.time() - 7200, time.time() - 7200))
    qd.load(path).save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["fit.npz"]


def test_there_were_enough_of_them():
    """The whole file has run: at least 300 faults were injected, and none has cost a result."""
    if len(FAULTS) < 6:
        pytest.skip("only with all the others")
    assert sum(FAULTS.values()) >= 300, FAULTS
