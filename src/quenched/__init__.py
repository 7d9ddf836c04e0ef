"""Bayesian inference with frozen draws: the best Gaussian posterior, a bound on the log evidence, and a verdict."""

import importlib.util

import lazy_loader

from quenched.interrupts import interrupts_afterwards as _interrupts_afterwards

# What is public, and where it lives, stands in `__init__.pyi`; a name is imported when it is first asked for.
_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"


def __getattr__(name: str):
    with _interrupts_afterwards():
        if name in __all__ or name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is None:
            globals()[name] = _public(name)
        else:
            importlib.import_module(f"{__name__}.{name}")  # a room, such as `quenched.models`
        return globals()[name]
