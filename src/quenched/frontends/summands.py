"""A number followed back through sums to the arrays that are summed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax
import numpy as np

from quenched.frontends.graph import Node, known, made

_THROUGH = frozenset(("convert_element_type", "copy", "copy_p", "reshape", "squeeze", "expand_dims", "transpose"))


@dataclass(frozen=True, eq=False)
class Summand:
    """The sum over all entries of an array, times numbers (`factors`; the inverse of those that divide)."""

    node: Node
    factors: tuple[tuple[Node, bool], ...] = ()
    sign: float = 1.0

    def of(self, node: Node, sign: float = 1.0) -> "Summand":
        return Summand(node, self.factors, self.sign * sign)


def terms_of(node: Node) -> list[list[Summand]]:
    """What a number is the sum of; those in one list have the same rows, and make one term."""
    return _merged(list(_split(Summand(node))))


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
