"""A function on the host, of parameters in natural units, as one of vectors on the real line."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from quenched.compiling import compiled
from quenched.execute import HostFunction
from quenched.targets import Asking, Target
from quenched.transforms import Parameters, Space


@lru_cache(maxsize=8)
def host_function(target: Target, space: Space) -> HostFunction:
    """A host function of the parameters as one of real-line vectors, or of rows of them if it is batched."""
    natural, pull_back, log_jacobian = (
        _on_real_line(target, space) if target.on_real_line else _in_natural_units(target, space)
    )

    def read(vectors: np.ndarray, parameters: Any, answer: Any) -> tuple[Any, np.ndarray]:
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise ValueError(f"fun returned {type(answer).__name__}; it must return (value, gradient).")
        gradient, jacobian = pull_back(vectors, _like(parameters, answer[1]))
        return _numbers(answer[0], vectors.shape[:-1]) + np.asarray(jacobian), np.asarray(gradient)

    def read_value(vectors: np.ndarray, parameters: Any, answer: Any) -> tuple[Any, np.ndarray]:
        return _numbers(answer, vectors.shape[:-1]) + np.asarray(log_jacobian(vectors)), np.zeros(0)

    return HostFunction(
        natural=natural,
        call=Asking(target.function),
        read=read if target.gives_gradient else read_value,
        gives_gradient=target.gives_gradient,
        batched=target.batched,
    )


def _in_natural_units(target: Target, space: Space) -> tuple[Callable, Callable, Callable]:
    """To natural units; a gradient back, with the log-Jacobian and its own; and the log-Jacobian alone."""

    def pull_back(vector, gradient):
        _, pull = jax.vjp(space.to_natural, vector)
        return pull(gradient)[0] + jax.grad(space.log_jacobian)(vector), space.log_jacobian(vector)

    over = jax.vmap if target.batched else lambda function: function
    to_natural, pull_back, log_jacobian = (
        compiled(over(function)) for function in (space.to_natural, pull_back, space.log_jacobian)
    )
    return lambda vectors: jax.tree.map(np.asarray, to_natural(vectors)), pull_back, log_jacobian


def _on_real_line(target: Target, space: Space) -> tuple[Callable, Callable, Callable]:
    """The same of a function that takes the parameters as they are there: nothing is left to do."""

    def raveled(vectors: np.ndarray, gradient: Parameters) -> tuple[np.ndarray, float]:
        pieces = [leaf.reshape(*vectors.shape[:-1], -1) for leaf in jax.tree.leaves(gradient)]
        return np.concatenate(pieces, axis=-1), 0.0

    return space.unravel_rows if target.batched else space.unravel, raveled, lambda vectors: 0.0


def _numbers(answer: Any, shape: tuple[int, ...]) -> np.ndarray:
    """One number, or one for each of the parameters of a batch."""
    wanted = "one number" if not shape else f"one number for each of the {shape[0]} parameters"
    try:
        value = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"fun returned {type(answer).__name__}; it must return {wanted}.") from error
    if value.shape != shape:
        raise ValueError(f"fun returned a value of shape {value.shape}; it must return {wanted}.")
    return value


def _like(parameters: Parameters, gradient: Any) -> Parameters:
    if jax.tree.structure(gradient) != jax.tree.structure(parameters):
        raise ValueError(
            f"fun returned a gradient with structure {jax.tree.structure(gradient)}; "
            f"it must be shaped like the parameters, {jax.tree.structure(parameters)}."
        )
    gradient = jax.tree.map(lambda x: np.asarray(x, dtype=np.float64), gradient)
    found, wanted = shapes_of(gradient), shapes_of(parameters)
    if found != wanted:
        raise ValueError(f"fun returned a gradient of shapes {found}; the parameters have {wanted}.")
    return gradient


def shapes_of(tree: Any) -> tuple:
    """Of all arrays of a tree."""
    return tuple(np.shape(leaf) for leaf in jax.tree.leaves(tree))
