# %% [markdown]
# # An ODE model: lynx and hare
#
# The pelts of hares and lynxes that the Hudson's Bay Company took in, and the equations of Lotka and Volterra behind them. The
# equations are solved in JAX, so the gradient goes through the solver.
#
# Data: pelts in thousands, 1900–1920 (Howard 2009, *Modeling basics*, after Odum; as in the Stan case study of Carpenter 2018).

# %%
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import quenched as qd
from quenched.plots import plot_corner, plot_predictive

hare = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip
lynx = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
pelts = np.array([hare, lynx], float).T


def path(p):
    """Both populations, year by year: Runge–Kutta steps of a twentieth of a year, in logarithms."""

    def slope(log_size):
        hares, lynxes = jnp.exp(log_size)
        return jnp.array([p["birth"] - p["eaten"] * lynxes, -p["death"] + p["fed"] * hares])

    def step(state, _):
        a = slope(state)
        b = slope(state + 0.025 * a)
        c = slope(state + 0.025 * b)
        d = slope(state + 0.05 * c)
        return state + 0.05 / 6.0 * (a + 2 * b + 2 * c + d), None

    def year(state, _):
        state, _ = jax.lax.scan(step, state, None, length=20)
        return state, state

    _, years = jax.lax.scan(year, jnp.log(p["begin"]), None, length=20)
    return jnp.concatenate([jnp.log(p["begin"])[None], years])


def log_density(p):
    begin, noise = p["begin"], p["noise"]
    prior = norm.logpdf(p["birth"], 1.0, 0.5) + norm.logpdf(p["eaten"], 0.05, 0.05)
    prior += norm.logpdf(p["death"], 1.0, 0.5) + norm.logpdf(p["fed"], 0.05, 0.05)
    prior += (norm.logpdf(jnp.log(noise), -1.0, 1.0) - jnp.log(noise)).sum()
    prior += (norm.logpdf(jnp.log(begin), jnp.log(10.0), 1.0) - jnp.log(begin)).sum()
    return prior + norm.logpdf(np.log(pelts), path(p), noise).sum()


rates = {"birth": 0.5, "eaten": 0.03, "death": 0.8, "fed": 0.03}  # of hares, by lynxes; of lynxes, by hares
start = {**rates, "begin": pelts[0], "noise": np.array([0.3, 0.3])}
transforms = {name: qd.positive for name in start}
first = qd.fit(log_density, start, transforms=transforms)
print(first.verdict)

# %% [markdown]
# The rates are skewed and move together; `"auto"` tries a warped posterior and takes it where it is clearly nearer.

# %%
fit = qd.fit(log_density, start, transforms=transforms, family="auto")
print(fit)

# %%
plot_corner(fit, names=list(rates))

# %%
samples = fit.sample(1000)
with jax.enable_x64(True):
    paths = np.asarray(jax.jit(jax.vmap(path))(samples))
noise = np.random.default_rng(1).standard_normal(paths.shape) * samples["noise"][:, None]
plot_predictive(
    np.exp(paths + noise)[:, :, 0], pelts[:, 0], np.arange(1900, 1921), label="year (hares, thousands of pelts)"
)

# %% [markdown]
# ## What the verdict was, and what was done
#
# The full Gaussian was trusted with means and sds, and not with what lies far out. `"auto"` tried a warped posterior; its last paragraph says
# what came of that, and the check bounds of both say what it was worth:

# %%
print(
    f"check bound: full {first.check_bound:.3f} ± {first.check_error:.3f}, {fit.settings['family']} {fit.check_bound:.3f} ± {fit.check_error:.3f}"
)
