"""Eight schools (Rubin 1981): what coaching did to test scores, in eight schools at once.

    quenched fit examples/eight_schools.py
    python examples/eight_schools.py

The effects theta = mu + tau * eta are written through standardised `eta` (non-centred), so that the posterior stays
close to a Gaussian when tau is small. `tau` must be positive: a transform sees to it, and adds the Jacobian.
"""

import numpy as np
from jax.scipy.stats import cauchy, norm

import quenched as qd

data = {
    "effect": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "error": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}

start = {"mu": 0.0, "tau": 1.0, "eta": np.zeros(8)}

transforms = {"tau": qd.positive}


def log_density(parameters, data):
    mu, tau, eta = parameters["mu"], parameters["tau"], parameters["eta"]
    prior = norm.logpdf(mu, 0.0, 5.0) + cauchy.logpdf(tau, 0.0, 5.0) + norm.logpdf(eta).sum()
    return prior + norm.logpdf(data["effect"], mu + tau * eta, data["error"]).sum()


if __name__ == "__main__":
    fit = qd.fit(log_density, start, data=data, transforms=transforms)
    print(fit)
