"""Front ends and what they need a package for, given what nobody should give: an answer, or a refusal in our words."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import hostile
import quenched as qd

TABLE = {"y": np.arange(6.0) % 3, "x": np.linspace(-1.0, 1.0, 6), "group": ["a", "b", "c"] * 2}


def numpyro_model(y=None):
    import numpyro
    from numpyro import distributions

    mean = numpyro.sample("mean", distributions.Normal(0.0, 1.0))
    numpyro.sample("y", distributions.Normal(mean, 1.0), obs=y)


def torch_density(w, data=None):
    return -0.5 * (w**2).sum()


def pymc_model():
    import pymc

    with pymc.Model() as model:
        pymc.Normal("mean", 0.0, 1.0, observed=None)
    return model


def mixed(
    formula="y ~ x + (1|group)",
    likelihood="gaussian",
    hyper="raised",
    seed=0,
    table=None,
    weights=None,
    progress=False,
    max_seconds=None,
):
    import pandas

    from quenched.models import MixedModel

    table = pandas.DataFrame(TABLE) if table is None else table
    return MixedModel(formula, likelihood, hyper, seed=seed).fit(
        table, weights, progress=progress, max_seconds=max_seconds
    )


@cache
def fitted():
    return mixed()


def predicted(table=None, samples=100):
    return fitted().predict(table, samples=samples)


def drawn(term=None, most=60):
    return fitted().plot_effects(term, most)


def numpyro(model):
    return qd.from_numpyro(model)


def torch(log_density, start, data=None, transforms=None):
    return qd.from_torch(log_density, start, data=data, transforms=transforms)


def pymc(model):
    return qd.from_pymc(model)


def stan(model):
    return qd.from_stan(model)


CASES: dict[str, tuple[str, Callable[..., Any], dict[str, Callable[[], Any]]]] = {
    "from_numpyro": ("numpyro", numpyro, {"model": lambda: numpyro_model}),
    "from_torch": ("torch", torch, {"log_density": lambda: torch_density, "start": lambda: np.zeros(2)}),
    "from_pymc": ("pymc", pymc, {"model": pymc_model}),
    "from_stan": ("bridgestan", stan, {}),
    "MixedModel": ("formulae", mixed, {}),
    "MixedModel.predict": ("formulae", predicted, {}),
    "MixedModel.plot_effects": ("formulae", drawn, {}),
}
CALLED = [
    (name, argument)
    for name, (_, call, _) in CASES.items()
    for argument in call.__code__.co_varnames[: call.__code__.co_argcount]
]


def test_every_front_end_and_method_has_its_case():
    pytest.importorskip("sklearn")
    from quenched.models import MixedModel

    assert set(CASES) == hostile.FRONT_ENDS | {
        f"MixedModel.{name}" for name in hostile.methods(MixedModel) if name != "fit"
    }


@pytest.mark.parametrize(("name", "argument"), CALLED)
def test_hostile_values_are_refused_in_our_words(name, argument):
    package, call, good = CASES[name]
    pytest.importorskip(package)
    arguments = tuple(one for of, one in CALLED if of == name)
    entry = hostile.Entry(name, call, arguments, good)
    found = {label: hostile.outcome(entry, argument, make()) for label, make in hostile.VALUES.items()}
    assert not {label: str(one) for label, one in found.items() if one.bad}
    assert argument == "transforms" or any(one.kind == "ours" for one in found.values())
