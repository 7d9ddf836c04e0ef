"""Random problems through random options for as many minutes as are asked for, with laws checked after each.

    python benchmarks/soak.py --minutes 5 --seed 0

What must hold: the check bound is no higher than the exact evidence within its error; the bound of a round is no lower than the
one before by more than the draws explain; covariances are symmetric and positive definite; what is saved and loaded is equal to
the last bit; a fit that is done again is too; `fit_many` finds what `fit` finds; memory, threads and open files stay flat once
compiled programs are let go, as they are whenever there are too many: at half-time and at the end. Prints counts, and the most
memory in each tenth of the problems; ends with 1 if anything was broken.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd
from quenched.objective import problem as programs

_TOLD = 25  # problems between two lines
_MOST_GROWTH = 60.0  # megabytes in the second half, when no program is held: by then what is kept of draws is full


def gaussian(w, data):
    """Its evidence is known."""
    away = data["root"] @ (w - data["centre"])
    return -0.5 * jnp.sum(away**2) + data["shift"]


def skewed(w, data):
    return jnp.sum(data["shape"] * w - jnp.exp(w)) + data["shift"]


def hierarchical(w, data):
    z, log_sd = w["z"], w["log_sd"]
    fit = jnp.sum((data["y"] - z * jnp.exp(log_sd)) ** 2)
    return -0.5 * (fit + jnp.sum(z**2) + log_sd**2)


def constrained(w, data):
    return -jnp.sum(w["rate"] * data["y"]) + data["y"].size * jnp.log(w["rate"]) - 0.5 * jnp.sum(w["mean"] ** 2)


def problem(random: np.random.Generator) -> tuple:
    """A log density, its start, transforms and data, and the exact log evidence where there is one."""
    dim, kind = int(random.integers(1, 5)), random.choice(["gaussian", "skewed", "hierarchical", "constrained"])
    shift = float(random.choice([0.0, 3.0, -1e4]))
    if kind == "gaussian":
        root = random.standard_normal((dim, dim)) + 2.0 * np.eye(dim)
        root *= 10.0 ** random.uniform(-3, 3)
        data = {"root": root, "centre": random.standard_normal(dim) / np.abs(root).max(), "shift": shift}
        evidence = shift + 0.5 * dim * np.log(2.0 * np.pi) - np.linalg.slogdet(root)[1]
        return gaussian, np.zeros(dim), None, data, evidence
    if kind == "skewed":
        shape = random.uniform(0.3, 20.0, dim)
        evidence = shift + sum(float(jax.scipy.special.gammaln(one)) for one in shape)
        return skewed, np.zeros(dim), None, {"shape": shape, "shift": shift}, evidence
    if kind == "hierarchical":
        return hierarchical, {"z": np.zeros(dim), "log_sd": 0.0}, None, {"y": random.standard_normal(dim)}, None
    start = {"rate": float(random.uniform(0.5, 2.0)), "mean": np.zeros(dim)}
    return constrained, start, {"rate": qd.positive}, {"y": random.exponential(1.0, 10)}, None


def options(random: np.random.Generator) -> dict:
    chosen = {
        "family": random.choice(["full", "full", "diagonal", "warped", "auto"]),
        "seed": int(random.integers(0, 2**40)),
        "check": int(random.choice([64, 640, 1000])),
        "max_draws": 512,
    }
    if chosen["family"] in ("full", "diagonal") and random.random() < 0.3:
        chosen["draws"] = int(random.choice([16, 32, 64]))
    if random.random() < 0.1:
        chosen |= {"method": qd.Alternating(max_rounds=5), "family": "full", "draws": 32}
    if random.random() < 0.1:
        chosen["starts"] = 3
    if random.random() < 0.1:
        chosen["memory"] = 20_000_000
    return chosen


def check_laws(random: np.random.Generator, counts: Counter, folder: Path) -> None:
    """One problem, once through."""
    log_density, start, transforms, data, evidence = problem(random)
    asked = options(random)
    if random.random() < 0.3:  # a closure that nobody has seen before
        held = jax.tree.map(np.array, data)
        fit = lambda: qd.fit(lambda w: log_density(w, held), start, transforms=transforms, progress=False, **asked)
        counts["fresh closures"] += 1
    else:
        fit = lambda: qd.fit(log_density, start, data=data, transforms=transforms, progress=False, **asked)
    found = fit()
    counts[str(found.status)] += 1
    counts[f"family {found.settings['family']}"] += 1
    assert np.isfinite(found.bound), "a bound that is no number"
    np.linalg.cholesky(found.covariance)
    np.testing.assert_allclose(found.covariance, found.covariance.T, rtol=1e-12)
    if evidence is not None:
        assert found.check_bound <= evidence + 6.0 * found.check_error + 1e-8 * abs(evidence) + 1e-6, (
            f"check bound {found.check_bound} above the evidence {evidence}"
        )
        if found.converged and log_density is gaussian and found.settings["family"] == "full":
            spared = 0.01 * found.settings["tolerance"]  # nats for which an ascent does not go on
            assert abs(found.bound - evidence) <= 1e-6 * max(1.0, abs(evidence)) + spared, (
                "a Gaussian was not found exactly"
            )
        counts["evidences"] += 1
    for before, after in zip(found.history, list(found.history)[1:], strict=False):
        if after.n_draws == before.n_draws and found.settings["family"] != "warped" and asked["family"] != "auto":
            assert after.bound >= before.bound - 1e-6 * max(1.0, abs(before.bound)), (
                "a bound that fell on the same draws"
            )
            counts["rounds"] += 1
    loaded = qd.load(found.save(folder / "fit.npz"))
    assert (loaded.bound, loaded.check_bound, str(loaded)) == (found.bound, found.check_bound, str(found)), (
        "a file changed it"
    )
    jax.tree.map(np.testing.assert_array_equal, loaded.mean, found.mean)
    counts["files"] += 1
    if random.random() < 0.3:
        again = fit()
        assert (again.bound, again.check_bound) == (found.bound, found.check_bound), "another answer on the same seed"
        counts["repetitions"] += 1
    if (
        random.random() < 0.15
        and asked["family"] in ("full", "diagonal")
        and "starts" not in asked
        and "method" not in asked
    ):
        many = {name: value for name, value in asked.items() if name != "memory"}
        rows = jax.tree.map(lambda leaf: np.stack([np.asarray(leaf)] * 3), data)
        fits = qd.fit_many(log_density, start, rows, transforms=transforms, progress=False, **many)
        same = abs(fits.bound[1] - found.bound) <= 1e-5 * max(1.0, abs(found.bound)) + found.settings["tolerance"]
        assert same, f"fit_many found {fits.bound[1]}, fit {found.bound}"
        counts["fits by fit_many"] += 3
    if random.random() < 0.1:
        assert found.diagnose(progress=False, replicates=2, samples=200).verdict
        counts["diagnoses"] += 1


def megabytes() -> float:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6 if statm.exists() else 0.0


def left_over() -> dict[str, float]:
    """What is held when no program is: neither ours, nor those of JAX's own functions."""
    programs._programs.cache_clear()
    jax.clear_caches()
    programs._programs.cache_clear()  # which gives back what was freed
    return {
        "megabytes": round(megabytes()),
        "files": len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0,
        "threads": threading.active_count(),
    }


def in_tenths(seen: list[float]) -> str:
    """The most in each tenth."""
    return " ".join(f"{max(part):.0f}" for part in np.array_split(seen, min(10, len(seen))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    began, counts, broken, seen = time.monotonic(), Counter(), [], []
    half_time, ends = began + 30.0 * given.minutes, began + 60.0 * given.minutes
    warm, n_warm = None, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < ends:
            number = len(seen)
            try:
                check_laws(np.random.default_rng([given.seed, number]), counts, Path(folder))
            except Exception as error:
                broken.append(number)
                print(f"problem {number} (seed {given.seed}): {type(error).__name__}: {error}", flush=True)
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
            seen.append(megabytes())
            if len(seen) % _TOLD == 0:
                print(f"{len(seen)} problems, most megabytes in tenths: {in_tenths(seen)}", flush=True)
            if warm is None and time.monotonic() > half_time:
                warm, n_warm = left_over(), len(seen)
    print(f"{len(seen)} problems in {given.minutes:g} minutes; {len(broken)} broke a law: {broken[:20]}")
    print(", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    last = left_over()
    print(f"most megabytes in tenths: {in_tenths(seen)}")
    print(f"without programs: after {n_warm} problems {warm}, at the end {last}")
    grown = 0.0 if warm is None else last["megabytes"] - warm["megabytes"]
    leaked = warm is not None and (last["files"] > warm["files"] + 2 or last["threads"] > warm["threads"] + 2)
    if grown > _MOST_GROWTH or leaked:
        print(f"memory grew by {grown:.0f} MB, or files or threads were left open")
    return int(bool(broken) or grown > _MOST_GROWTH or leaked)


if __name__ == "__main__":
    sys.exit(main())
