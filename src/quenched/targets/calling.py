"""Calling a user's function: with what it takes, and in our words where it fails."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quenched.targets.explaining import explaining


@dataclass(frozen=True)
class Asking:
    """`call` of one function, which can be sent to another process."""

    function: Callable[..., Any]

    def __call__(self, parameters: Any, data: Any) -> Any:
        return call(self.function, parameters, data, None)


def call(function: Callable[..., Any], parameters: Any, data: Any, hyper: Any) -> Any:
    """`function(parameters[, data][, hyper])`, with what was not given left out.

    Raises
    ------
    ValueError
        When the function does not take them, or does with them what JAX cannot trace.
    """
    given = {name: value for name, value in (("data", data), ("hyper", hyper)) if value is not None}
    signature = _signature(function)
    if signature is None:
        return explaining("log_density", function, parameters, *given.values())
    named = {p.name for p in signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    positional = [value for name, value in given.items() if name not in named]
    keywords = {name: value for name, value in given.items() if name in named}
    try:
        signature.bind(parameters, *positional, **keywords)
    except TypeError as error:
        wanted = ", ".join(["parameters", *given])
        raise ValueError(
            f"log_density: it is called as log_density({wanted}), but takes {signature}: {error}."
        ) from error
    return explaining("log_density", function, parameters, *positional, **keywords)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
