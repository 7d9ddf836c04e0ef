"""Which parameters are outer, when nobody says: the few that many rows see whole, and in which these are not quadratic."""

from typing import Any

import jax
import numpy as np

from quenched.compiling import compiled
from quenched.draws import Purpose, generator
from quenched.targets import LocalTerm, Model, local_terms, log_density_of
from quenched.transforms import Space

_MOST = 12  # outer coordinates that are chosen unasked
_SAME = 1e-8


def outer_leaves(model: Model, space: Space, point: np.ndarray) -> list[str]:
    """Names of leaves.

    Raises
    ------
    ValueError
        Where they cannot be found: for a log density without known terms, and when there are none or too many.
    """
    names = [leaf.name for leaf in space.leaves]
    if model.target.terms is None:
        raise ValueError(
            f"outer: is missing; name the few parameters with which the spread of the others changes, e.g. "
            f"outer=[{names[-1]!r}]. They are found only for a sum of terms."
        )
    local = local_terms(model.target.terms, model.target.data, space, jacobian=False)
    found = {
        part.leaf
        for term in local
        if term.n > 1 and term.term is not None
        for part, piece in zip(term.term.parts, term.pieces, strict=True)
        if part.kind == "whole" and not _quadratic(term, part.leaf, piece, point, model.data)
    }
    chosen = [name for name in names if name in found]
    size = sum(int(np.prod(leaf.real_shape)) for leaf in space.leaves if leaf.name in found)
    if not chosen:
        raise ValueError(
            "outer: no parameter is seen whole by many rows and changes their spread; name those that do, "
            f"e.g. outer=[{names[-1]!r}], or use quenched.fit(...)."
        )
    if size > _MOST:
        raise ValueError(
            f"outer: the parameters that many rows see whole ({', '.join(chosen)}) have {size} coordinates, more than {_MOST}; "
            "name the few with which the spread of the others changes."
        )
    return chosen


def _quadratic(term: LocalTerm, leaf: str, piece: Any, point: np.ndarray, data: Any) -> bool:
    """Whether rows are quadratic in all that they see of a leaf, everything else held."""
    first = 0
    for sight, one in zip(term.sights, term.pieces, strict=True):
        if sight.part.leaf == leaf:
            break
        first += one.size
    own = slice(first, first + piece.size)
    random = generator(0, Purpose.STARTS)
    rows = np.unique(np.linspace(0, term.n - 1, min(term.n, 16)).astype(int))
    held = jax.tree.map(lambda array: array[rows], term.held)
    base = term.gather(point)[rows] + random.standard_normal((len(rows), term.size))
    value = lambda part, numbers, own_row: log_density_of(
        term.term, term.sights, jax.numpy.asarray(numbers).at[own].set(part), own_row, data
    )
    curvature = compiled(jax.vmap(jax.hessian(value), in_axes=(0, 0, 0)))
    at = lambda: base[:, own] + random.standard_normal(base[:, own].shape)
    one, other = (np.asarray(curvature(at(), base, held)) for _ in range(2))
    return bool(np.allclose(one, other, rtol=_SAME, atol=_SAME * max(np.abs(one).max(), 1e-300)))
