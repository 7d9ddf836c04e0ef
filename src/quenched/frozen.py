"""Frozen dataclasses without a decorator on each: settings that are equal by their fields, and trees of arrays.

Equinox has both, and more; but its methods are wrapped at every access, which in a small fit takes as long as the
numbers do, and its import takes a quarter of ours.
"""

from abc import ABC
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, dataclass_transform

import jax

static: Any = partial(field, metadata={"static": True})  # a field of a `Tree` that is no array: part of its structure


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(ABC):  # noqa: B024
    """Every subclass is a frozen dataclass: hashable, so that it can key a compiled program."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        dataclass(frozen=True)(cls)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
class Tree(ABC):  # noqa: B024
    """Every subclass is a frozen dataclass whose fields are arrays, but for those that are `static`: a JAX pytree."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        of_class: Any = dataclass(frozen=True, eq=False)(cls)
        static_ones = [one.name for one in fields(of_class) if one.metadata.get("static")]
        arrays = [one.name for one in fields(of_class) if one.name not in static_ones]
        jax.tree_util.register_dataclass(cls, data_fields=arrays, meta_fields=static_ones)
