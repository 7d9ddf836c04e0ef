"""A nested posterior through Gaussians that were found at some outer draws."""

from typing import NamedTuple

import numpy as np

from quenched.families.member import Member, ask
from quenched.families.nested import FAR, Layout, NestedGaussian, count_features, features_of
from quenched.families.tails import lengthen, log_slopes
from quenched.families.triangle import pack

_RIDGE = 1e-9
_HIGHEST_DEGREE = 6
_MARGIN = 0.1  # of the range at the nodes, by which it may be left


class AtDraws(NamedTuple):
    """Gaussians of the inner coordinates at some outer draws: what a nested member is made from."""

    draws: np.ndarray  # (nodes, outer), by which the polynomials are found
    means: np.ndarray
    log_scales: np.ndarray  # (nodes, inner), in the layout's order
    tilts: np.ndarray  # (nodes, entries of the factor)
    covariance: np.ndarray  # the mean of the inner covariances under the outer posterior
    many: np.ndarray  # (more, outer), by which means over the outer posterior are taken that have no closed form
    n_equal: int  # the first so many stand for the outer posterior, with equal weights
    layout: Layout


def nested_member(
    outer: Member, tails: np.ndarray, places: tuple[int, ...], given: AtDraws, degree: int
) -> NestedGaussian:
    """The member whose inner Gaussians are smooth functions near the given ones; its moments are those of the mixture."""
    outer_moments = centre, covariance = _outer_moments(outer, tails, given.many)
    features_at = lambda thetas: np.asarray(features_of((thetas - centre) / np.sqrt(np.diag(covariance)), degree))
    thetas = np.asarray(lengthen(np.asarray(ask(outer, "transform", given.draws)), tails))
    features = features_at(thetas)
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
    mean, whole = _moments(thetas, places, given, outer_moments)
    scale = np.linalg.cholesky(whole)
    many = np.asarray(ask(outer, "transform", given.many))
    slopes = np.sum(features_at(lengthen(many, tails)) @ log_scales, axis=1) + np.sum(log_slopes(many, tails), axis=1)
    return NestedGaussian(  # pyright: ignore
        outer=outer,
        tails=tails,
        centre=centre,
        unit=np.sqrt(np.diag(covariance)),
        mean=mean,
        log_diagonal=np.log(np.diag(scale)),
        lower=pack(scale),
        centres=centres,
        lifts=lifts,
        log_scales=log_scales,
        tilts=fitted(tilts),
        lowest=lowest - margin,
        highest=highest + margin,
        inner_log_determinant=np.asarray(np.mean(slopes)),
        places=places,
        degree=degree,
        order=given.layout.order,
        width=given.layout.width,
        border=given.layout.border,
    )


def best_degree(dim: int, nodes: int) -> int:
    """The highest degree whose features are no more than a third of the nodes."""
    return max((d for d in range(1, _HIGHEST_DEGREE + 1) if 3 * count_features(dim, d) <= nodes), default=1)


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


def _outer_moments(outer: Member, tails: np.ndarray, many: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the outer coordinates: those of their family, unless tails are lengthened."""
    if not tails[2:].any():
        return np.asarray(outer.mean), np.asarray(ask(outer, "covariance"))
    thetas = lengthen(np.asarray(ask(outer, "transform", many)), tails)
    return thetas.mean(axis=0), np.cov(thetas.T, bias=True).reshape(len(outer.mean), -1)


def _moments(
    thetas: np.ndarray, places: tuple[int, ...], given: AtDraws, outer: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Of the mixture: the outer ones as they are, the others and what they share with the outer from the nodes."""
    equal = slice(0, given.n_equal)
    inner = np.setdiff1d(np.arange(len(places) + given.means.shape[1]), places)
    thetas, means = thetas[equal], given.means[equal]
    away, across = means - means.mean(axis=0), thetas - thetas.mean(axis=0)
    order = np.argsort(np.concatenate([np.array(places, int), inner]))
    within = given.covariance + away.T @ away / len(means)
    shared = across.T @ away / len(means)
    covariance = np.block([[outer[1], shared], [shared.T, within]])[order][:, order]
    mean = np.concatenate([outer[0], means.mean(axis=0)])[order]
    return mean, covariance
