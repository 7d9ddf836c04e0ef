"""Mirroring and whitening a set of points.

The whole set is whitened at once: a union of small matched blocks is exact on Gaussian posteriors too, but biased on
others, and more blocks do not cure it.
"""

import numpy as np


def mirror(points: np.ndarray) -> np.ndarray:
    """The points and their negatives: every odd moment is zero."""
    return np.concatenate([points, -points])


def match(points: np.ndarray, groups: tuple[tuple[int, ...], ...] | None = None) -> np.ndarray:
    """The nearest points whose second moment is the identity, within each group of coordinates.

    With enough points it is the identity across groups too: a target may couple what the family does not.
    """
    if groups is None or len(points) >= points.shape[1]:
        return _whiten(points)
    result = np.empty_like(points)
    # Groups of one size are whitened in one batch: a diagonal family has as many groups as coordinates.
    for size in sorted({len(group) for group in groups}):
        index = np.array([group for group in groups if len(group) == size])
        result[:, index] = _whiten(points[:, index].swapaxes(0, 1)).swapaxes(0, 1)
    return result


def smallest_matched(dim: int, groups: tuple[tuple[int, ...], ...] | None = None) -> int:
    """Twice the size of the largest group: half the draws are mirror images, the rest must span it."""
    return 2 * (dim if groups is None else max(len(group) for group in groups))


def _whiten(points: np.ndarray) -> np.ndarray:
    """Polar factor of (..., n, d) points, scaled: symmetric whitening moves the points least."""
    left, _, right = np.linalg.svd(points, full_matrices=False)
    return np.sqrt(points.shape[-2]) * (left @ right)
