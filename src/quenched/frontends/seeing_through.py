"""A log density of another package as a sum of terms, read off the program that JAX makes of it.

The value is followed back through sums to the arrays that are summed. Every entry of such an array is a row of a term; what a row
needs of the parameters (`row_by_row`) is what it sees. So plates, indices and linear predictors need not be declared again.
What was read is compared with the log density itself, and not used where they differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from quenched.compiling import compiled
from quenched.frontends.graph import graph_of
from quenched.frontends.row_by_row import Positions
from quenched.frontends.row_densities import RowDensity, plan_of
from quenched.frontends.summands import Summand, terms_of
from quenched.targets import Target, each, sum_of
from quenched.targets import whole as all_of_it

FEWEST = 100  # parameters from which on it is worth it: fewer are fitted at once, and need no structure
_MOST_SEEN = 40  # numbers of a row
_MOST_ROWS = 20_000_000
_SAME = 1e-8  # relative
_PROBES = 2


@dataclass(frozen=True)
class Reading:
    """A sum of terms on the real line, or the reason why there is none."""

    target: Target | None
    says: str


def see_through(log_density: Callable[[Any], Any], start: Mapping[str, np.ndarray]) -> Reading:
    """Read a log density on the real line as a sum of terms.

    Parameters
    ----------
    log_density
        Of the parameters on the real line, by name, with all data inside.
    start
        A point at which it is finite.
    """
    dim = sum(int(np.size(value)) for value in start.values())
    if dim < FEWEST:
        return Reading(None, "")
    whole_one = f"The model was fitted whole, as one function of all {dim} numbers: "
    try:
        target, n_rows, kinds, most = _read(log_density, dict(start))
    except Exception as error:  # of whatever kind: the model itself may still be right
        return Reading(None, f"{whole_one}it could not be taken apart ({str(error).splitlines()[0][:120]}).")
    if most > _MOST_SEEN:
        return Reading(None, f"{whole_one}some of its terms see {most} of them, so that taking it apart gains nothing.")
    if not _agrees(log_density, target, start):
        return Reading(None, f"{whole_one}its terms do not add up to it.")
    told = f"The model was seen through, as a sum of {n_rows:,} terms of {kinds} kinds"
    return Reading(target, f"{told} that see at most {most} of its {dim:,} numbers each.")


def _agrees(log_density: Callable, target: Target, start: Mapping[str, np.ndarray]) -> bool:
    of_terms = compiled(lambda point: target.function(point, (target.data, None)))
    of_model = compiled(log_density)
    for probe in range(1, _PROBES + 1):
        moved = lambda value: 0.2 * np.sin(probe + np.sqrt(2.0) * np.arange(np.size(value))).reshape(np.shape(value))  # noqa: B023
        point = {name: value + moved(value) for name, value in start.items()}
        ours, theirs = float(of_terms(point)), float(of_model(point))
        if not (abs(ours - theirs) <= _SAME * max(1.0, abs(theirs))):
            return False
    return True


def _read(log_density: Callable, start: dict[str, np.ndarray]) -> tuple[Target, int, int, int]:
    names = sorted(start)
    graph = graph_of(log_density, start, names)
    terms, most, n_rows = [], 0, 0
    for summand in terms_of(graph):
        found, n, seen = _term(summand, {name: np.shape(start[name]) for name in names})
        if found is not None:
            terms.append(found)
            n_rows, most = n_rows + n, max(most, seen)
    target = sum_of(*terms)
    structure = replace(target.terms, on_real_line=True)
    return replace(target, function=structure, terms=structure, on_real_line=True), n_rows, len(terms), most


def _term(summands: list[Summand], shapes: dict[str, tuple[int, ...]]) -> tuple[Any, int, int]:
    """The term of some summands with the same rows, the number of its rows, and the numbers that a row sees."""
    shape = summands[0].node.shape
    n = int(np.prod(shape))
    if n > _MOST_ROWS:
        raise ValueError(f"it has an array of {n} entries")
    if not n:
        return None, 0, 0
    places = np.unravel_index(np.arange(n), shape) if n > 1 else ()
    ask = tuple(None if size == 1 else Positions(at) for size, at in zip(shape, places, strict=n > 1))
    plan = plan_of(summands, ask, n, frozenset(), shapes)
    refused = frozenset(name for name, what in plan.sees.items() if what is None)
    plan = plan_of(summands, ask, n, refused, shapes)  # no predictors of what is seen whole anyway
    if not plan.sees:
        return _constant(summands, shapes), 1, 1
    times = 1.0 if plan.by_row else float(n)  # all rows alike are one
    function = RowDensity(tuple(summands), ask, plan, times)
    seen = sum(_numbers(shapes[name], what) for name, what in plan.sees.items())
    sees = {name: all_of_it if what is None else what for name, what in plan.sees.items()}
    return each(function, dict(plan.rows) or None, sees=sees), n if plan.by_row else 1, seen


def _constant(summands: list[Summand], shapes: dict[str, tuple[int, ...]]) -> Any:
    """What depends on no parameter, as a term that sees the smallest one and does not look."""
    total = sum(one.sign * _factor(one) * float(np.sum(one.node.value)) for one in summands)  # pyright: ignore
    smallest = min(shapes, key=lambda name: int(np.prod(shapes[name])))
    return each(_Number(float(total)), sees={smallest: all_of_it})


def _factor(one: Summand) -> float:
    found = 1.0
    for node, divides in one.factors:
        found = found / float(node.value) if divides else found * float(node.value)  # pyright: ignore
    return found


def _numbers(shape: tuple[int, ...], what: Any) -> int:
    if what is None:
        return int(np.prod(shape))
    several = what.shape[1] if isinstance(what, np.ndarray) and what.ndim == 2 else 1
    return several * int(np.prod(shape[1:]))


@dataclass(frozen=True)
class _Number:
    """A constant."""

    value: float

    def __call__(self, seen: Any) -> Any:
        return jnp.asarray(self.value)
