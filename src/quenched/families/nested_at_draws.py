"""A nested posterior through Gaussians that were found at some outer draws."""

from typing import NamedTuple

import numpy as np

from quenched.families.member import Member
from quenched.families.nested import FAR, Layout, NestedGaussian, count_features, features_of
from quenched.families.triangle import pack

_RIDGE = 1e-9
_MARGIN = 0.1  # of the range at the nodes, by which it may be left


class AtDraws(NamedTuple):
    """Gaussians of the inner coordinates at some outer draws: what a nested member is made from."""

    draws: np.ndarray  # (nodes, outer), by which the polynomials are found
    means: np.ndarray
    log_scales: np.ndarray  # (nodes, inner), in the layout's order
    tilts: np.ndarray  # (nodes, entries of the factor)
    covariance: np.ndarray  # the mean of the inner covariances under the outer posterior
    n_equal: int  # the first so many stand for the outer posterior, with equal weights
    layout: Layout


def nested_member(outer: Member, places: tuple[int, ...], given: AtDraws, degree: int) -> NestedGaussian:
    """The member whose inner Gaussians are smooth functions near the given ones; its moments are those of the mixture."""
    centre, unit = np.asarray(outer.mean), np.sqrt(np.asarray(outer.variance()))
    features = np.asarray(features_of((np.asarray(outer.transform(given.draws)) - centre) / unit, degree))
    fitted = lambda values: _least_squares(features, values)
    log_scales = fitted(given.log_scales)
    spreads = np.exp(given.log_scales)[:, given.layout.places]
    centres, lifts = _means(features, given, spreads)
    rows, columns = given.layout.ends
    tilts = given.tilts * np.exp(given.log_scales[:, rows] - given.log_scales[:, columns])
    seen = np.concatenate([given.means, given.means / spreads, given.log_scales, tilts], axis=1)
    lowest, highest = seen.min(axis=0), seen.max(axis=0)
    margin = _MARGIN * (highest - lowest)
    unused = np.concatenate([np.all(centres == 0.0, axis=0), np.all(lifts == 0.0, axis=0)])
    lowest[: len(unused)][unused], highest[: len(unused)][unused] = 0.0, 0.0
    n = given.means.shape[1]
    lowest[2 * n : 3 * n], highest[2 * n : 3 * n] = -FAR, FAR  # these may go on as lines
    mean, covariance = _moments(outer, places, given)
    scale = np.linalg.cholesky(covariance)
    equal = slice(0, given.n_equal)
    log_determinant = float(np.mean(np.sum(features[equal] @ log_scales, axis=1)))
    return NestedGaussian(  # pyright: ignore
        outer=outer,
        centre=centre,
        unit=unit,
        mean=mean,
        log_diagonal=np.log(np.diag(scale)),
        lower=pack(scale),
        centres=centres,
        lifts=lifts,
        log_scales=log_scales,
        tilts=fitted(tilts),
        lowest=lowest - margin,
        highest=highest + margin,
        inner_log_determinant=np.asarray(log_determinant),
        places=places,
        degree=degree,
        order=given.layout.order,
        width=given.layout.width,
        border=given.layout.border,
    )


def best_degree(dim: int, nodes: int, most: int = 6) -> int:
    """The highest degree whose features are no more than a third of the nodes."""
    return max((d for d in range(1, most + 1) if 3 * count_features(dim, d) <= nodes), default=1)


def _means(features: np.ndarray, given: AtDraws, spreads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the means as they are, and in units of the spreads: of each coordinate those that miss less."""
    plain, lifted = _least_squares(features, given.means), _least_squares(features, given.means / spreads)
    missed = np.mean(((given.means - features @ plain) / spreads) ** 2, axis=0)
    better = np.mean((given.means / spreads - features @ lifted) ** 2, axis=0) < missed
    return np.where(better, 0.0, plain), np.where(better, lifted, 0.0)


def _least_squares(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    gram = features.T @ features
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    return np.linalg.solve(gram, features.T @ values)


def _moments(outer: Member, places: tuple[int, ...], given: AtDraws) -> tuple[np.ndarray, np.ndarray]:
    """Of the mixture: the outer ones from their family, the others and what they share with the outer from the nodes."""
    equal = slice(0, given.n_equal)
    inner = np.setdiff1d(np.arange(len(places) + given.means.shape[1]), places)
    thetas = np.asarray(outer.transform(given.draws[equal]))
    means = given.means[equal]
    away, across = means - means.mean(axis=0), thetas - thetas.mean(axis=0)
    order = np.argsort(np.concatenate([np.array(places, int), inner]))
    within = given.covariance + away.T @ away / len(means)
    shared = across.T @ away / len(means)
    covariance = np.block([[np.asarray(outer.covariance), shared], [shared.T, within]])[order][:, order]
    mean = np.concatenate([np.asarray(outer.mean), means.mean(axis=0)])[order]
    return mean, covariance
