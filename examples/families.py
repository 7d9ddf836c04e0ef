"""Logistic regression with correlated inputs: what families and draws cost and give.

    quenched fit examples/families.py
    python examples/families.py

Run by Python, it prints the two tables of the guide.
"""

import jax.numpy as jnp
import numpy as np

import quenched as qd

n_rows, n_inputs = 200, 8
random = np.random.default_rng(1)
common = random.standard_normal((n_rows, 1))
inputs = np.sqrt(0.8) * common + np.sqrt(0.2) * random.standard_normal((n_rows, n_inputs))
probability = 1.0 / (1.0 + np.exp(-inputs @ random.standard_normal(n_inputs)))
data = {"x": inputs, "y": np.float64(random.uniform(size=n_rows) < probability)}

start = np.zeros(n_inputs)


def log_density(weights, data):
    logits = data["x"] @ weights
    log_likelihood = jnp.sum(data["y"] * logits - jnp.logaddexp(0.0, logits))
    return log_likelihood - 0.5 * jnp.sum(weights**2 + jnp.log(2.0 * jnp.pi))  # a standard normal prior


def show(name, fit):
    check = f"{fit.check_bound:.2f} ± {fit.check_error:.2f}"
    print(f"| {name} | {fit.n_draws} | {fit.bound:.2f} | {check} | {np.mean(fit.sd):.3f} | {fit.n_evaluations} |")


if __name__ == "__main__":
    print("| | draws | bound | check bound | mean sd | gradient evaluations |\n|---|---|---|---|---|---|")
    for family in ("full", "diagonal"):
        show(f'`family="{family}"`', qd.fit(log_density, start, data=data, family=family))
    print("\n| | draws | bound | check bound | mean sd | gradient evaluations |\n|---|---|---|---|---|---|")
    for make, n in ((qd.iid, 16), (qd.iid, 64), (qd.iid, 1024), (qd.matched, 16), (qd.matched, 64)):
        show(f"`{make.__name__}`", qd.fit(log_density, start, data=data, draws=make(n, n_inputs)))
