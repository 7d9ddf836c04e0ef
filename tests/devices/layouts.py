"""Fits on several layouts of eight simulated devices; run as a script, it prints what they find as JSON."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd

N, DIM = 96, 5
RANDOM = np.random.default_rng([16, 1])
DESIGN = RANDOM.standard_normal((N, DIM))
LABELS = np.sign(DESIGN @ RANDOM.standard_normal(DIM) + 0.5 * RANDOM.standard_normal(N))
DATA = {"x": DESIGN, "y": LABELS, "scale": np.array([1.0, 2.0])}


def log_density(parameters, data):
    w = parameters["w"]
    factor = jnp.linalg.cholesky(jnp.eye(2) * data["scale"][1] + 0.1 * jnp.outer(w[:2], w[:2]))  # LAPACK, at every draw
    fit = jnp.sum(jax.nn.log_sigmoid(data["y"] * (data["x"] @ w)))
    return fit - 0.5 * jnp.sum(w**2) - 0.1 * jnp.log(factor[0, 0])


def of_row(seen, row):
    return jax.nn.log_sigmoid(row * seen["w"])


def target():
    return qd.sum_of(
        qd.each(of_row, LABELS, sees={"w": qd.dot(DESIGN)}),
        qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.whole}),
    )


def told(fit):
    return {
        "mean": fit.posterior.mean.tolist(),
        "covariance": fit.covariance.ravel().tolist(),
        "bound": fit.bound,
        "check_bound": fit.check_bound,
        "n_draws": fit.n_draws,
        "n_evaluations": fit.n_evaluations,
        "status": str(fit.status),
        "settings": {name: fit.settings.get(name) for name in ("mesh", "processes")},
    }


def meshes(n):
    explicit = jax.make_mesh((n,), ("anything",))
    both = jax.make_mesh((max(n // 2, 1), min(n, 2)), ("draws", "rows"))
    return {"draws": explicit, "both": both, "rows": jax.make_mesh((n,), ("rows",))}


def fitted(mesh, start=None, **options):
    start = {"w": np.zeros(DIM)} if start is None else start
    return qd.fit(log_density, start, data=DATA, mesh=mesh, tolerance=1e-5, progress=False, **options)


def of_one(parameters, data):
    return -0.5 * jnp.sum(parameters["w"] ** 2) + jnp.sum(jax.nn.log_sigmoid(data["y"] * (DESIGN @ parameters["w"])))


def many(mesh, checkpoint=None):
    labels = np.sign(np.random.default_rng([16, 2]).standard_normal((200, N)))
    fits = qd.fit_many(
        of_one, {"w": np.zeros(DIM)}, {"y": labels}, draws=16, mesh=mesh, checkpoint=checkpoint, progress=False
    )
    return {"mean": fits.mean["w"].tolist(), "bound": fits.bound.tolist(), "mesh": fits.settings.get("mesh")}


def main():
    found = {"one": told(fitted(None))}
    for name, mesh in meshes(len(jax.devices())).items():
        found[name] = told(fitted(mesh))
    fit = fitted(meshes(len(jax.devices()))["both"])
    found["again"] = told(fit)
    found["khat"] = fit.diagnose().khat
    found["terms"] = told(qd.fit(target(), {"w": np.zeros(DIM)}, family="full", progress=False))
    found["sharded terms"] = told(
        qd.fit(
            target(), {"w": np.zeros(DIM)}, mesh=jax.make_mesh((2, 4), ("draws", "rows")), family="full", progress=False
        )
    )
    found["many"] = many(None)
    found["sharded many"] = many(jax.make_mesh((8,), ("draws",)))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
