"""Logistic regression on rows that stay in a file: fresh draws and minibatches against the frozen fit, and NumPyro's SVI.

    python benchmarks/larger_than_memory.py ROWS [INPUTS] [--methods quadrature frozen polished streamed svi] [--folder FOLDER]

Each method runs in a process of its own, whose peak memory is reported. Errors are those against the first of `quadrature` and
`frozen` that is among the methods. `quadrature` is the best Gaussian by passes over all rows: what infinitely many draws would find.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

METHODS = ("quadrature", "frozen", "polished", "streamed", "svi")


def write(folder: Path, n: int, dim: int) -> None:
    path = folder / f"design-{n}-{dim}"
    if path.exists():
        return
    random = np.random.default_rng([16, 7])
    design = np.memmap(path, np.float32, "w+", shape=(n, dim))
    labels = np.empty(n, np.float32)
    truth = random.standard_normal(dim) / np.sqrt(dim)
    for first in range(0, n, 100_000):
        block = random.standard_normal((min(100_000, n - first), dim)) * np.geomspace(0.3, 3.0, dim)
        design[first : first + len(block)] = block
        share = 1.0 / (1.0 + np.exp(-block @ truth))
        labels[first : first + len(block)] = np.where(random.random(len(block)) < share, 1.0, -1.0)
    np.save(folder / f"labels-{n}-{dim}.npy", labels)


def read(folder: Path, n: int, dim: int):
    return (
        np.memmap(folder / f"design-{n}-{dim}", np.float32, "r", shape=(n, dim)),
        np.load(folder / f"labels-{n}-{dim}.npy", mmap_mode="r"),
    )


def by_fit(method: str, design, labels, dim: int) -> dict:
    import jax
    import jax.numpy as jnp

    import quenched as qd

    target = qd.sum_of(
        qd.each(lambda seen, y: jax.nn.log_sigmoid(y * seen["w"]), labels, sees={"w": qd.dot(design)}),
        qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.whole}),
    )
    way = {"frozen": qd.Joint(), "polished": qd.Streaming(), "streamed": qd.Streaming(polish=False)}[method]
    draws = 2 * dim + 4
    fit = qd.fit(target, {"w": np.zeros(dim)}, method=way, draws=draws, check=64, progress=False, throw=False)
    sd = np.sqrt(fit.posterior.variance())
    told = {
        "bound": float(fit.bound),
        "check": float(fit.check_bound),
        "message": fit.message,
        "status": str(fit.status),
    }
    return told | {"passes": fit.n_evaluations / draws, "mean": fit.posterior.mean.tolist(), "sd": sd.tolist()}


def by_quadrature(design, labels, dim: int, block: int = 50_000) -> dict:
    """Variational Newton on blocks of rows: each sees one predictor, whose Gaussian takes a few nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    weights, n = weights / weights.sum(), len(labels)
    mean, covariance, passes, step = np.zeros(dim), np.zeros((dim, dim)), 0.0, np.inf
    rows = min(block, n)  # the first ones stand for all, until a step is small
    while rows < n or step > 1e-5:
        rows = n if step < 0.1 else rows
        gradient, precision = -mean, np.eye(dim)
        for first in range(0, rows, block):
            x, y = (np.asarray(part[first : min(first + block, rows)], np.float64) for part in (design, labels))
            deviation = np.sqrt(np.einsum("ni,ni->n", x @ covariance, x))
            share = 1.0 / (1.0 + np.exp(-((x @ mean)[:, None] + deviation[:, None] * nodes)))
            push, bend = (y > 0) - share @ weights, (share * (1.0 - share)) @ weights
            gradient += n / rows * (x.T @ push)
            precision += n / rows * ((x.T * bend) @ x)
        covariance, change = np.linalg.inv(precision), np.linalg.solve(precision, gradient)
        mean, step = mean + change, float(np.max(np.abs(change) / np.sqrt(np.diag(covariance))))
        passes += rows / n
    return {"passes": passes, "mean": mean.tolist(), "sd": np.sqrt(np.diag(covariance)).tolist()}


def by_svi(design, labels, dim: int) -> dict:
    """NumPyro's AutoMultivariateNormal with Adam, minibatches by `subsample_size`."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoMultivariateNormal

    x, y = np.asarray(design), (np.asarray(labels) > 0).astype(np.int32)
    n, steps, rows = len(y), 20_000, 1024

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([dim]).to_event(1))
        with numpyro.plate("row", n, subsample_size=rows) as some:
            numpyro.sample("y", dist.Bernoulli(logits=x[some] @ w), obs=y[some])

    guide = AutoMultivariateNormal(model, init_scale=0.01)
    svi = SVI(model, guide, numpyro.optim.Adam(1e-3), Trace_ELBO())
    found = svi.run(jax.random.PRNGKey(0), steps, jax.numpy.asarray(x), jax.numpy.asarray(y), progress_bar=False)
    posterior = guide.get_posterior(found.params)
    sd = np.sqrt(np.diag(np.asarray(posterior.covariance_matrix)))
    return {"passes": steps * rows / n, "mean": np.asarray(posterior.mean).tolist(), "sd": sd.tolist()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    parser.add_argument("inputs", type=int, nargs="?", default=50)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--folder", type=Path, default=Path("out"))
    parser.add_argument("--alone", action="store_true", help="run the method here, and print what it found")
    asked = parser.parse_args()
    if asked.alone:
        data, began = read(asked.folder, asked.rows, asked.inputs), time.perf_counter()
        (method,) = asked.methods
        others = {"svi": by_svi, "quadrature": by_quadrature}
        found = others[method](*data, asked.inputs) if method in others else by_fit(method, *data, asked.inputs)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(found | {"seconds": time.perf_counter() - began, "peak": peak}))
        return
    asked.folder.mkdir(exist_ok=True)
    write(asked.folder, asked.rows, asked.inputs)
    frozen = None
    for method in sorted(asked.methods, key=METHODS.index):
        command = [sys.executable, __file__, str(asked.rows), str(asked.inputs), "--methods", method, "--alone"]
        done = subprocess.run([*command, "--folder", str(asked.folder)], capture_output=True, text=True)
        if done.returncode:
            print(f"{method:10s} failed: {done.stderr[-800:]}", flush=True)
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        frozen = found if frozen is None and method in ("quadrature", "frozen") else frozen
        mean, sd = np.array(found["mean"]), np.array(found["sd"])
        error = ""
        if frozen is not None and frozen is not found:
            own = np.array(frozen["sd"])
            error = f", means within {np.max(np.abs(mean - frozen['mean']) / own):.3f} sds, sds within {np.max(np.abs(sd / own - 1)):.1%}"
        told = "".join(f", {key} {found[key]:.4f}" for key in ("bound", "check") if key in found)
        print(
            f"{method:10s} {found['passes']:8.2f} passes, {found['seconds']:7.1f} s, peak {found['peak']:.2f} GiB{told}{error} "
            f"{found.get('message', '')}",
            flush=True,
        )


if __name__ == "__main__":
    main()
