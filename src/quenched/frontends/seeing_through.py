"""A log density of another package as a sum of terms, read off the program that JAX makes of it.

The value is followed back through sums to the arrays that are summed. Every entry of such an array is a row of a term; what a row
needs of the parameters (`row_by_row`) is what it sees. So plates, indices and linear predictors need not be declared again.
What was read is compared with the log density itself, and not used where they differ.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.frontends.graph import Node, graph_of, known, made
from quenched.frontends.row_by_row import Ask, Positions, Rows, row_shape, whole
from quenched.targets import Target, Unchanging, dot, each, sum_of
from quenched.targets import whole as all_of_it

FEWEST = 100  # parameters from which on it is worth it: fewer are fitted at once, and need no structure
_MOST_SEEN = 40  # numbers of a row
_MOST_ROWS = 20_000_000
_SAME = 1e-8  # relative
_PROBES = 2
_THROUGH = frozenset(("convert_element_type", "copy", "copy_p", "reshape", "squeeze", "expand_dims", "transpose"))


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
    of_terms = jax.jit(lambda point: target.function(point, (target.data, None)))
    of_model = jax.jit(log_density)
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
    for summand in _merged(_summands(graph)):
        found, n, seen = _term(summand, {name: np.shape(start[name]) for name in names})
        if found is not None:
            terms.append(found)
            n_rows, most = n_rows + n, max(most, seen)
    target = sum_of(*terms)
    structure = replace(target.terms, on_real_line=True)
    return replace(target, function=structure, terms=structure, on_real_line=True), n_rows, len(terms), most


# Sums.


@dataclass(frozen=True, eq=False)
class Summand:
    """The sum over all entries of an array, times numbers (`factors`; the inverse of those that divide)."""

    node: Node
    factors: tuple[tuple[Node, bool], ...] = ()
    sign: float = 1.0

    def of(self, node: Node, sign: float = 1.0) -> "Summand":
        return Summand(node, self.factors, self.sign * sign)


def _summands(node: Node) -> list[Summand]:
    return list(_split(Summand(node)))


def _split(one: Summand) -> Iterator[Summand]:
    node, does = one.node, one.node.does
    alone = node.shape == ()
    if node.value is not None:
        yield one.of(known(np.sum(node.value)))
    elif does in _THROUGH or does == "reduce_sum":
        yield from _split(one.of(node.inputs[0]))
    elif does == "neg":
        yield from _split(one.of(node.inputs[0], -1.0))
    elif does in ("add", "add_any", "sub") and alone:
        yield from _split(one.of(node.inputs[0]))
        yield from _split(one.of(node.inputs[1], -1.0 if does == "sub" else 1.0))
    elif does in ("mul", "div") and alone and _sums(node.inputs[0]):
        yield from _split(replace(one, node=node.inputs[0], factors=(*one.factors, (node.inputs[1], does == "div"))))
    elif does == "mul" and alone and _sums(node.inputs[1]):
        yield from _split(replace(one, node=node.inputs[1], factors=(*one.factors, (node.inputs[0], False))))
    elif does == "select_n" and alone and _always_holds(node):
        yield from _split(one.of(node.inputs[2]))
    elif does == "dot_general" and alone and len(node.inputs[0].shape) == 1:
        yield one.of(made(jax.lax.mul_p, *node.inputs, shape=node.inputs[0].shape))
    else:
        yield one


def _sums(node: Node) -> bool:
    """Whether a number is a sum of others."""
    while node.does in _THROUGH or node.does in ("neg", "mul", "div"):
        if node.does == "mul" and _sums(node.inputs[1]):
            return True
        node = node.inputs[0]
    return node.does in ("add", "sub", "reduce_sum", "dot_general") and node.value is None


def _always_holds(node: Node) -> bool:
    """Minus infinity unless all numbers of an array are finite: on the real line they are."""
    asks, otherwise = node.inputs[:2]
    if len(node.inputs) != 3 or otherwise.value is None or not np.all(np.isneginf(otherwise.value)):
        return False
    pending = [asks]
    while pending:
        one = pending.pop()
        if one.does in ("and", "reduce_and", "broadcast_in_dim", "reshape", "squeeze"):
            pending.extend(one.inputs)
        elif one.does in ("eq", "ne"):
            left, right = one.inputs
            endless = any(side.value is not None and np.all(np.isinf(side.value)) for side in one.inputs)
            if not (left is right if one.does == "eq" else endless):
                return False
        elif not (one.value is not None and one.value.all()) and one.does != "is_finite":
            return False
    return True


def _merged(summands: list[Summand]) -> list[list[Summand]]:
    """Single numbers that depend on the same parameters are one term: fewer programs to compile."""
    alone: dict[frozenset[str], list[Summand]] = {}
    several = []
    for one in summands:
        if np.prod(one.node.shape) == 1:
            alone.setdefault(_leaves(one), []).append(one)
        else:
            several.append([one])
    constants = alone.pop(frozenset(), [])
    if constants and alone:
        next(iter(alone.values())).extend(constants)
    elif constants:
        alone[frozenset()] = constants
    return [*alone.values(), *several]


def _leaves(one: Summand) -> frozenset[str]:
    found, pending, met = set(), [one.node, *(factor for factor, _ in one.factors)], set()
    while pending:
        node = pending.pop()
        if id(node) not in met:
            met.add(id(node))
            found |= set() if node.name is None else {node.name}
            pending.extend(node.inputs)
    return frozenset(found)


# Terms.


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
    plan = _noticed(summands, ask, n, frozenset()).plan(shapes)
    refused = frozenset(name for name, what in plan.sees.items() if what is None)
    plan = _noticed(summands, ask, n, refused).plan(shapes)  # no predictors of what is seen whole anyway
    if not plan.sees:
        return _constant(summands, shapes), 1, 1
    times = 1.0 if plan.by_row else float(n)  # all rows alike are one
    function = RowDensity(tuple(summands), ask, plan, times)
    seen = sum(_numbers(shapes[name], what) for name, what in plan.sees.items())
    sees = {name: all_of_it if what is None else what for name, what in plan.sees.items()}
    return each(function, dict(plan.rows) or None, sees=sees), n if plan.by_row else 1, seen


def _noticed(summands: list[Summand], ask: Ask, n: int, refused: frozenset[str]) -> "_Noticed":
    noticed = _Noticed(n, refused)
    jax.eval_shape(lambda: _total(noticed, summands, ask))
    return noticed


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


def _total(rows: Rows, summands: Any, ask: Ask) -> Any:
    total = 0.0
    for one in summands:
        value = one.sign * jnp.reshape(rows(one.node, ask or whole(one.node)), ())
        for node, divides in one.factors:
            factor = jnp.reshape(rows(node, whole(node)), ())
            value = value / factor if divides else value * factor
        total = total + value
    return total


def _numbers(shape: tuple[int, ...], what: Any) -> int:
    if what is None:
        return int(np.prod(shape))
    several = what.shape[1] if isinstance(what, np.ndarray) and what.ndim == 2 else 1
    return several * int(np.prod(shape[1:]))


@dataclass(frozen=True, eq=False)
class Plan:
    """What the rows of a term see and hold.

    Attributes
    ----------
    sees
        By leaf: None for all of it, an index, or `dot(design)`.
    entries
        By leaf that is seen by index: the positions, in the order of the index.
    rows
        Arrays by name, rows along their first axis.
    names
        Names of the arrays, by what was asked for.
    by_row
        Whether rows differ at all.
    """

    sees: dict[str, Any]
    entries: dict[str, tuple[Positions, ...]]
    rows: dict[str, np.ndarray]
    names: dict[Any, str]
    by_row: bool


class _Noticed(Rows):
    """Goes through a term once to see what its rows ask for."""

    def __init__(self, n: int, refused: frozenset[str]):
        super().__init__(n)
        self.refused = refused  # leaves that are seen whole
        self.asks: dict[str, dict[Any, None]] = {}  # of every leaf: None for all of it, positions, or a design
        self.held: dict[Any, np.ndarray] = {}

    def leaf(self, node, ask):
        first = ask[0] if ask else None
        self.asks.setdefault(str(node.name), {})[first] = None
        for at in ask[1:]:
            if at is not None:
                self.position(at)
        if first is not None:
            self.position(first)  # where the leaf is seen whole after all
        return jnp.zeros(row_shape(node, ask), node.dtype)

    def constant(self, node, ask):
        if any(at is not None for at in ask):
            self.held[id(node.value), ask] = _rows_of(node, ask)
        return jnp.zeros(row_shape(node, ask), node.dtype)

    def position(self, at):
        self.held["position", at] = at.at
        return jnp.zeros((), int)

    def predictor(self, leaf, design, at):
        if leaf.name in self.refused:
            return None
        self.asks.setdefault(str(leaf.name), {})[_Design(design.value, at)] = None
        return jnp.zeros(leaf.shape[1:], leaf.dtype)

    def plan(self, shapes: dict[str, tuple[int, ...]]) -> Plan:
        sees: dict[str, Any] = {}
        entries: dict[str, tuple[Positions, ...]] = {}
        for name, asked in self.asks.items():
            asks = list(asked)
            if len(asks) == 1 and isinstance(asks[0], _Design):
                sees[name] = dot(asks[0].rows())
            elif all(isinstance(one, Positions) for one in asks) and shapes[name] and len(asks) < shapes[name][0]:
                entries[name] = tuple(asks)
                sees[name] = asks[0].at if len(asks) == 1 else np.stack([one.at for one in asks], axis=1)
            else:
                sees[name] = None
        wholes = [name for name, what in sees.items() if what is None]
        needed = {at for name in wholes for at in self.asks[name] if isinstance(at, Positions)}
        return self._held(sees, entries, needed)

    def _held(self, sees: dict[str, Any], entries: dict[str, tuple[Positions, ...]], needed: set[Positions]) -> Plan:
        unneeded = {at for asked in self.asks.values() for at in asked if isinstance(at, Positions)} - needed
        rows, names = {}, {}
        for key, array in self.held.items():
            if not (key[0] == "position" and key[1] in unneeded):
                names[key] = f"row {len(rows)}"
                rows[names[key]] = array
        by_row = bool(rows) or any(what is not None for what in sees.values())
        return Plan(sees, entries, rows, names, by_row)


class _Design(Positions):
    """Rows of a design matrix."""

    def __init__(self, design: Any, at: Positions):
        super().__init__(at.at)
        self.design = np.asarray(design)
        self.key = b"design" + Positions(np.frombuffer(self.design.tobytes(), np.uint8)).key + self.key

    def rows(self) -> np.ndarray:
        every = len(self.at) == len(self.design) and np.array_equal(self.at, np.arange(len(self.design)))
        return self.design if every else self.design[self.at]


def _rows_of(node: Node, ask: Ask) -> np.ndarray:
    """Of a constant, the part of every row; axes that are asked for have size one."""
    array, asked = np.asarray(node.value), [axis for axis, at in enumerate(ask) if at is not None]
    first = np.moveaxis(array, asked, range(len(asked)))
    found = first[tuple(ask[axis].at for axis in asked)]  # pyright: ignore
    return found.reshape(len(found), *row_shape(node, ask))


class RowDensity(Unchanging):
    """The log density of one row."""

    def __init__(self, summands: tuple[Summand, ...], ask: Ask, plan: Plan, times: float):
        self.summands, self.ask, self.times = summands, ask, times
        self.plan = replace(plan, rows={}, sees={name: None for name, what in plan.sees.items() if what is None})
        self.n = next((len(at.at) for at in ask if at is not None), 1)

    def __call__(self, seen: dict[str, Any], row: Any = None) -> Any:
        return self.times * _total(_OneRow(self.n, self.plan, seen, row), self.summands, self.ask)


class _OneRow(Rows):
    """The row that a term is evaluated at."""

    def __init__(self, n: int, plan: Plan, seen: dict[str, Any], row: Any):
        super().__init__(n)
        self.plan, self.seen, self.row = plan, seen, row

    def leaf(self, node, ask):
        name, entries = str(node.name), self.plan.entries.get(str(node.name))
        value = self.seen[name]
        if entries is not None:
            value = value[None] if len(entries) == 1 else value[entries.index(ask[0])][None]
            ask = (None, *ask[1:])
        for axis, at in enumerate(ask):
            if at is not None:
                value = jax.lax.dynamic_slice_in_dim(value, self.position(at), 1, axis)
        return value

    def constant(self, node, ask):
        if all(at is None for at in ask):
            return jnp.asarray(node.value)
        return self.row[self.plan.names[id(node.value), ask]]

    def position(self, at):
        return self.row[self.plan.names["position", at]]

    def predictor(self, leaf, design, at):
        if str(leaf.name) in self.plan.sees:  # all of it
            return None
        return self.seen[str(leaf.name)]


@dataclass(frozen=True)
class _Number:
    """A constant."""

    value: float

    def __call__(self, seen: Any) -> Any:
        return jnp.asarray(self.value)
