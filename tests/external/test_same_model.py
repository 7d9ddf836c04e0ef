"""One model in five languages: the same posterior, and the same bound."""

import jax.numpy as jnp
import numpy as np
import pytest
from programs import SCHOOLS, compiled
from test_numpyro import eight_schools as in_numpyro

import conftest
import quenched as qd

# Copies: JAX 0.10.2 remembers an array that a compiled function closed over in 32 bits, and mixes it into a trace in 64.
EFFECTS, ERRORS = conftest.EFFECTS.copy(), conftest.ERRORS.copy()
pm, stan, torch = (pytest.importorskip(name) for name in ("pymc", "stan", "torch"))
START = {"mu": 0.0, "tau": 1.0, "z": np.zeros(8)}


def in_jax(p):
    normal = lambda x, mean, sd: jnp.sum(-0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) - 0.5 * np.log(2 * np.pi))
    cauchy = jnp.log(2.0 / (np.pi * 5.0)) - jnp.log1p((p["tau"] / 5.0) ** 2)
    theta = p["mu"] + p["tau"] * p["z"]
    return normal(p["mu"], 0.0, 5.0) + cauchy + normal(p["z"], 0.0, 1.0) + normal(EFFECTS, theta, ERRORS)


def in_torch(p, data):
    normal, zero = torch.distributions.Normal, torch.zeros((), dtype=torch.float64)
    priors = normal(zero, 5 + zero).log_prob(p["mu"]) + normal(zero, 1 + zero).log_prob(p["z"]).sum()
    cauchy = torch.distributions.HalfCauchy(5 + zero).log_prob(p["tau"])
    theta = p["mu"] + p["tau"] * p["z"]
    return priors + cauchy + normal(theta, data["errors"]).log_prob(data["effects"]).sum()


def in_pymc():
    with pm.Model() as model:
        mu, tau, z = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0), pm.Normal("z", 0.0, 1.0, shape=8)
        pm.Normal("effects", mu + tau * z, ERRORS, observed=EFFECTS)
    return model


def test_five_languages_one_answer():
    data = {"effects": EFFECTS, "errors": ERRORS}
    program = compiled(SCHOOLS, {"J": 8, **{name: value.tolist() for name, value in data.items()}})
    models = {
        "NumPyro": qd.from_numpyro(in_numpyro, ERRORS, effects=EFFECTS),
        "PyMC": qd.from_pymc(in_pymc()),
        "Stan": qd.from_stan(program),
        "PyTorch": qd.from_torch(in_torch, START, data=data, transforms={"tau": qd.positive}),
    }
    own = qd.fit(in_jax, START, transforms={"tau": qd.positive}, progress=False)
    for language, model in models.items():
        fit = qd.fit(model, START, progress=False)  # each has a first point of its own
        assert abs(fit.bound - own.bound) < 1e-6, (
            language
        )  # what is written as target += keeps its constants in PyStan, too
        for name in START:
            np.testing.assert_allclose(fit.mean[name], own.mean[name], atol=1e-5, err_msg=language)
            np.testing.assert_allclose(fit.sd[name], own.sd[name], atol=1e-5, err_msg=language)
