"""Mirroring and whitening a set of points.

The whole set is whitened at once: a union of small matched blocks is exact on Gaussian posteriors too, but biased on
others, and more blocks do not cure it.
"""

import numpy as np

from quenched.draws.groups import Groups, steps


def mirror(points: np.ndarray) -> np.ndarray:
    """The points and their negatives: every odd moment is zero."""
    return np.concatenate([points, -points])


def match(points: np.ndarray, groups: Groups | None = None) -> np.ndarray:
    """The nearest points whose second moment is the identity, within each group of coordinates.

    With enough points it is the identity across groups too: a target may couple what the family does not. With fewer,
    what groups share is matched first and kept; the rest of each is made orthogonal to it, and whitened.
    """
    if groups is None or len(points) >= points.shape[1]:
        return _whiten(points)
    result = np.empty_like(points)
    # Groups of one size are whitened in one batch: a diagonal family has as many groups as coordinates.
    for shared, others in steps(groups) or ():
        fresh = points[:, others].swapaxes(0, 1)
        known = result[:, shared] / np.sqrt(len(points))
        for _ in range(2 if shared else 0):  # the second time removes what rounding left over
            fresh = fresh - known @ (known.T @ fresh)
        result[:, others] = _whiten(fresh).swapaxes(0, 1)
    return result


def smallest_matched(dim: int, groups: Groups | None = None) -> int:
    """Twice the size of the largest group: half the draws are mirror images, the rest must span it.

    Groups that overlap in a ring are only matched by matching all coordinates together.
    """
    return 2 * (dim if groups is None or steps(groups) is None else max(len(group) for group in groups))


def _whiten(points: np.ndarray) -> np.ndarray:
    """Polar factor of (..., n, d) points, scaled: symmetric whitening moves the points least."""
    if points.shape[-1] == 1:  # as many as a diagonal family has coordinates
        return points / np.sqrt(np.mean(points**2, axis=-2, keepdims=True))
    left, _, right = np.linalg.svd(points, full_matrices=False)
    return np.sqrt(points.shape[-2]) * (left @ right)
