"""The data of many problems: one leading axis, and what is wrong with single problems."""

from typing import Any

import jax
import numpy as np

from quenched.numbers import check_data, insist_tree, plain_array
from quenched.text import harmless
from quenched.transforms import describe_space, leaf_name, lists_as_arrays


def read_data(data: Any) -> tuple[Any, int]:
    """The data as arrays, and the number of problems.

    Raises
    ------
    ValueError
        When the arrays do not agree on it.
    """
    named = [(harmless(leaf_name(path)) if path else "data", _array(path, leaf)) for path, leaf in _flat(data)]
    if not named:
        raise ValueError("data: there are none; give arrays with the problems along their first axis.")
    for name, array in named:
        if array.ndim == 0:
            raise ValueError(f"data: {name} is a single number; its first axis must be the problems.")
    name, first = named[0]
    for other, array in named:
        if len(array) != len(first):
            raise ValueError(
                f"data: {name} has {len(first)} problems along its first axis, {other} has {len(array)}; give all as many. "
                "What all problems share belongs into the log density itself."
            )
    if not len(first):
        raise ValueError(f"data: {name} has shape {first.shape}, no problems at all; there is nothing to fit.")
    return jax.tree.map(np.asarray, data), len(first)


def faults_in(data: Any, n: int) -> dict[int, str]:
    """What is wrong with which problem; what would be wrong with all is raised."""
    check_data(jax.tree.map(lambda leaf: leaf[:0], data))  # kinds of numbers
    broken = np.zeros(n, bool)
    for _, leaf in _flat(data):
        if leaf.dtype.kind == "f":
            broken |= np.isnan(leaf.reshape(n, -1)).any(axis=1)
    faults = {}
    for index in np.flatnonzero(broken).tolist():
        try:
            check_data(jax.tree.map(lambda leaf: leaf[index], data))  # noqa: B023
        except ValueError as error:
            faults[index] = str(error)
    return faults


def read_starts(start: Any, transforms: Any, n: int, own_starts: bool):
    """The space, and the start of each problem on the real line."""
    if not own_starts:
        space, point = describe_space(start, transforms)
        return space, np.repeat(point[None], n, axis=0)
    insist_tree("start", start)
    start = lists_as_arrays(start, transforms)
    leaves = [plain_array("start", leaf) for leaf in jax.tree.leaves(start)]
    if not leaves or any(leaf.ndim == 0 or len(leaf) != n for leaf in leaves):
        shapes = [leaf.shape for leaf in leaves]
        raise ValueError(
            f"start: with own_starts=True each of the {n} problems needs its own; the shapes are {shapes}."
        )
    described = [describe_space(jax.tree.map(lambda leaf: np.asarray(leaf)[i], start), transforms) for i in range(n)]  # noqa: B023
    return described[0][0], np.stack([point for _, point in described])


def _array(path: tuple, leaf: Any) -> np.ndarray:
    return plain_array(f"data: {harmless(leaf_name(path))}" if path else "data", leaf)


def _flat(data: Any) -> list:
    return jax.tree_util.tree_flatten_with_path(data)[0]
