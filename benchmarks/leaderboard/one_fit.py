"""One fit in a process of its own: `python -m benchmarks.leaderboard.one_fit PROBLEM METHOD SEED` prints it as JSON.

Imports are timed apart. *Cold* is the first fit, compilation included; *warm* the median of the next ones, with other seeds.
The judge draws 20,000 points, the same for everybody. Last comes a fit whose evaluations are counted, which is not timed: a
line is printed before it and after it, so that nothing is lost if it takes too long.
"""

import importlib
import json
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.leaderboard.method import Answer, NotApplicable
from benchmarks.leaderboard.other_work import Others

FRESH = 20_000
UNFINISHED = "did not come to the end of its first fit"
_WARM_RUNS, _LONG = 5, 10.0  # seconds, beyond which there are no more warm runs
REFERENCES = Path(__file__).parent / "results" / "references.json"


def methods() -> dict[str, Any]:
    """All there are, by name."""
    from benchmarks.leaderboard import nifty_peers, ours, peers, pymc_peers

    parts = (ours.METHODS, peers.METHODS, pymc_peers.METHODS, nifty_peers.METHODS, ours.BEST, ours.ABLATIONS)
    return {name: method for part in parts for name, method in part.items()}


def fresh_draws(dim: int) -> np.ndarray:
    """The same 20,000 for every method and seed: Sobol points of a scramble of their own, with their mirror images.

    Independent ones would leave some hundredths of a nat open where a posterior has long tails.
    """
    from scipy.stats import norm, qmc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # 10,000 is no power of two
        points = qmc.Sobol(dim, rng=np.random.default_rng([20_000, 12])).random(FRESH // 2)
    half = norm.ppf(np.clip(points, 1e-12, 1.0 - 1e-12))
    return np.concatenate([half, -half])


def judge(problem: Any, answer: Answer) -> dict[str, float]:
    """True bound, and errors of means and sds of what is reported."""
    import jax

    z = fresh_draws(problem.dim)
    if answer.transform is None:
        points = answer.mean + z @ answer.scale.T
        log_q = -0.5 * np.sum(z**2, axis=1) - 0.5 * problem.dim * np.log(2.0 * np.pi)
        log_q -= np.sum(np.log(np.abs(np.diag(answer.scale))))
    else:
        points = answer.transform(z)
        log_q = answer.log_density(points)
    over = lambda function: jax.jit(lambda rows: jax.lax.map(function, rows, batch_size=500))
    log_p = np.asarray(over(problem.log_density)(points))
    gaps = log_p - log_q
    judged = {"true_bound": float(np.mean(gaps)), "true_bound_error": float(np.std(gaps) / np.sqrt(len(gaps)))}
    truth = problem.truth or _reference(problem.name)
    if truth is None:
        return judged
    reported = np.asarray(over(problem.reported)(points if answer.samples is None else answer.samples))
    mean, sd = truth
    off = np.abs(reported.mean(axis=0) - mean) / sd
    apart = np.abs(reported.std(axis=0) / sd - 1.0)
    return {
        **judged,
        "mean_error": float(np.median(off)),
        "worst_mean_error": float(off.max()),
        "sd_error": float(np.median(apart)),
        "worst_sd_error": float(apart.max()),
    }


def _reference(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    if not REFERENCES.exists():
        return None
    kept = json.loads(REFERENCES.read_text()).get(name)
    return None if kept is None else (np.asarray(kept["mean"]), np.asarray(kept["sd"]))


def timed(run: Any, *inputs: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = run(*inputs)
    return time.perf_counter() - began, result


def versions(packages: tuple[str, ...]) -> str:
    found = []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} ?")
    return "; ".join(found)


def main(name: str, method_name: str, seed: int) -> None:
    before, jax = timed(importlib.import_module, "jax")
    method = methods()[method_name]
    others = Others()
    row: dict[str, Any] = {"versions": versions(method.packages)}
    say = lambda **more: (row.update(more), print("\n" + json.dumps(row), flush=True))
    imports, prepare = timed(method.load)
    from benchmarks.leaderboard import ours
    from benchmarks.leaderboard.counting import Counter, counted
    from benchmarks.leaderboard.problems import load

    problem = load(name)
    jax.block_until_ready(jax.numpy.zeros(1) + 1.0)  # the devices are awake
    say(dim=problem.dim, seconds_import_jax=before, seconds_import=imports, message=UNFINISHED)
    try:
        cold, (run, answer) = timed(lambda: (run := prepare(problem, problem.log_density), run(seed)))
        answer = answer() if callable(answer) else answer  # what only the judge needs is not timed
        competes = method_name not in ours.BEST
        warm = [timed(run, seed + 1000)[0]] if competes else [cold]
        while competes and sum(warm) < _LONG and len(warm) < _WARM_RUNS:
            warm.append(timed(run, seed + 1000 + len(warm))[0])
        timed_fits = {"seconds_cold": cold, "seconds_warm": float(np.median(warm)), "others": round(others.cores, 3)}
        say(**timed_fits, answer=answer.kind, says=answer.says, message="")
        if not np.isfinite(answer.mean).all() or not np.isfinite(answer.scale).all():
            raise FloatingPointError("mean or covariance is not finite")
        say(**judge(problem, answer))
        if not competes:
            return
        counter = Counter()
        again = prepare(problem, counted(problem.log_density, counter))(seed)
        own = getattr(again, "own_gradients", None)
        say(gradients=counter.gradients, values=counter.values, own_gradients=own)
    except NotApplicable as why:
        say(message=f"not applicable: {why}")
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        say(message=f"{type(error).__name__}: {first[0][:200]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
