"""Approximations of one posterior, each measured against its truth.

Seconds are those of the processor, compilation included: they do not depend on what else a machine does.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.baselines import expectation_propagation, laplace, nested_laplace
from quenched.fitting import fit
from quenched.nesting import nested
from quenched.paper.experiments.improved_problems import Posed
from quenched.paper.experiments.improved_truth import SAMPLES, Truth, truth_of
from quenched.results import Fit, FitError
from quenched.transforms import real_names

_BINS = 50
_SHOWN = 2  # marginals of each posterior

_plain: dict[str, Any] = {"throw": False, "progress": False}
METHODS: dict[str, tuple[str, Callable[[Posed, dict[str, Fit]], Fit | None]]] = {
    "laplace": ("Laplace", lambda posed, _: laplace(posed.target, posed.start, **_plain)),
    "nested_laplace": (
        "nested Laplace",
        lambda posed, _: nested_laplace(posed.target, posed.start, posed.outer, **_plain) if posed.outer else None,
    ),
    "full": ("frozen draws, full", lambda posed, _: fit(posed.target, posed.start, family="full", **_plain)),
    "propagation": (
        "expectation propagation",
        # From the best Gaussian: parallel updates of sites that see a scale as well do not settle from afar.
        lambda posed, fits: expectation_propagation(
            posed.target, fits["full"].mean if "full" in fits else posed.start, **_plain
        ),
    ),
    "warped": ("frozen draws, warped", lambda posed, _: fit(posed.target, posed.start, family="warped", **_plain)),
    "nested": (
        "nested frozen draws",
        lambda posed, _: nested(posed.target, posed.start, posed.outer, **_plain) if posed.outer else None,
    ),
}


def compared(posed: Posed, chains: int, draws: int) -> dict[str, Any]:
    """All methods on one posterior."""
    fits, failed, seconds = {}, {}, {}
    for key, (_, method) in METHODS.items():
        began = time.process_time()
        try:
            found = method(posed, fits)
        except (ValueError, FitError, np.linalg.LinAlgError) as error:
            failed[key] = str(error).strip().splitlines()[0]
            continue
        seconds[key] = time.process_time() - began
        if found is not None:
            fits[key] = found
    if "full" in seconds and "propagation" in seconds:
        seconds["propagation"] += seconds["full"]  # where it began
    for key in [key for key, found in fits.items() if not np.isfinite([found.check_bound, found.khat]).all()]:
        failed[key] = fits.pop(key).message
    guide = fits.get("nested", fits.get("warped"))
    if guide is None:
        raise RuntimeError(f"no posterior to sample in the coordinates of: {failed}")
    truth = truth_of(posed, guide, chains, draws)
    names = real_names(guide.space)
    outer = np.array([name.partition("[")[0] in (posed.outer or ()) for name in names])
    samples = {key: found.posterior.sample(SAMPLES, 1) for key, found in fits.items()}
    measured = {
        key: _measured(found, samples[key], truth, outer) | {"seconds": seconds[key]} for key, found in fits.items()
    }
    return {
        "methods": measured,
        "failed": failed,
        "n_parameters": len(names),
        "truth": {
            "evidence": truth.evidence,
            "evidence_error": truth.evidence_error,
            "rhat": truth.rhat,
            "effective": truth.effective,
            "seconds": truth.seconds,
            "mean": truth.samples.mean(axis=0)[outer].tolist(),
            "sd": truth.samples.std(axis=0)[outer].tolist(),
        },
        "outer": [name for name, is_outer in zip(names, outer, strict=True) if is_outer],
        "marginals": _marginals(samples, truth, names, outer),
    }


def _measured(found: Fit, samples: np.ndarray, truth: Truth, outer: np.ndarray) -> dict[str, Any]:
    """Errors of one method: of means in true sds, of sds as logarithms of ratios, and of whole marginals."""
    mean, sd = truth.samples.mean(axis=0), truth.samples.std(axis=0)
    shift, ratio = (samples.mean(axis=0) - mean) / sd, samples.std(axis=0) / sd
    apart = np.array([distance(a, b) for a, b in zip(samples.T, truth.samples.T, strict=True)])
    own = found.settings.get("log_evidence", found.check_bound)
    answer: dict[str, Any] = {
        "mean_error": float(np.sqrt(np.mean(shift**2))),
        "worst_mean_error": float(np.abs(shift).max()),
        "sd_error": float(np.sqrt(np.mean(np.log(ratio) ** 2))),
        "worst_sd_error": float(np.abs(np.log(ratio)).max()),
        "marginal_distance": float(apart.mean()),
        "worst_marginal_distance": float(apart.max()),
        "evidence_error": float(own - truth.evidence),
        "khat": float(found.khat),
        "evaluations": int(found.n_evaluations),
        "status": str(found.status),
    }
    if outer.any():
        answer |= {
            "outer_mean_error": float(np.abs(shift[outer]).max()),
            "outer_sd_ratio": float(ratio[outer][np.argmax(np.abs(np.log(ratio[outer])))]),
            "outer_distance": float(apart[outer].max()),
            "inner_sd_ratio": float(np.exp(np.mean(np.log(ratio[~outer])))),
        }
    return answer


def distance(samples: np.ndarray, others: np.ndarray) -> float:
    """The largest difference of two distribution functions (Kolmogorov), from samples."""
    everything = np.sort(np.concatenate([samples, others]))
    shares = [np.searchsorted(np.sort(part), everything, side="right") / len(part) for part in (samples, others)]
    return float(np.abs(shares[0] - shares[1]).max())


def _marginals(
    samples: dict[str, np.ndarray], truth: Truth, names: list[str], outer: np.ndarray
) -> list[dict[str, Any]]:
    """Histograms of the parameters in which the methods differ most; an outer one first, where there is one."""
    apart = np.array(
        [max(distance(part[:2000, j], truth.samples[::8, j]) for part in samples.values()) for j in range(len(names))]
    )
    order = list(np.argsort(-apart))
    if outer.any():
        order = sorted(order, key=lambda place: (not outer[place], -apart[place]))
        order = [order[0], *sorted(order[1:], key=lambda place: -apart[place])]
    found = []
    for place in order[:_SHOWN]:
        low, high = np.quantile(truth.samples[:, place], [0.0005, 0.9995])
        edges = np.linspace(low - 0.15 * (high - low), high + 0.15 * (high - low), _BINS + 1)
        heights = lambda values, edges=edges: np.round(
            np.histogram(values, edges)[0] / len(values) / (edges[1] - edges[0]), 6
        ).tolist()
        curves = {"truth": heights(truth.samples[:, place])}
        curves |= {key: heights(part[:, place]) for key, part in samples.items()}
        found.append({"name": names[place], "edges": np.round(edges, 6).tolist(), "curves": curves})
    return found
