"""Regression with radial basis functions (paper, Sec. 3.2): noise and prior precision are learned with the weights.

    quenched fit examples/regression.py:target
    python examples/regression.py

The curve is linear in its weights, so the posterior is a Gaussian and the bound is exact.
"""

import jax.numpy as jnp
import numpy as np

import quenched as qd

random = np.random.default_rng(0)
inputs = random.uniform(-6.0, 6.0, size=100)
outputs = 2.0 * np.cos(inputs) * np.sin(inputs) - 0.1 * inputs**2 + 0.2 * random.standard_normal(100)

centres = np.linspace(-6.0, 6.0, 20)

start = np.zeros(21)


def curve(weights, inputs):
    """A weight for each bump, and one for the level."""
    bumps = jnp.exp(-0.5 * (inputs[:, None] - centres) ** 2)
    return bumps @ weights[:-1] + weights[-1]


target = qd.regression(curve, inputs, outputs)


if __name__ == "__main__":
    fit = qd.fit(target, start)
    print(fit)
    noise = fit.hyper["noise_precision"] ** -0.5
    print(f"\nThe noise had a standard deviation of 0.2; the fit says {noise:.3f}.")
