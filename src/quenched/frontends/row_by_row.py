"""One row of an array that a graph makes: which rows of other arrays it needs, primitive by primitive.

A row is asked for by positions along some axes of an array (`Ask`), one position for every row of the term; along the other axes
it is wanted whole. Every rule says what its inputs must be asked for. Axes that are asked for have size one in the answer, so that
primitives keep their axes. What has no rule is made whole, and the row taken from it: never wrong, but it sees more.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.frontends.graph import Node, bind

_BY_ENTRY = """abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp convert_element_type
copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac integer_pow is_finite le lgamma log
log1p logistic lt max min mul ne neg nextafter not or polygamma pow random_gamma_grad real reduce_precision
regularized_incomplete_beta rem round rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh xor zeta"""
_ALONG_AXES = "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor"
_ELEMENTWISE, _REDUCTIONS = frozenset(_BY_ENTRY.split()), frozenset(_ALONG_AXES.split())
_PICKS = frozenset(("slice", "dynamic_slice", "gather"))  # that may take single entries, which all rows see
_SEVERAL = 16  # entries of a row that are looked up one by one


class Positions:
    """A position along an axis for every row; equal ones are one."""

    def __init__(self, at: np.ndarray):
        self.at = np.ascontiguousarray(at, dtype=np.int64)
        self.key = hashlib.blake2b(self.at.tobytes(), digest_size=16).digest()

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Positions) and self.key == other.key


Ask = tuple[Positions | None, ...]  # for every axis


def whole(node: Node) -> Ask:
    """All of an array."""
    return (None,) * len(node.shape)


def row_shape(node: Node, ask: Ask) -> tuple[int, ...]:
    return tuple(size if at is None else 1 for size, at in zip(node.shape, ask, strict=True))


class RowSource(ABC):
    """Where rows come from: the leaves of the parameters, and what is known."""

    def __init__(self, n: int):
        self.n = n  # rows
        self.made: dict[tuple[int, int, Ask], Any] = {}

    @abstractmethod
    def leaf(self, node: Node, ask: Ask) -> Any:
        """The part of a parameter, of size one along the axes that are asked for."""

    @abstractmethod
    def constant(self, node: Node, ask: Ask) -> Any:
        """Of a constant, likewise."""

    @abstractmethod
    def position(self, at: Positions) -> Any:
        """The position of this row."""

    @abstractmethod
    def predictor(self, leaf: Node, design: Node, at: Positions) -> Any:
        """A row of a design, (rows, columns), times a leaf along its first axis; None if that is not to be had."""

    def __call__(self, node: Node, ask: Ask) -> Any:
        """One row of an array."""
        if node.value is not None:
            return self.constant(node, ask)
        if node.name is not None:
            return self.leaf(node, ask)
        key = (id(node), 0, ask)
        if key not in self.made:
            rule = _rule(node.does) if any(at is not None for at in ask) or node.does in _PICKS else None
            found = None if rule is None else rule(self, node, ask)
            self.made[key] = self._whole(node, ask) if found is None else found
        return self.made[key]

    def _whole(self, node: Node, ask: Ask) -> Any:
        key = (id(node.inputs), 1, ())
        if key not in self.made:
            self.made[key] = bind(node.primitive, node.params, [self(one, whole(one)) for one in node.inputs])
        return self.part(self.made[key][node.place], ask)

    def part(self, value: Any, ask: Ask) -> Any:
        """Of an array, of size one along the axes that are asked for."""
        for axis, at in enumerate(ask):
            if at is not None:
                value = jax.lax.dynamic_slice_in_dim(value, self.position(at), 1, axis)
        return value


Rule = Callable[[RowSource, Node, Ask], Any]  # None where it does not apply


def _rule(does: str) -> Rule | None:
    if does in _ELEMENTWISE:
        return _elementwise
    return _reduced if does in _REDUCTIONS else _RULES.get(does)


def _bound(node: Node, *values: Any, **params: Any) -> Any:
    return bind(node.primitive, {**node.params, **params}, list(values))[node.place]


def _elementwise(rows: RowSource, node: Node, ask: Ask) -> Any:
    """Scalars, and axes of size one, go with every entry."""
    sizes = node.shape
    own = lambda one: tuple(at if one.shape[axis] == sizes[axis] else None for axis, at in enumerate(ask))
    return _bound(node, *(rows(one, own(one) if one.shape else ()) for one in node.inputs))


def _broadcast(rows: RowSource, node: Node, ask: Ask) -> Any:
    (one, *rest), axes = node.inputs, node.params["broadcast_dimensions"]
    if rest:
        return None
    of_one = tuple(ask[axis] if one.shape[i] == node.shape[axis] else None for i, axis in enumerate(axes))
    return jax.lax.broadcast_in_dim(rows(one, of_one), row_shape(node, ask), axes)


def _reshaped(rows: RowSource, node: Node, ask: Ask) -> Any:
    """Where axes of size one come or go, and nothing else."""
    (one,) = node.inputs
    own, new = ([axis for axis, size in enumerate(shape) if size != 1] for shape in (one.shape, node.shape))
    if node.params.get("dimensions") is not None or [one.shape[i] for i in own] != [node.shape[i] for i in new]:
        return None
    of_one: list[Positions | None] = [None] * len(one.shape)
    for i, axis in zip(own, new, strict=True):
        of_one[i] = ask[axis]
    return jnp.reshape(rows(one, tuple(of_one)), row_shape(node, ask))


def _squeezed(rows: RowSource, node: Node, ask: Ask) -> Any:
    (one,) = node.inputs
    kept = [axis for axis in range(len(one.shape)) if axis not in node.params["dimensions"]]
    of_one: list[Positions | None] = [None] * len(one.shape)
    for i, axis in enumerate(kept):
        of_one[axis] = ask[i]
    return _bound(node, rows(one, tuple(of_one)))


def _transposed(rows: RowSource, node: Node, ask: Ask) -> Any:
    of_one: list[Positions | None] = [None] * len(ask)
    for i, axis in enumerate(node.params["permutation"]):
        of_one[axis] = ask[i]
    return _bound(node, rows(node.inputs[0], tuple(of_one)))


def _reduced(rows: RowSource, node: Node, ask: Ask) -> Any:
    (one,), left = node.inputs, iter(ask)
    of_one = tuple(None if axis in node.params["axes"] else next(left) for axis in range(len(one.shape)))
    return _bound(node, rows(one, of_one))


def _sliced(rows: RowSource, node: Node, ask: Ask) -> Any:
    (one,), params = node.inputs, node.params
    ask = _single(rows, one, node, ask)
    steps = params["strides"] or (1,) * len(ask)
    axes = list(zip(params["start_indices"], params["limit_indices"], steps, ask, strict=True))
    of_one = tuple(None if at is None else Positions(first + step * at.at) for first, _, step, at in axes)
    inside = [(first, last, step) if at is None else (0, 1, 1) for first, last, step, at in axes]
    first, last, step = zip(*inside, strict=True)
    return jax.lax.slice(rows(one, of_one), first, last, step)


def _single(rows: RowSource, one: Node, node: Node, ask: Ask) -> Ask:
    """A single entry is asked for, as a row is: so that no more is seen."""
    only = Positions(np.zeros(rows.n, int))
    return tuple(
        only if at is None and size == 1 < before else at
        for at, size, before in zip(ask, node.shape, one.shape, strict=True)
    )


def _joined(rows: RowSource, node: Node, ask: Ask) -> Any:
    if ask[node.params["dimension"]] is not None:
        return None
    return _bound(node, *(rows(one, ask) for one in node.inputs))


def _solved(rows: RowSource, node: Node, ask: Ask) -> Any:
    """Right-hand sides are solved for independently of each other."""
    matrix, sides = node.inputs
    across = len(ask) - 1 if node.params["left_side"] else len(ask) - 2
    if len(matrix.shape) != 2 or any(at is not None for axis, at in enumerate(ask) if axis != across):
        return None
    return _bound(node, rows(matrix, whole(matrix)), rows(sides, ask))


def _gathered(rows: RowSource, node: Node, ask: Ask) -> Any:
    """Entries that a known index names: along some axes of an array of which all of the others is taken."""
    one, index = node.inputs
    numbers, rank = node.params["dimension_numbers"], len(node.inputs[0].shape)
    along, batched = tuple(numbers.start_index_map), tuple(numbers.operand_batching_dims)
    batch = [axis for axis in range(len(node.shape)) if axis not in numbers.offset_dims]
    rest = [axis for axis in range(rank) if axis not in (*along, *batched)]
    full = all(node.params["slice_sizes"][axis] == one.shape[axis] for axis in rest)
    if index.value is None or tuple(numbers.collapsed_slice_dims) != along or not full:
        return None
    limits = np.array([one.shape[axis] for axis in along])
    if np.any((index.value < 0) | (index.value >= limits)):
        return None
    free = [axis for axis in batch if ask[axis] is None]  # a row has all of these
    several = list(np.ndindex(*(node.shape[axis] for axis in free)))
    if len(several) > _SEVERAL:
        return None
    found = []
    for which in several:
        fixed = dict(zip(free, which, strict=True))
        places = [np.broadcast_to(fixed[a] if a in fixed else ask[a].at, (rows.n,)) for a in batch]  # pyright: ignore
        of_one: list[Positions | None] = [None] * rank
        for axis, offset in zip(rest, numbers.offset_dims, strict=True):
            of_one[axis] = ask[offset]
        for axis, place in zip(batched, numbers.start_indices_batching_dims, strict=True):
            of_one[axis] = Positions(places[place])
        for i, axis in enumerate(along):
            of_one[axis] = Positions(np.broadcast_to(index.value[(*places, i)], (rows.n,)))
        value = rows(one, tuple(of_one))
        found.append(jnp.reshape(value, [value.shape[axis] for axis in rest]))
    # Batch axes first, as (several, offsets...); then each where it belongs.
    sizes = [node.shape[axis] if axis in free else 1 for axis in batch]
    stacked = jnp.reshape(jnp.stack(found), [*sizes, *found[0].shape])
    return jnp.moveaxis(stacked, range(stacked.ndim), [*batch, *numbers.offset_dims])


def _taken(rows: RowSource, node: Node, ask: Ask) -> Any:
    """A slice that begins at known places."""
    one, *begins = node.inputs
    if any(begin.value is None for begin in begins):
        return None
    sizes, ask = node.params["slice_sizes"], _single(rows, one, node, ask)
    first = [int(np.clip(b.value, 0, n - s)) for b, n, s in zip(begins, one.shape, sizes, strict=True)]  # pyright: ignore
    of_one = tuple(None if at is None else Positions(start + at.at) for start, at in zip(first, ask, strict=True))
    inside = [(0, 1) if at is not None else (f, f + s) for f, s, at in zip(first, sizes, ask, strict=True)]
    begin, end = zip(*inside, strict=True)
    return jax.lax.slice(rows(one, of_one), begin, end)


def _product(rows: RowSource, node: Node, ask: Ask) -> Any:
    """Rows of one matrix times another; a known one times a leaf is a linear predictor."""
    ((left_c, right_c), (left_b, right_b)) = node.params["dimension_numbers"]
    left, right = node.inputs
    sides = ((left, left_c, left_b), (right, right_c, right_b))
    free = [[axis for axis in range(len(one.shape)) if axis not in (*c, *b)] for one, c, b in sides]
    found = _predictor(rows, node, ask, free) if not left_b and len(left_c) == 1 else None
    if found is not None:
        return found
    of_left: list[Positions | None] = [None] * len(left.shape)
    of_right: list[Positions | None] = [None] * len(right.shape)
    for place, (i, j) in enumerate(zip(left_b, right_b, strict=True)):
        of_left[i] = of_right[j] = ask[place]
    for place, axis in enumerate(free[0]):
        of_left[axis] = ask[len(left_b) + place]
    for place, axis in enumerate(free[1]):
        of_right[axis] = ask[len(left_b) + len(free[0]) + place]
    return _bound(node, rows(left, tuple(of_left)), rows(right, tuple(of_right)))


def _predictor(rows: RowSource, node: Node, ask: Ask, free: list[list[int]]) -> Any:
    ((left_c, right_c), _) = node.params["dimension_numbers"]
    pairs = ((0, node.inputs, left_c[0], right_c[0]), (1, node.inputs[::-1], right_c[0], left_c[0]))
    for side, (design, other), axis, of_leaf in pairs:
        leaf = _bare(other)
        if design.value is None or leaf.name is None or of_leaf != 0 or len(design.shape) != 2:
            continue
        row_axis = 0 if side == 0 else len(free[0])
        if ask[row_axis] is None or sum(at is not None for at in ask) > 1:
            continue
        table = design if axis == 1 else Node(design.shape[::-1], design.dtype, value=design.value.T)  # pyright: ignore
        value = rows.predictor(leaf, table, ask[row_axis])  # pyright: ignore
        if value is not None:
            return jnp.reshape(value, row_shape(node, ask))
    return None


def _bare(node: Node) -> Node:
    """Without axes of size one after the first, which change nothing of a product along that."""
    while node.does in ("reshape", "squeeze", "broadcast_in_dim", "copy"):
        (one, *_) = node.inputs
        if not one.shape or one.shape[0] != node.shape[0] or np.prod(one.shape) != np.prod(node.shape):
            break
        if [size for size in one.shape if size != 1] != [size for size in node.shape if size != 1]:
            break
        node = one
    return node


_RULES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshaped,
    "squeeze": _squeezed,
    "transpose": _transposed,
    "slice": _sliced,
    "dynamic_slice": _taken,
    "concatenate": _joined,
    "triangular_solve": _solved,
    "gather": _gathered,
    "dot_general": _product,
}
