"""Denoising the images of one person by several methods (Sec. 3.5)."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.ndimage import median_filter
from sklearn.decomposition import PCA

from quenched.draws import iid
from quenched.fitting import Alternating
from quenched.models import PPCA, CauchyPPCA

COMPONENTS, PAPER_DRAWS = 2, 16
CLIP = 1.5  # standard deviations; chosen in favour of clipping, among 0.5 to 3 on five people
_CORRUPTED = 1 / 3


def corrupt(images: np.ndarray, seed: int, repetition: int = 0) -> tuple[np.ndarray, np.ndarray, int]:
    """Images as rows in seeded order, the same with a third of their pixels uniform on 0 to 255, and half their number."""
    random = np.random.default_rng([15 + repetition, seed])
    rows = images.reshape(len(images), -1).astype(np.float64)[random.permutation(len(images))]
    noisy = rows.copy()
    n_corrupted = round(_CORRUPTED * rows.shape[1])
    for row in noisy:
        row[random.choice(row.size, n_corrupted, replace=False)] = random.integers(0, 256, n_corrupted)
    return rows, noisy, len(rows) // 2


def distance(original: np.ndarray, reconstructed: np.ndarray) -> np.ndarray:
    """‖original − reconstructed‖² / ‖original‖² of every row: the measure of the paper."""
    return np.sum((original - reconstructed) ** 2, axis=1) / np.sum(original**2, axis=1)


def by_cauchy_ppca(
    train: np.ndarray, test: np.ndarray, mode: str, seed: int, max_rounds: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Reconstructions of the test rows and what is known of the fit."""
    options: dict[str, Any] = {}
    if mode == "paper":
        draws = iid(PAPER_DRAWS, COMPONENTS * len(train), seed)
        options = {"draws": draws, "method": Alternating(max_rounds=max_rounds)}
    model = CauchyPPCA(COMPONENTS, random_state=seed, **options)
    began = time.perf_counter()
    with warnings.catch_warnings():  # the paper's rounds are cut off; its status is in the result
        warnings.simplefilter("ignore")
        model.fit(train)
    details = {
        "fit_seconds": time.perf_counter() - began,
        "status": str(model.fit_.status),
        "bound": model.bound_,
        "gap": model.fit_.gap,
        "evaluations": model.fit_.n_evaluations,
        "noise_scale": model.noise_scale_,
    }
    return model.inverse_transform(model.transform(test)), details


def by_others(train: np.ndarray, test: np.ndarray, size: tuple[int, ...]) -> dict[str, Callable[[], np.ndarray]]:
    """What the paper compares with, and what one would reach for instead; each gives reconstructions when called."""

    def filtered(rows: np.ndarray) -> np.ndarray:
        return median_filter(rows.reshape(-1, *size), size=(1, 3, 3)).reshape(rows.shape)

    def through(model: Any, fitted: np.ndarray, new: np.ndarray) -> np.ndarray:
        return model.inverse_transform(model.fit(fitted).transform(new))

    middle = np.median(train, axis=0)
    reach = 1.4826 * np.median(np.abs(train - middle), axis=0)  # the standard deviation, if the pixel were Gaussian
    clipped = lambda rows: np.clip(rows, middle - CLIP * reach, middle + CLIP * reach)
    return {
        "PPCA": lambda: through(PPCA(COMPONENTS), train, test),
        "PCA, clipped": lambda: through(PCA(COMPONENTS, random_state=0), clipped(train), clipped(test)),
        "PCA, median filter": lambda: through(PCA(COMPONENTS, random_state=0), filtered(train), filtered(test)),
        "median filter alone": lambda: filtered(test),
    }
