"""The bound of a problem on one frozen set of draws, and the bound per draw: asked from the host.

A traced target is one program, whatever the number of draws. A function on the host is called between two small ones:
place the draws, and pull the gradients back to (m, L).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from quenched.arrays import Array
from quenched.compiling import let_go_with_functions, small_program
from quenched.draws import Draws
from quenched.execute import Program, Wait
from quenched.families import Member
from quenched.interrupts import obey_interrupts
from quenched.lately import Lately
from quenched.objective.bound import (
    Chunks,
    Slope,
    Totals,
    close,
    cut_up,
    log_q,
    nothing,
    pull_back,
    ratios_in_chunks,
    slope_in_chunks,
)
from quenched.objective.coordinates import Coordinates
from quenched.objective.problem import Problem
from quenched.targets import EntropyForm, Hyper

_VALUES_AT_A_TIME = 64  # few enough to stay in the cache, and one shape is compiled once
_SMALL = 2**11  # rows of terms and parameters, up to which more of them do
_VALUES_OF_SMALL = 320  # half a batch of check draws
_MOST_VALUES = 640  # whose log ratios one program has room for
_BYTES_KEPT = 2**24  # on the device, for the next fit: of each seed and size others
_NUMBERS_AT_A_TIME = 2**24  # rows of terms and parameters, times draws


class Objective:
    """The bound of a problem on one frozen set of draws."""

    def __init__(self, problem: Problem, draws: Draws):
        self.problem, self.draws = problem, draws
        self.n = draws.n
        self.executor = problem.executor(draws.n)
        self.n_evaluations = 0
        self.wait = Wait(f"the gradients of the log density at {draws.n} draws")
        self._cut_up: dict[bool, Chunks] = {}

    def on(self, draws: Draws | None = None, rows: Any = None) -> "Objective":
        """The same bound on other draws, or with other rows of data, of which it needs no more than their shapes."""
        problem = self.problem if rows is None else replace(self.problem, data=rows)
        return Objective(problem, self.draws if draws is None else draws)

    @property
    def chunks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Draws as the executor takes them, and which of them count."""
        return cut(self.draws.points, self.executor.chunk)

    def slope(
        self, coordinates: Coordinates, vector: np.ndarray, hyper: Hyper, *, profile: bool, known: Totals | None = None
    ) -> tuple[Slope, Totals]:
        """The bound and its gradient at a point, and the totals they were made of; `known` ones cost nothing."""
        if known is None:
            obey_interrupts()
            self.n_evaluations += self.n
        form, evaluate = self.problem.form, self.executor.traced
        if evaluate is None:
            totals = self._totals(*coordinates.read(vector)) if known is None else known
            return _closed(form, profile, coordinates, vector, totals, float(self.n), hyper), totals
        chunks = self._chunks(coordinates.reference.affine)
        if known is None:
            known = (_nothing if self.executor.here else nothing)(coordinates.reference, coordinates.free)
        else:
            chunks = chunks.none
        inputs = (coordinates, vector, hyper, self.problem.data, chunks, known)
        program = lambda: self.wait(_slope(self.executor.effort, evaluate, form, profile, *inputs))
        return self.executor.run(program, "slope", profile)

    def _chunks(self, affine: bool) -> Chunks:
        """On the device."""
        if affine not in self._cut_up:
            size, mirrored, frozen = self.executor.chunk, affine and self.executor.mirrors, self.draws.frozen
            on_device = _on_device if self.executor.here and frozen else partial(_cut_up, self.executor.put)
            self._cut_up[affine] = on_device(self.draws, size, mirrored)
        return self._cut_up[affine]

    def _totals(self, posterior: Member, free: Array) -> Totals:
        """Evaluate a function on the host at every draw of this posterior."""
        total = nothing(posterior, free)
        for z, counts in self.chunks:
            evaluation = self.executor.evaluate(place(posterior, z), counts, self.problem.data, free)
            total = _pulled_back(total, posterior, z, counts, evaluation)
        return total

    def slope_at(self, posterior: Member, hyper: Hyper, *, profile: bool) -> tuple[Slope, Totals]:
        """The bound at a posterior, with its gradient in the whitened coordinates of that posterior."""
        origin = Coordinates(posterior, hyper.free)
        return self.slope(origin, np.zeros(origin.size), hyper, profile=profile)

    def compile(self, posterior: Member, hyper: Hyper) -> None:
        """Have the programs made that are asked for at such a posterior, without looking at a draw."""
        origin = Coordinates(posterior, hyper.free)
        self.slope(origin, np.zeros(origin.size), hyper, profile=True, known=nothing(posterior, hyper.free))
        log_ratios(self.problem, posterior, hyper, np.zeros((0, self.problem.dim)))

    def bound(self, posterior: Member, hyper: Hyper, *, profile: bool) -> tuple[float, Hyper, Totals]:
        """The bound at a posterior; with `profile`, at its best precisions, which are returned."""
        slope, totals = self.slope_at(posterior, hyper, profile=profile)
        return float(slope.bound), slope.hyper, totals


def worth(problem: Problem, posterior: Member, hyper: Hyper, draws: Draws, *, profile: bool) -> tuple[float, Hyper]:
    """The bound of a posterior on some draws that is to be judged and not to be raised, and its precisions as in `bound`."""
    if posterior.affine or not isinstance(problem.form, EntropyForm):
        return Objective(problem, draws).bound(posterior, hyper, profile=profile)[:2]
    # Gradients would take much memory. And where the density of a bent posterior varies from draw to draw, so does the log density:
    # their difference has less noise than either.
    return float(np.mean(log_ratios(problem, posterior, hyper, draws.points))), hyper


def _cut_up(put: Callable[[np.ndarray], Array], draws: Draws, size: int, mirrored: bool) -> Chunks:
    chunks = cut_up(draws.points, size, mirrored=mirrored)
    return chunks._replace(z=put(chunks.z), counts=put(chunks.counts))


# Of draws that fits ask for again and again.
_on_device = Lately(
    partial(_cut_up, jax.device_put), lambda chunks: chunks.z.nbytes + chunks.counts.nbytes, _BYTES_KEPT
)


def _nothing(posterior: Member, free: Array) -> Totals:
    """Totals of no draws, on the device."""
    leaves, structure = jax.tree.flatten((posterior, free))
    return _zeros(structure, tuple(map(np.shape, leaves)))


def _make_zeros(structure: Any, shapes: tuple[tuple[int, ...], ...]) -> Totals:
    posterior, free = jax.tree.unflatten(structure, [np.zeros(shape) for shape in shapes])
    return jax.device_put(nothing(posterior, free))


_zeros = Lately(_make_zeros, lambda totals: sum(leaf.nbytes for leaf in jax.tree.leaves(totals)), _BYTES_KEPT)


def cut(points: np.ndarray, chunk: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Chunks of equal size with counts; the last is filled up with points that do not count."""
    for first in range(0, len(points), chunk):
        part = points[first : first + chunk]
        fill = chunk - len(part)
        counts = np.concatenate([np.ones(len(part)), np.zeros(fill)])
        yield np.concatenate([part, np.repeat(part[:1], fill, axis=0)]), counts


_slope = Program(slope_in_chunks, static_argnums=(0, 1, 2), often=True)
_ratios = Program(ratios_in_chunks, static_argnums=(0, 1))
let_go_with_functions(_slope.clear)
let_go_with_functions(_ratios.clear)
_closed = small_program(close, static_argnums=(0, 1))
_pulled_back = small_program(pull_back)
_log_q = small_program(log_q)


def place(posterior: Member, z: Array) -> Array:
    """The point of every draw; for a Gaussian, w = m + L z."""
    return posterior.transform(z) if posterior.on_host else _place(posterior, z)


@small_program
def _place(posterior: Member, z: Array) -> Array:
    return posterior.transform(z)


def log_ratios(problem: Problem, posterior: Member, hyper: Hyper, z: np.ndarray) -> np.ndarray:
    """log p(w) − log q(w) at each draw: its mean is the bound, unbiased when the draws are fresh."""
    executor, form = problem.executor(len(z)), problem.form
    if posterior.on_host:
        numbers = problem.dim + problem.n_rows
        most = _VALUES_OF_SMALL if numbers <= _SMALL else _VALUES_AT_A_TIME
        size = int(np.clip(_NUMBERS_AT_A_TIME // numbers, 1, most))
        return np.concatenate([_on_host(problem, posterior, hyper, *part) for part in cut(z, size)])
    if executor.traced is None:
        return np.concatenate([_on_host(problem, posterior, hyper, *part) for part in cut(z, executor.chunk)])
    wait, values, found = problem.wait_for_values, executor.traced_values, []
    size = min(-(-executor.values_chunk // executor.shards) * executor.shards, executor.most)
    shape = (-(-_MOST_VALUES // size), size, problem.dim)
    for first in range(0, max(len(z), 1), _MOST_VALUES):
        obey_interrupts()
        part = z[first : first + _MOST_VALUES]
        inputs = (executor.put(_filled(part, shape), once=True), -(-len(part) // size), posterior, hyper, problem.data)
        ratios = executor.run(lambda: wait(_ratios(executor.effort, values, form, *inputs)), "ratios")  # noqa: B023
        found.append(np.asarray(ratios).ravel()[: len(part)])
    return np.concatenate(found)


def _filled(points: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Points in chunks, with zeros in the places that are left."""
    if points.size == shape[0] * shape[1] * shape[2]:
        return points.reshape(shape)
    filled = np.zeros(shape)
    filled.reshape(-1, shape[2])[: len(points)] = points
    return filled


def _on_host(problem: Problem, posterior: Member, hyper: Hyper, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    form, points = problem.form, np.asarray(place(posterior, z))
    values = np.asarray(problem.executor(len(z)).values(points, problem.data, hyper.free))
    log_p = form.offset(hyper) + form.weight(hyper) * values + np.asarray(form.log_prior(points, hyper))
    return (np.asarray(log_p) - np.asarray((log_q if posterior.on_host else _log_q)(posterior, z)))[counts > 0]
