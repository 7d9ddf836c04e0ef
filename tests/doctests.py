"""Examples in docstrings, run one name at a time."""

import doctest
import importlib
import inspect

import jax.numpy as jnp
import numpy as np

import quenched as qd

NEEDS = {
    "from_numpyro": "numpyro",
    "from_pymc": "pymc",
    "from_torch": "torch",
    "Streaming": "optax",
    "models.MixedModel": "formulae",
}  # what an example imports
ROOMS = ("baselines", "diagnostics", "export", "models", "plots", "science")  # that people import from
GIVEN = ("posterior.Derived", "posterior.Posterior", "results.History", "trust.Answer", "trust.Departure")  # by a fit
INSIDE = {  # offered to other rooms; a user has a method that calls them
    "diagnostics.Importance": "fit.diagnose().weights",
    "diagnostics.weigh": "fit.diagnose().weights",
    "science.corner_columns": "model.plot_corner()",
    "science.spectrum_panels": "model.plot_spectra()",
}


def _offered(room: str) -> list[str]:
    """Functions and classes of a room's door that are not at the root."""
    door = importlib.import_module(f"quenched.{room}")
    things = {name: getattr(door, name) for name in door.__all__}
    kinds = (inspect.isfunction, inspect.isclass)
    own = [name for name, thing in things.items() if any(kind(thing) for kind in kinds)]
    return [f"{room}.{name}" for name in own if things[name] is not getattr(qd, name, None)]


BEYOND = tuple(name for room in ROOMS for name in _offered(room) if name not in INSIDE) + GIVEN


def documented(name: str) -> object:
    """What has the docstring of a public name: the function or class, or the class of a thing such as `positive`."""
    room, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(f"quenched.{room}") if room else qd, last)
    return inspect.unwrap(thing) if inspect.isfunction(thing) or inspect.isclass(thing) else type(thing)


def example_of(name: str) -> doctest.DocTest:
    """The example of a public name, with what the reference takes as imported."""
    text = inspect.getdoc(documented(name)) or ""
    return doctest.DocTestParser().get_doctest(text, {"qd": qd, "np": np, "jnp": jnp}, name, None, 0)


def run(name: str) -> str:
    """What the example of a public name got wrong; nothing if it is right."""
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example_of(name), out=said.append)
    return "".join(said)
