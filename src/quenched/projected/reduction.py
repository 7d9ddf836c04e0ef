"""Terms that see several numbers but depend on fewer: a sum of effects is one number.

A row written as y | a + b + x·w sees three numbers and depends on their sum alone, for which quadrature is all but exact. So
the slopes of the rows are looked at, at random points: if all lie in a space of fewer dimensions, the log density is
constant along the others, and it is made sure that it is.
"""

from typing import NamedTuple

import jax
import numpy as np

from quenched.draws import Purpose, generator
from quenched.objective import Problem
from quenched.projected.programs import programs_of
from quenched.targets import LocalTerm

_MOST = 16  # numbers; terms that see more are taken as they are
_ROWS = 256  # whose slopes are looked at
_POINTS = 3  # that each row is looked at
_SAME = 1e-9
_NEW = 1e-3  # length of what a number has to itself, below which rounding would choose a direction


class Reduction(NamedTuple):
    """u = forth v: the combinations that matter, with back u one of the v that give them; None where all do."""

    forth: np.ndarray | None = None
    back: np.ndarray | None = None
    alone: np.ndarray = np.zeros(0, int)  # numbers that are combinations of their own, the first of them in this order

    def project(self, means: np.ndarray, covariances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gaussians of the combinations."""
        if self.forth is None:
            return means, covariances
        return means @ self.forth.T, _between(self.forth, covariances)

    def spread(self, means: np.ndarray, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvature of the numbers, from those of the combinations."""
        if self.forth is None:
            return means, curvature
        return means @ self.forth, _between(self.forth.T, curvature)

    def size(self, numbers: int) -> int:
        """Combinations of so many numbers."""
        return numbers if self.forth is None else len(self.forth)

    def leaving(self, alone: np.ndarray) -> "Reduction":
        """The same for numbers of which some are stretched before they are combined: those stand alone, and come first."""
        if not alone.any():
            return self
        if alone.all():
            return Reduction(alone=np.arange(len(alone)))
        forth = np.eye(len(alone)) if self.forth is None else self.forth
        _, sizes, directions = np.linalg.svd(forth[:, ~alone], full_matrices=False)
        others = directions[sizes > _SAME] if sizes.size else directions[:0]
        chosen = np.zeros((int(alone.sum()) + len(others), len(alone)))
        chosen[np.arange(alone.sum()), np.flatnonzero(alone)] = 1.0
        chosen[alone.sum() :, ~alone] = others
        return Reduction(chosen, chosen.T.copy(), np.flatnonzero(alone))


def _between(left: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """left M leftᵀ for many small matrices M, as one product: one by one, they would take ten times as long."""
    size, n = len(left), len(middles)
    return (middles.reshape(n, -1) @ np.kron(left, left).T).reshape(n, size, size)


def reduction(term: LocalTerm, problem: Problem) -> Reduction:
    """The combinations that all rows of a term depend on, looked for around zero on the real line."""
    size = term.size
    if not 1 < size <= _MOST or term.term is None:
        return Reduction()
    random, programs = generator(0, Purpose.TERMS), programs_of(term, problem)
    rows = np.unique(np.linspace(0, term.n - 1, min(term.n, _ROWS)).astype(int))
    at = lambda n: random.standard_normal((_POINTS, n, size))
    ask = lambda program, points, held: np.asarray(program(points, held, problem.data[1], problem.hyper.free))
    held = jax.tree.map(lambda array: array[rows], term.held)
    slopes = ask(programs.gradients, at(len(rows)), held).reshape(-1, size)
    lengths = np.linalg.norm(slopes, axis=1)
    if not np.isfinite(slopes).all() or not lengths.max() > 0.0:
        return Reduction()
    directions = slopes[lengths > 1e-8 * lengths.max()]
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    _, singular, right = np.linalg.svd(directions, full_matrices=False)
    rank = int(np.sum(singular > _SAME * singular[0]))
    if rank == size:
        return Reduction()
    forth = _basis(right[:rank])
    points = at(term.n)
    values, images = (ask(programs.values, there, term.held) for there in (points, points @ forth.T @ forth))
    same = np.abs(images - values) < _SAME * (1.0 + np.abs(values))
    return Reduction(forth, forth.T.copy()) if same.all() else Reduction()


def _basis(spanning: np.ndarray) -> np.ndarray:
    """Orthonormal rows that span what these do, which depend on nothing else: draws live in their coordinates.

    What each number by itself has in that space, made orthogonal to those before it.
    """
    found = np.zeros((0, spanning.shape[1]))
    for shadow in spanning.T @ spanning:
        for _ in range(2):  # once more, for rounding
            shadow = shadow - found.T @ (found @ shadow)
        length = np.linalg.norm(shadow)
        if length > _NEW and len(found) < len(spanning):
            found = np.vstack([found, shadow / length])
    return found
