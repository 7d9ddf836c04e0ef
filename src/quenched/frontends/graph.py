"""A JAX function as a graph: what is known before any parameter is, the parameters, and what is made of both."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import Jaxpr, Literal

_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
_CALLS |= {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "checkpoint": "jaxpr"}


@dataclass(eq=False)
class Node:
    """One array: a constant (`value`), a parameter (`name`), or the output `place` of a primitive of others."""

    shape: tuple[int, ...]
    dtype: Any
    value: np.ndarray | None = None
    name: str | None = None
    primitive: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    inputs: tuple["Node", ...] = ()
    place: int = 0

    @property
    def does(self) -> str:
        """The name of the primitive."""
        return "" if self.primitive is None else str(self.primitive.name)


def known(value: Any) -> Node:
    """A constant."""
    array = np.asarray(value)
    return Node(array.shape, array.dtype, value=array)


def made(primitive: Any, *inputs: Node, shape: tuple[int, ...], **params: Any) -> Node:
    """An output of a primitive that has one."""
    return Node(shape, inputs[0].dtype, primitive=primitive, params=params, inputs=inputs)


def graph_of(function: Callable[[Any], Any], start: Any, names: list[str]) -> Node:
    """The value of a function of parameters like `start`, whose leaves have these names."""
    closed = jax.make_jaxpr(function)(start)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(start)]
    inputs = [Node(leaf.shape, leaf.dtype, name=name) for leaf, name in zip(leaves, names, strict=True)]
    (output,) = _walk(closed.jaxpr, [known(const) for const in closed.consts], inputs)
    return output


def _walk(jaxpr: Jaxpr, constants: list[Node], inputs: list[Node]) -> list[Node]:
    """The outputs of a program; calls of others are written out, and what needs no parameter is computed."""
    found: dict[Any, Node] = dict(zip(jaxpr.constvars, constants, strict=True))
    found |= dict(zip(jaxpr.invars, inputs, strict=True))
    read = lambda atom: known(atom.val) if isinstance(atom, Literal) else found[atom]
    for equation in jaxpr.eqns:
        given = [read(atom) for atom in equation.invars]
        if equation.primitive.name in _CALLS:
            inner = equation.params[_CALLS[equation.primitive.name]]
            own = [known(const) for const in getattr(inner, "consts", ())]
            outputs = _walk(getattr(inner, "jaxpr", inner), own, given)
        elif equation.primitive.name == "cond" and given[0].value is not None:
            branch = equation.params["branches"][int(given[0].value)]
            outputs = _walk(branch.jaxpr, [known(const) for const in branch.consts], given[1:])
        elif all(node.value is not None for node in given):
            outputs = [known(value) for value in bind(equation.primitive, equation.params, [n.value for n in given])]
        else:
            of_all, kinds = tuple(given), [out.aval for out in equation.outvars]  # one tuple for all outputs
            outputs = [
                Node(
                    tuple(out.shape),  # pyright: ignore
                    out.dtype,  # pyright: ignore
                    primitive=equation.primitive,
                    params=equation.params,
                    inputs=of_all,
                    place=place,
                )
                for place, out in enumerate(kinds)
            ]
        found |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def bind(primitive: Any, params: dict[str, Any], values: list[Any]) -> list[Any]:
    """The outputs of a primitive."""
    outputs = primitive.bind(*values, **params)
    return list(outputs) if primitive.multiple_results else [outputs]
