"""How the programs of many fits are compiled."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from quenched.compiling import known
from quenched.execute import compiled as with_small_calls
from quenched.execute import shared_by_functions

# XLA hands reductions and small products on the CPU to a library. For many short vectors side by side its calls cost
# more than the loops that XLA makes itself (two to three times, in the gradients of eight schools).
_OWN_LOOPS = (("xla_cpu_experimental_ynn_fusion_type", ""),)


def lane_program(**settings: Any) -> Callable[[Callable], Callable]:
    """`jax.jit`, with the compiler's own loops where it knows that option."""

    def decorate(function: Callable) -> Callable:
        @cache
        def program() -> Callable:
            return with_small_calls(function, compiler_options=known(_OWN_LOOPS), **settings)

        @wraps(function)
        def call(*inputs):
            return program()(*inputs)

        shared_by_functions(lambda: program().clear_cache() if program.cache_info().currsize else None)
        return call

    return decorate
