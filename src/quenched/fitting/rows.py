"""Pytrees whose leaves have the problems along their first axis."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.compiling import program

_WIDTHS = (1, 2, 4, 8, 16, 32, 64)


def rows(tree: Any, index: Any) -> Any:
    """These problems of a tree of NumPy arrays."""
    leaves, structure = jax.tree.flatten(tree)  # in half the time that `tree.map` takes
    return structure.unflatten([leaf[index] for leaf in leaves])


def put(tree: Any, index: np.ndarray, values: Any) -> None:
    """Overwrite these problems, in place."""

    def write(leaf, value):
        leaf[index] = value

    jax.tree.map(write, tree, values)


def repeated(tree: Any, n: int) -> Any:
    """The same for n problems, each with its own copy."""
    leaves, structure = jax.tree.flatten(tree)
    return structure.unflatten([np.repeat(np.asarray(leaf)[None], n, axis=0) for leaf in leaves])


def stacked(trees: list[Any]) -> Any:
    """Rows, one from each tree."""
    leaves, structure = jax.tree.flatten(trees[0])
    rest = [structure.flatten_up_to(tree) for tree in trees[1:]]
    return structure.unflatten(
        [np.array([np.asarray(leaf) for leaf in one]) for one in zip(leaves, *rest, strict=True)]
    )


def equal_rows(tree: Any, other: Any) -> np.ndarray:
    """Where two trees hold the same numbers, problem by problem."""
    (leaves, structure), (others, other_structure) = jax.tree.flatten(tree), jax.tree.flatten(other)
    if structure != other_structure or any(
        np.shape(leaf) != np.shape(two) for leaf, two in zip(leaves, others, strict=True)
    ):
        return np.zeros(len(leaves[0]), bool)
    same = [(leaf == two).reshape(len(leaf), -1).all(axis=1) for leaf, two in zip(leaves, others, strict=True)]
    return np.all(same, axis=0)


def choose_rows(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Problem by problem, the one tree or the other."""

    def choose(a, b):
        return jnp.where(condition.reshape(-1, *(1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(choose, yes, no)


@program
def take(tree: Any, index: jax.Array) -> Any:
    """These problems of a tree on the device, in one program."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


class Widths(NamedTuple):
    """How many problems may be taken at a time. There are few widths, since each is compiled for itself."""

    least: int
    most: int

    def fit(self, n: int) -> int:
        """The narrowest into which n problems go, or the widest there is."""
        allowed = [min(self.least, self.most), *(w for w in _WIDTHS if self.least < w <= self.most)]
        return next((width for width in allowed if width >= n), allowed[-1])
