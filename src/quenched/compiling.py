"""How programs are compiled: most of the time of a small fit goes into that."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax
from jax.core import Tracer

# Small algebra runs for microseconds, however it is compiled: fast rather than well takes a third of the time.
FAST = (
    ("xla_cpu_use_fusion_emitters", False),
    ("xla_backend_optimization_level", 0),
    ("xla_llvm_disable_expensive_passes", True),
)


def small_program(function: Callable, *, static_argnums: int | tuple[int, ...] = ()) -> Callable:
    """`jax.jit` for a few small operations, compiled fast. Inside another program it is a part of that one."""
    inside = jax.jit(function, static_argnums=static_argnums)

    @cache
    def alone() -> Callable:
        return jax.jit(function, static_argnums=static_argnums, compiler_options=known(FAST))

    @wraps(function)
    def call(*inputs):
        traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(inputs))
        return inside(*inputs) if traced else alone()(*inputs)

    return call


@cache
def known(options: tuple[tuple[str, Any], ...]) -> dict[str, Any] | None:
    """Options of the compiler as `jax.jit` takes them; None if this one does not know them all, or is none for the CPU."""
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: 0, compiler_options=dict(options))()
    except Exception:  # an XLA that does not know an option says so in a way of its own
        return None
    return dict(options)
