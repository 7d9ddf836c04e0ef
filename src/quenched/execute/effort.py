"""How hard the compiler tries: most of the time of a small fit goes into that.

Measured on one bound and its gradient (seconds to compile, milliseconds to run): eight schools 0.35 and 0.16 with all that XLA
has, 0.08 to 0.14 and 0.18 with as little as it can; logistic regression with 1,000 rows and 100 weights, 400 draws, 0.39 and 4.8 (the
bare gradient: 4.7), 0.23 and 5.7 without its fusion emitters, and with vectors as wide as XLA chooses 0.47 and 5.4, 0.25 and 6.2.
"""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.compiling import FAST, compiled, known
from quenched.execute.kept import compile_or_load, folder_of_programs

# As wide as vectors are on this machine. XLA uses half of that, from when wide ones slowed the clock down.
_WIDE = ("xla_cpu_prefer_vector_width", 512)
_LITTLE = 2**16  # bytes at one point, below which any program is quick
_SOME = 2**20
_MOST_KEPT = 256  # programs from disk that stay in memory


class Effort(Enum):
    """Options of the compiler."""

    LITTLE = FAST
    SOME = (("xla_cpu_use_fusion_emitters", False), _WIDE)
    ALL = (_WIDE,)


def effort(bytes_of_a_point: int) -> Effort:
    """What the work at one point is worth."""
    return Effort.LITTLE if bytes_of_a_point <= _LITTLE else Effort.SOME if bytes_of_a_point <= _SOME else Effort.ALL


class Program:
    """A function compiled with the effort that it is called with, first.

    One that a fit calls at every turn, `often`, is worth more of it than others are.
    """

    def __init__(self, function: Callable, *, static_argnums: int | tuple[int, ...] = (), often: bool = False):
        static = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
        self._static, self._places, self._often = set(static), static, often
        self._function, self._made = function, dict[Effort, Any]()
        self._kept: dict[Any, Callable] = {}

    def _spent(self, own: Effort) -> Effort:
        return Effort.ALL if self._often and own is Effort.SOME else own

    def _compiled(self, own: Effort) -> Any:
        if own not in self._made:
            options = known(own.value) or None
            self._made[own] = compiled(self._function, static_argnums=self._places, compiler_options=options)
        return self._made[own]

    def clear(self) -> None:
        """Let go of what was compiled."""
        self._kept.clear()
        for program in list(self._made.values()):
            program.clear_cache()

    def __call__(self, own: Effort, *inputs: Any) -> Any:
        own = self._spent(own)
        folder = folder_of_programs()
        if folder is None or _on_several_devices(inputs):
            return self._compiled(own)(*inputs)
        return self._from(folder, own, inputs)

    def _from(self, folder: Path, own: Effort, inputs: tuple) -> Any:
        """By a program that is kept in a folder."""
        static = tuple(inputs[place] for place in sorted(self._static))
        given = tuple(one for place, one in enumerate(inputs) if place not in self._static)
        leaves, structure = jax.tree.flatten(given)
        key = (
            folder,
            own,
            static,
            structure,
            tuple((np.shape(leaf), getattr(leaf, "dtype", None) or np.result_type(leaf)) for leaf in leaves),
        )
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = compile_or_load(self._compiled(own), inputs, folder, own.value)
        return self._kept[key](*given)


def _on_several_devices(inputs: Any) -> bool:
    """Whether a program depends on more than the shapes of what it is given."""
    return any(isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1 for leaf in jax.tree.leaves(inputs))
