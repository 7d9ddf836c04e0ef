"""Sites of expectation propagation: the Gaussians that stand for terms, and the moments that they must have.

Terms are read as `nested` reads them: by the few combinations of parameters that a row depends on. Terms that are
quadratic are their own sites, and never renewed.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.compiling import program
from quenched.families import Pattern, make_pattern
from quenched.nesting import RowArrays, Split, TermRows, read_rows, seen_by

_NODES = 64  # of quadrature in one number
_PROPER = 1e-10  # of a precision, relative


class Gaussians(NamedTuple):
    """exp(shift·v − ½ vᵀ precision v) for every row."""

    precision: np.ndarray  # (rows, size, size)
    shift: np.ndarray  # (rows, size)


@dataclass(frozen=True, eq=False)
class Sites:
    """Terms of one kind: which combinations of the parameters their rows see, and at which points they are asked."""

    rows: TermRows
    arrays: RowArrays
    columns: np.ndarray  # (rows, few)
    values: np.ndarray  # (rows, size, few)
    places: np.ndarray  # of pairs of columns in the pattern, (rows, few, few)
    once: np.ndarray  # which of the pairs count, since the pattern keeps one of two
    exact: tuple[Gaussians, float] | None  # of those that are quadratic, with their constant

    def means(self, mean: np.ndarray) -> np.ndarray:
        """Of what the rows see, (rows, size)."""
        return np.einsum("nrk,nk->nr", self.values, mean[self.columns])

    def covariances(self, entries: np.ndarray) -> np.ndarray:
        """Of what the rows see, from the entries of a covariance on the pattern."""
        half = np.einsum("nrk,nkj->nrj", self.values, entries[self.places])
        return np.einsum("nrj,nsj->nrs", half, self.values)

    def add(self, sites: Gaussians, precision: np.ndarray, shift: np.ndarray) -> None:
        """Add the sites to a precision on the pattern and to a shift."""
        half = np.einsum("nrs,nsj->nrj", sites.precision, self.values)
        own = np.einsum("nrk,nrj->nkj", self.values, half)[self.once]
        precision += np.bincount(self.places[self.once], own, len(precision))
        np.add.at(shift, self.columns, np.einsum("nrk,nr->nk", self.values, sites.shift))


def read_sites(local: Any, split: Split, point: np.ndarray, given: Any, seed: int) -> tuple[list[Sites], Pattern]:
    """All terms of a sum, and the pattern of the precision that they make together."""
    seen = [seen_by(term, split)[0] for term in local]
    pairs = [np.broadcast_arrays(columns[:, :, None], columns[:, None, :]) for columns in seen]
    ends = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    pattern = make_pattern(len(point), *ends)
    terms = [
        _read(*read_rows(term, split, pattern, point, given, seed), columns, pattern, point, given)
        for term, columns in zip(local, seen, strict=True)
    ]
    return terms, pattern


def _read(
    rows: TermRows, arrays: RowArrays, columns: np.ndarray, pattern: Pattern, point: np.ndarray, given: Any
) -> Sites:
    values = np.asarray(arrays.maps.values)
    size = values.shape[1]
    places = pattern.places(columns[:, :, None], columns[:, None, :])
    once = columns[:, :, None] >= columns[:, None, :]
    quadratic = len(arrays.z) == 2 * size
    if not quadratic and size == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        arrays = arrays._replace(z=nodes[:, None], weights=weights / weights.sum())
    sites = Sites(rows, arrays, columns, values, places, once, None)
    if not quadratic:
        return sites
    centre = sites.means(point)
    value, slope, curved = (np.asarray(part) for part in second_order(rows, arrays, centre, given))
    shift = slope - np.einsum("nij,nj->ni", curved, centre)
    constant = np.sum(
        value - np.einsum("ni,ni->n", slope, centre) + 0.5 * np.einsum("ni,nij,nj->n", centre, curved, centre)
    )
    return Sites(rows, arrays, columns, values, places, once, (Gaussians(-curved, shift), float(constant)))


def first_sites(term: Sites, point: np.ndarray, given: Any) -> Gaussians:
    """The curvature at the start, where it is negative."""
    centre = term.means(point)
    _, slope, curved = (np.asarray(part) for part in second_order(term.rows, term.arrays, centre, given))
    values, vectors = np.linalg.eigh(-np.nan_to_num(curved))
    tau = np.einsum("nij,nj,nkj->nik", vectors, np.maximum(values, 1e-6), vectors)
    return Gaussians(tau, np.nan_to_num(slope) + np.einsum("nij,nj->ni", tau, centre))


class Renewed(NamedTuple):
    """Sites that have the moments of the terms, what they add to the log evidence, and how far off those before were."""

    wanted: Gaussians
    log_scale: np.ndarray
    change: float


def renewed(term: Sites, sites: Gaussians, mean: np.ndarray, entries: np.ndarray, given: Any) -> Renewed:
    """Match the moments of every term; where that leads to no Gaussian, the site stays as it is."""
    means, covariances = term.means(mean), term.covariances(entries)
    inverse = np.linalg.inv(covariances)
    shift = np.einsum("nij,nj->ni", inverse, means)
    cavity, cavity_shift = inverse - sites.precision, shift - sites.shift
    proper = np.linalg.eigvalsh(cavity)[:, 0] > _PROPER * np.linalg.eigvalsh(inverse)[:, 0]
    cavity = np.where(proper[:, None, None], cavity, inverse)
    cavity_shift = np.where(proper[:, None], cavity_shift, shift)
    factors = np.linalg.cholesky(covariances)
    log_mass, tilted_mean, tilted = (
        np.asarray(part) for part in _tilted(term.rows, term.arrays, means, factors, cavity, cavity_shift, given)
    )
    good = proper & np.isfinite(tilted).all(axis=(1, 2)) & np.isfinite(tilted_mean).all(axis=1)
    tilted = np.where(good[:, None, None], tilted, covariances)
    good &= np.linalg.eigvalsh(tilted)[:, 0] > _PROPER * np.linalg.eigvalsh(covariances)[:, 0]
    tilted = np.where(good[:, None, None], tilted, covariances)
    precision = np.linalg.inv(tilted)
    wanted = Gaussians(
        np.where(good[:, None, None], precision - cavity, sites.precision),
        np.where(good[:, None], np.einsum("nij,nj->ni", precision, tilted_mean) - cavity_shift, sites.shift),
    )
    spreads = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    moved = np.where(good[:, None], np.abs(tilted_mean - means), 0.0) / spreads
    wider = np.abs(tilted - covariances) / (spreads[:, :, None] * spreads[:, None])
    log_scale = log_mass + _normaliser(cavity, cavity_shift) - _normaliser(inverse, shift)
    stuck = np.inf if not good.all() else 0.0  # a site that has no moments to match is not at rest
    return Renewed(wanted, log_scale, float(max(moved.max(initial=0.0), wider.max(initial=0.0), stuck)))


def _normaliser(precision: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """log ∫ exp(shift·v − ½ vᵀ precision v), without the constant that differences lose."""
    quadratic = np.einsum("ni,ni->n", shift, np.linalg.solve(precision, shift[:, :, None])[:, :, 0])
    return 0.5 * quadratic - 0.5 * np.linalg.slogdet(precision)[1]


@partial(program, of_functions=True, static_argnums=0)
def second_order(rows: TermRows, arrays: RowArrays, centre: Any, given: Any) -> Any:
    """Values, slopes and curvatures of all rows in the combinations that they see."""
    value = lambda v, own: rows.at(v, jnp.zeros(0), own, given)
    of_row = lambda v, own: (value(v, own), jax.grad(value)(v, own), jax.hessian(value)(v, own))
    return jax.vmap(of_row)(centre, arrays.own)


@partial(program, of_functions=True, static_argnums=0)
def _tilted(rows: TermRows, arrays: RowArrays, means: Any, factors: Any, cavity: Any, shift: Any, given: Any) -> Any:
    """Log mass, mean and covariance of term times cavity, by points of the current marginal, which is near to it."""

    def of_row(mean, factor, precision, shift, own):
        points = mean + arrays.z @ factor.T
        value = jax.vmap(lambda v: rows.at(v, jnp.zeros(0), own, given))(points)
        centre = jnp.linalg.solve(precision, shift)
        away = points - centre
        log_cavity = 0.5 * jnp.linalg.slogdet(precision)[1] - 0.5 * jnp.einsum("qi,ij,qj->q", away, precision, away)
        log_marginal = -jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * jnp.sum(arrays.z**2, axis=1)
        log_weights = jnp.log(arrays.weights) + value + log_cavity - log_marginal
        log_mass = jax.scipy.special.logsumexp(log_weights)
        share = jnp.exp(log_weights - log_mass)
        tilted_mean = share @ points
        spread = points - tilted_mean
        return log_mass, tilted_mean, (share[:, None] * spread).T @ spread

    return jax.lax.map(lambda row: of_row(*row), (means, factors, cavity, shift, arrays.own))


@partial(program, of_functions=True, static_argnums=0)
def log_errors(
    rows: TermRows, arrays: RowArrays, means: Any, spreads: Any, precision: Any, shift: Any, given: Any
) -> Any:
    """log E[term / site] of every row under Gaussians of the one number that it sees; means are (rows, places)."""

    def of_row(mean, spread, precision, shift, own):
        points = mean[:, None] + spread * arrays.z[:, 0]
        value = jax.vmap(jax.vmap(lambda v: rows.at(v[None], jnp.zeros(0), own, given)))(points)
        log_ratio = value - shift * points + 0.5 * precision * points**2
        return jax.scipy.special.logsumexp(log_ratio + jnp.log(arrays.weights), axis=1)

    return jax.lax.map(lambda row: of_row(*row), (means, spreads, precision, shift, arrays.own))
