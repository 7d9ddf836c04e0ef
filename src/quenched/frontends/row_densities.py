"""The log density of one row of a term: what rows see of the parameters and hold of the data, and its value there."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.frontends.graph import Node
from quenched.frontends.row_by_row import Ask, Positions, RowSource, row_shape, whole
from quenched.frontends.summands import Summand
from quenched.targets import Unchanging, dot


def plan_of(
    summands: list[Summand], ask: Ask, n: int, refused: frozenset[str], shapes: dict[str, tuple[int, ...]]
) -> "RowPlan":
    """What the n rows of some summands see and hold; `refused` are leaves that are seen whole anyway."""
    noticed = _Noticed(n, refused)
    jax.eval_shape(lambda: _total(noticed, summands, ask))
    return noticed.plan(shapes)


def _total(rows: RowSource, summands: Any, ask: Ask) -> Any:
    total = 0.0
    for one in summands:
        value = one.sign * jnp.reshape(rows(one.node, ask or whole(one.node)), ())
        for node, divides in one.factors:
            factor = jnp.reshape(rows(node, whole(node)), ())
            value = value / factor if divides else value * factor
        total = total + value
    return total


@dataclass(frozen=True, eq=False)
class RowPlan:
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


class _Noticed(RowSource):
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

    def plan(self, shapes: dict[str, tuple[int, ...]]) -> RowPlan:
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

    def _held(self, sees: dict[str, Any], entries: dict[str, tuple[Positions, ...]], needed: set[Positions]) -> RowPlan:
        unneeded = {at for asked in self.asks.values() for at in asked if isinstance(at, Positions)} - needed
        rows, names = {}, {}
        for key, array in self.held.items():
            if not (key[0] == "position" and key[1] in unneeded):
                names[key] = f"row {len(rows)}"
                rows[names[key]] = array
        by_row = bool(rows) or any(what is not None for what in sees.values())
        return RowPlan(sees, entries, rows, names, by_row)


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

    def __init__(self, summands: tuple[Summand, ...], ask: Ask, plan: RowPlan, times: float):
        self.summands, self.ask, self.times = summands, ask, times
        self.plan = replace(plan, rows={}, sees={name: None for name, what in plan.sees.items() if what is None})
        self.n = next((len(at.at) for at in ask if at is not None), 1)

    def __call__(self, seen: dict[str, Any], row: Any = None) -> Any:
        return self.times * _total(_OneRow(self.n, self.plan, seen, row), self.summands, self.ask)


class _OneRow(RowSource):
    """The row that a term is evaluated at."""

    def __init__(self, n: int, plan: RowPlan, seen: dict[str, Any], row: Any):
        super().__init__(n)
        self.plan, self.seen, self.row = plan, seen, row

    def leaf(self, node, ask):
        name, entries = str(node.name), self.plan.entries.get(str(node.name))
        value = self.seen[name]
        if entries is not None:
            value = value[None] if len(entries) == 1 else value[entries.index(ask[0])][None]
            ask = (None, *ask[1:])
        return self.part(value, ask)

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
