"""Expectation propagation (Minka 2001) for sums of terms: every term is replaced by a Gaussian of the numbers that it sees.

The Gaussian of a term (its site) is chosen such that, with the sites of all others, it has the moments that the term itself
would give. Terms that are quadratic already are their own sites. All sites are renewed in parallel, with damping.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.fitting import assess, ready, told, with_hints
from quenched.nesting import Dense, RowArrays, Rows, Split, read_rows
from quenched.outcome import Status
from quenched.result import Fit
from quenched.targets import Model, Target, check_terms, local_terms, read_model
from quenched.transforms import describe_space

_NODES = 64  # of quadrature in one number
_MOST_ROUNDS = 200
_AT_REST = 1e-8
_DAMPING = 0.7  # share of the new site
_LOG_TWO_PI = float(np.log(2.0 * np.pi))


@with_hints
def expectation_propagation(
    target: Target | Model,
    start: Any = None,
    *,
    data: Any = None,
    transforms: Any = None,
    seed: int = 0,
    check: int | None = None,
    throw: bool = True,
    progress: bool = True,
) -> Fit:
    """Expectation propagation, to compare with `fit`.

    Parameters
    ----------
    target
        A sum of terms (`sum_of`), each of which depends on few combinations of the parameters.
    start, data, transforms, seed, check, throw, progress
        As in `fit`.

    Returns
    -------
    Fit
        `settings["log_evidence"]` is EP's own estimate; `bound` and `check_bound` show what its Gaussian loses against
        `fit`.

    Raises
    ------
    ValueError
        For a target whose terms are not known.
    """
    began = time.perf_counter()
    model = read_model(target, start, transforms=transforms, data=data)
    if model.target.terms is None:
        raise ValueError(
            "target: expectation propagation needs known terms; write it as quenched.sum_of(quenched.each(...))."
        )
    with ready(model, False, None):
        space, point = describe_space(model.start, model.transforms)
        check_terms(model.target.terms, model.target.data, space, model.data, None)
        divided = Split(space, ())
        local = local_terms(model.target.terms, model.target.data, space)
        terms = [
            _read(*read_rows(term, divided, Dense(space.dim), point, model.data, seed), space.dim, point, model.data)
            for term in local
        ]
        found = _propagate(terms, point, model.data)
    if not np.isfinite(found.mean).all():
        raise ValueError("start: the sites of expectation propagation have no proper Gaussian there; start elsewhere.")
    judged = assess(model, (found.mean, found.covariance), seed=seed, check=check, throw=False, progress=progress)
    status = Status.CONVERGED if found.converged else Status.MAX_EVALUATIONS
    note = f"EP's estimate of the log evidence is {found.log_evidence:.4f} nats, after {found.rounds} rounds."
    settings = {**judged.settings, "method": "expectation propagation", "log_evidence": found.log_evidence}
    result = replace(
        judged,
        status=status if np.isfinite(judged.bound) else judged.status,
        message=f"{status.message} {note}",
        settings=settings,
        seconds=time.perf_counter() - began,
    )
    return told(result, throw)


@dataclass(frozen=True, eq=False)
class _Sites:
    """Terms of one kind: what their rows see, and whether they are Gaussian already."""

    rows: Rows
    arrays: RowArrays
    maps: np.ndarray  # (rows, size, dim)
    exact: tuple[np.ndarray, np.ndarray, float] | None  # precision, shift and constant of those that are quadratic


class _Found(NamedTuple):
    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: float
    rounds: int
    converged: bool


def _read(rows: Rows, arrays: RowArrays, dim: int, point: np.ndarray, given: Any) -> _Sites:
    size, maps = arrays.maps.values.shape[1], arrays.maps.dense(dim)
    quadratic = len(arrays.z) == 2 * size
    if not quadratic:
        nodes = _nodes(size, arrays)
        return _Sites(rows, arrays._replace(z=nodes[0], weights=nodes[1]), maps, None)
    centre = maps @ point
    value, slope, curved = (np.asarray(part) for part in _second_order(rows, arrays, centre, given))
    shift = slope - np.einsum("nij,nj->ni", curved, centre)  # of exp(shift·v − ½ vᵀ precision v)
    constant = np.sum(
        value - np.einsum("ni,ni->n", slope, centre) + 0.5 * np.einsum("ni,nij,nj->n", centre, curved, centre)
    )
    return _Sites(rows, arrays, maps, (-curved, shift, float(constant)))


def _nodes(size: int, arrays: RowArrays) -> tuple[np.ndarray, np.ndarray]:
    if size > 1:
        return np.asarray(arrays.z), np.asarray(arrays.weights)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes[:, None], weights / weights.sum()


def _propagate(terms: list[_Sites], point: np.ndarray, given: Any) -> _Found:
    dim = len(point)
    fixed_precision, fixed_shift, constant = np.zeros((dim, dim)), np.zeros(dim), 0.0
    for term in terms:
        if term.exact is not None:
            precision, shift, own = term.exact
            fixed_precision += np.einsum("nri,nrs,nsj->ij", term.maps, precision, term.maps)
            fixed_shift += np.einsum("nri,nr->i", term.maps, shift)
            constant += own
    moving = [term for term in terms if term.exact is None]
    sites = [_first_sites(term, point, given) for term in moving]
    scales = [np.zeros(len(term.maps)) for term in moving]
    mean, covariance, total, converged, rounds = point, np.full((dim, dim), np.nan), np.nan, False, 0
    while rounds < _MOST_ROUNDS:
        rounds += 1
        precision, shift = fixed_precision.copy(), fixed_shift.copy()
        for term, (tau, nu) in zip(moving, sites, strict=True):
            precision += np.einsum("nri,nrs,nsj->ij", term.maps, tau, term.maps)
            shift += np.einsum("nri,nr->i", term.maps, nu)
        factor = np.linalg.cholesky(precision) if np.isfinite(precision).all() else np.full((dim, dim), np.nan)
        covariance = np.linalg.inv(factor).T @ np.linalg.inv(factor)
        before, mean = mean, covariance @ shift
        log_normaliser = 0.5 * shift @ mean - np.sum(np.log(np.diag(factor))) + 0.5 * dim * _LOG_TWO_PI
        total = float(constant + log_normaliser + sum(scale.sum() for scale in scales))
        if converged or not np.isfinite(mean).all():
            break
        change = np.max(np.abs(mean - before) / np.sqrt(np.diag(covariance)))
        for place, term in enumerate(moving):
            sites[place], scales[place], moved = _renewed(term, sites[place], mean, covariance, given)
            change = max(change, moved)
        converged = bool(change < _AT_REST)
    return _Found(mean, covariance, total, rounds, converged)


def _first_sites(term: _Sites, point: np.ndarray, given: Any) -> tuple[np.ndarray, np.ndarray]:
    """The curvature at the start, where it is negative."""
    centre = term.maps @ point
    _, slope, curved = (np.asarray(part) for part in _second_order(term.rows, term.arrays, centre, given))
    values, vectors = np.linalg.eigh(-curved)
    tau = np.einsum("nij,nj,nkj->nik", vectors, np.maximum(values, 1e-6), vectors)
    return tau, slope + np.einsum("nij,nj->ni", tau, centre)


def _renewed(term: _Sites, sites: Any, mean: np.ndarray, covariance: np.ndarray, given: Any) -> Any:
    """Sites with the moments of the terms themselves, what they add to the log evidence, and how far they moved."""
    tau, nu = sites
    means = term.maps @ mean
    covariances = np.einsum("nri,ij,nsj->nrs", term.maps, covariance, term.maps)
    inverse = np.linalg.inv(covariances)
    cavity, cavity_shift = inverse - tau, np.einsum("nij,nj->ni", inverse, means) - nu
    proper = np.linalg.eigvalsh(cavity)[:, 0] > 1e-10 * np.linalg.eigvalsh(inverse)[:, 0]
    cavity = np.where(proper[:, None, None], cavity, inverse)
    cavity_shift = np.where(proper[:, None], cavity_shift, np.einsum("nij,nj->ni", inverse, means))
    log_mass, tilted_mean, tilted = (
        np.asarray(part)
        for part in _tilted(term.rows, term.arrays, means, np.linalg.cholesky(covariances), cavity, cavity_shift, given)
    )
    wanted = np.linalg.inv(tilted)
    new_tau, new_nu = wanted - cavity, np.einsum("nij,nj->ni", wanted, tilted_mean) - cavity_shift
    good = proper & np.isfinite(new_tau).all(axis=(1, 2)) & np.isfinite(new_nu).all(axis=1)
    step = lambda new, old: np.where(good.reshape(-1, *(1,) * (old.ndim - 1)), old + _DAMPING * (new - old), old)
    moved = np.max(
        np.abs(np.where(good[:, None], tilted_mean - means, 0.0)) / np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    )
    scales = (
        log_mass + _normaliser(cavity, cavity_shift) - _normaliser(inverse, np.einsum("nij,nj->ni", inverse, means))
    )
    spread = np.max(
        np.abs(np.where(good[:, None, None], tilted - covariances, 0.0))
        / np.abs(np.diagonal(covariances, axis1=1, axis2=2)).max()
    )
    return (step(new_tau, tau), step(new_nu, nu)), scales, float(max(moved, spread))


def _normaliser(precision: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """log ∫ exp(shift·v − ½ vᵀ precision v), without the constant that differences lose."""
    quadratic = np.einsum("ni,ni->n", shift, np.linalg.solve(precision, shift[:, :, None])[:, :, 0])
    return 0.5 * quadratic - 0.5 * np.linalg.slogdet(precision)[1]


@partial(jax.jit, static_argnums=0)
def _second_order(rows: Rows, arrays: RowArrays, centre: Any, given: Any) -> Any:
    value = lambda v, own: rows.log_density(arrays.back @ v, jnp.zeros(0), own, given)
    of_row = lambda v, own: (value(v, own), jax.grad(value)(v, own), jax.hessian(value)(v, own))
    return jax.vmap(of_row)(centre, arrays.own)


@partial(jax.jit, static_argnums=0)
def _tilted(rows: Rows, arrays: RowArrays, means: Any, factors: Any, cavity: Any, shift: Any, given: Any) -> Any:
    """Log mass, mean and covariance of term times cavity, by points of the current marginal, which is near to it."""

    def of_row(mean, factor, precision, shift, own):
        points = mean + arrays.z @ factor.T
        value = jax.vmap(lambda v: rows.log_density(arrays.back @ v, jnp.zeros(0), own, given))(points)
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
