"""How programs are compiled, which takes most of the time of a small fit, and how they are let go.

A program takes two to four megabytes for every shape that it was compiled for, and pieces of address space, of which Linux
allows 65,530 to a process. JAX lets go of programs when their function dies; a function of a module never does. So all that
live as long as a module are made here, where they can be counted out.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax
from jax.core import Tracer

from quenched.compiling.lapack import compiled

# Small algebra runs for microseconds, however it is compiled: fast rather than well takes a third of the time.
FAST = (
    ("xla_cpu_use_fusion_emitters", False),
    ("xla_backend_optimization_level", 0),
    ("xla_llvm_disable_expensive_passes", True),
    ("xla_cpu_parallel_codegen_split_count", 1),  # in pieces, it takes longer, and four times the address space
)
# Rows of terms are many, so that their programs are worth more; but these passes take half of the time to compile them and
# make them no faster.
QUICK = (("xla_cpu_use_fusion_emitters", False), ("xla_llvm_disable_expensive_passes", True))
_let_go: list[Callable[[], None]] = []
_let_go_with_functions: list[Callable[[], None]] = []


def let_go_with_functions(clear: Callable[[], None]) -> None:
    """Have the cache of a program that takes functions of a user as arguments emptied when functions are let go."""
    _let_go_with_functions.append(clear)


def let_go_of_programs(everything: bool) -> None:
    """Of all that was compiled here; or of what takes functions alone."""
    for clear in (*_let_go_with_functions, *(_let_go if everything else ())):
        clear()


def program(function: Callable, *, of_functions: bool = False, **settings: Any) -> Callable:
    """`compiled`, for a function of a module; with `of_functions`, a user's functions are among its static arguments."""
    made = compiled(function, **settings)
    (_let_go_with_functions if of_functions else _let_go).append(made.clear_cache)  # pyright: ignore
    return made


def small_program(function: Callable, *, static_argnums: int | tuple[int, ...] = ()) -> Callable:
    """The same for a few small operations, compiled fast. Inside another program it is a part of that one."""
    inside = program(function, static_argnums=static_argnums)

    @cache
    def alone() -> Callable:
        return program(function, static_argnums=static_argnums, compiler_options=known(FAST))

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
