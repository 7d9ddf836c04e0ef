"""The advice to nest works when it is typed."""

import re

import jax.numpy as jnp
import numpy as np

import quenched as qd

Y = np.random.default_rng(3).standard_normal((12, 2)) * 0.4


def hierarchy(parameters, data):
    """Effects of unknown spread, each seen by two noisy rows."""
    spread = jnp.exp(parameters["log_sd"])
    effects = jnp.sum(-0.5 * (parameters["effect"] / spread) ** 2) - 12.0 * parameters["log_sd"]
    return effects - 0.5 * jnp.sum((data - parameters["effect"][:, None]) ** 2) - 0.125 * parameters["log_sd"] ** 2


def test_what_is_advised_can_be_typed_and_is_nearer():
    log_density, start, data = hierarchy, {"effect": np.zeros(12), "log_sd": 0.0}, Y
    fit = qd.fit(log_density, start, data=data, progress=False)
    verdict = fit.diagnose(progress=False).verdict
    (command,) = re.findall(r"qd\.nested\(.*?\)\.", verdict)
    assert command == "qd.nested(log_density, start, outer=['log_sd'], data=data)."
    nested = eval(command.rstrip("."), {"qd": qd, "log_density": log_density, "start": start, "data": data})
    assert nested.check_bound > fit.check_bound + 2.0 * fit.check_error


def test_a_driving_entry_of_one_array_is_to_be_named_apart():
    def funnel(w):
        return -0.5 * w[0] ** 2 / 2.25 - 0.5 * jnp.sum(w[1:] ** 2 * jnp.exp(-w[0])) - 2.5 * w[0]

    verdict = qd.fit(funnel, np.zeros(6), seed=2, progress=False).diagnose(progress=False).verdict
    assert "Give parameters[0] a name apart from the others" in verdict
    assert "qd.nested(log_density, start, outer=['outer'])" in verdict
