"""What every number of a member is for. Whoever starts, raises or judges a fit asks for this, never for a field by name."""

from dataclasses import field
from enum import IntEnum
from functools import partial
from typing import Any, cast

import jax
import numpy as np

from quenched.frozen import Tree


class Role(IntEnum):
    """What a number of a member moves first of all."""

    LOCATION = 0  # the mean
    SPREAD = 1  # the size of one coordinate
    CORRELATION = 2  # how coordinates go together
    SHAPE = 3  # what no Gaussian has: skewness, spreads that change with other coordinates, bends


# A member declares its arrays by these: `mean: Array = location()`.
location = partial(field, metadata={"role": Role.LOCATION})
spread = partial(field, metadata={"role": Role.SPREAD})
correlation = partial(field, metadata={"role": Role.CORRELATION})
shape = partial(field, metadata={"role": Role.SHAPE})


def roles(member: Tree) -> np.ndarray:
    """The role of every number, in the order of `jax.flatten_util.ravel_pytree(member)`."""
    leaves = jax.tree_util.tree_leaves_with_path(member)
    return np.concatenate([np.full(leaf.size, _role(member, path), np.int8) for path, leaf in leaves])


def _role(member: Tree, path: tuple[Any, ...]) -> Role:
    """What the innermost field on the way to an array says."""
    role, node = None, cast(Any, member)
    for key in path:
        if isinstance(key, jax.tree_util.GetAttrKey):
            role = type(node).__dataclass_fields__[key.name].metadata.get("role", role)
            node = getattr(node, key.name)
        else:
            node = node[key.idx]
    if role is None:
        name = jax.tree_util.keystr(path)
        raise TypeError(
            f"{type(member).__name__}{name} declares no role; use location(), spread(), correlation() or shape()."
        )
    return role
