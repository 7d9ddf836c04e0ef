"""Our L-BFGS beside SciPy's and optax's: evaluations, time to first answer (compilation included), and time after.

optax is not needed by the library: pip install optax.
"""

import contextlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from quenched.optimise import LBFGS, ScaledConjugateGradients

TOLERANCE = 1e-6


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def quadratic(x):
    return 0.5 * jnp.sum(jnp.logspace(0, 3, x.size) * (x - 1.0) ** 2)


def logistic(x):
    features = jnp.asarray(np.random.default_rng(0).standard_normal((500, x.size)))
    scores = features @ x
    return jnp.sum(jnp.logaddexp(0.0, scores) - scores * (features[:, 0] > 0)) + 0.5 * x @ x


def host(minimiser):
    def run(value_and_gradient, start):
        state, count = minimiser.init(start), 0
        while count < 20_000 and not state.stalled:
            if state.started and np.max(np.abs(state.gradient)) <= TOLERANCE:
                break
            value, gradient = value_and_gradient(state.trial)
            state, count = minimiser.step(state, np.asarray(value), np.asarray(gradient)), count + 1
        return float(state.value), count

    return run


def by_scipy(value_and_gradient, start):
    fun = lambda x: tuple(np.asarray(part) for part in value_and_gradient(x))
    options = {"gtol": TOLERANCE, "ftol": 0.0, "maxfun": 20_000, "maxiter": 20_000}
    found = minimize(fun, start, jac=True, method="L-BFGS-B", options=options)
    return float(found.fun), found.nfev


def by_optax(function):
    import optax

    solver = optax.lbfgs()
    value_and_gradient = optax.value_and_grad_from_state(function)

    @jax.jit
    def run(start):
        def more(carry):
            _, state = carry
            count = optax.tree.get(state, "count")
            gradient = optax.tree.get(state, "grad")
            return (count == 0) | ((count < 5000) & (jnp.max(jnp.abs(gradient)) > TOLERANCE))

        def advance(carry):
            x, state = carry
            value, gradient = value_and_gradient(x, state=state)
            updates, state = solver.update(gradient, state, x, value=value, grad=gradient, value_fn=function)
            return optax.apply_updates(x, updates), state

        x, state = jax.lax.while_loop(more, advance, (start, solver.init(start)))
        return function(x), optax.tree.get(state, "count")

    return lambda _, start: tuple(float(part) for part in run(jnp.asarray(start)))


def main() -> None:
    print("problem       dim  minimiser                 evaluations  first s   then ms  value")
    with jax.enable_x64(True):
        for function in (quadratic, logistic, rosenbrock):
            for dim in (10, 100):
                start = np.where(np.arange(dim) % 2, 1.0, -1.2)
                peers = {
                    "quenched L-BFGS": host(LBFGS()),
                    "quenched SCG": host(ScaledConjugateGradients()),
                    "SciPy L-BFGS-B": by_scipy,
                }
                with contextlib.suppress(ImportError):
                    peers["optax L-BFGS (steps)"] = by_optax(function)
                for name, run in peers.items():
                    value_and_gradient = jax.jit(jax.value_and_grad(function))
                    times = []
                    for _ in range(4):
                        began = time.perf_counter()
                        value, count = run(value_and_gradient, start)
                        times.append(time.perf_counter() - began)
                    print(
                        f"{function.__name__:12s} {dim:4d}  {name:24s}  {int(count):11d}  {times[0]:7.2f}  "
                        f"{1e3 * np.median(times[1:]):8.1f}  {value:.3e}"
                    )


if __name__ == "__main__":
    main()
