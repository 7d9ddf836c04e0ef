"""Arrays that may be JAX's or NumPy's: the same code runs traced on the one and on the host on the other.

A step written with `namespace`, `choose` and `pick` runs on NumPy arrays without compiling anything, and on JAX arrays under
`jit` and `vmap`, where a condition cannot be branched on.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any


def namespace(array: Any) -> ModuleType:
    """The library an array belongs to."""
    return np if isinstance(array, (np.ndarray, np.generic)) else jnp


def number(value: Any, like: Any) -> Array:
    """A number as the library of an array has it: in NumPy a scalar, since arrays without axes take ten times as long."""
    if namespace(like) is np:
        return np.asarray(value)[()]
    return value if isinstance(value, jax.Array) else jnp.asarray(np.asarray(value))


def choose(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """`yes()` where the condition holds, else `no()`; both are computed only where the condition is traced."""
    if isinstance(condition, (bool, np.bool_, np.ndarray)):
        return yes() if condition else no()
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes(), no())


def pick(condition: Any, yes: Any, no: Any) -> Any:
    """One of two numbers that are there already: on the host a branch, which takes a twentieth of NumPy's `where`."""
    if isinstance(condition, (bool, np.bool_, np.ndarray)):
        return yes if condition else no
    return jnp.where(condition, yes, no)
