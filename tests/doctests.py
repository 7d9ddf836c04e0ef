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
BEYOND = (  # the root, in rooms that people import from
    *("models.CauchyPPCA", "models.LinearRegression", "models.LogisticRegression", "models.MixedModel", "models.PPCA"),
    *("models.PoissonRegression", "models.RelevanceVectorClassifier", "science.fourier_amplitude"),
    *("baselines.expectation_propagation", "baselines.nested_laplace"),
)


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
