# %% [markdown]
# # Stochastic volatility
#
# 120 daily returns whose unknown log variance wanders from day to day. Its persistence and its unrest decide how far each day's value can be
# from the next, so one Gaussian over everything is too narrow; nested frozen draws are made for this.
#
# Data: percentage returns of the Deutsche mark against the pound, 120 trading days from the 480th after 3 January 1984 on, to two decimals
# (Bollerslev and Ghysels 1996, Journal of Business and Economic Statistics 14, 139–151; `MarkPound` of the R package AER).

# %%
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import quenched as qd
from quenched.plots import BLUE, INK, dress, new_figure

returns = np.array(
    """
    -0.76 -1.00 -0.48 -0.63 0.29 -0.16 -0.39 -0.84 -0.02 0.07 0.07 -0.55 -0.69 0.40 -0.16 0.16 -0.25 -0.73 0.26
    0.80 0.36 -0.34 -0.04 -0.17 -0.39 0.12 -0.36 -1.54 -0.30 -1.72 -0.66 -1.93 2.20 -1.76 0.70 0.53 -1.66 -0.42
    1.07 0.81 -0.30 -0.32 -0.00 -0.55 0.48 -0.57 1.10 -0.63 0.61 -0.55 -0.04 0.57 -0.72 -1.44 -0.97 -2.05 0.12
    1.92 0.20 -0.49 1.23 0.58 1.39 -1.00 -0.22 -1.10 0.51 1.38 0.72 0.32 1.39 -0.89 1.32 0.16 -0.64 1.71 0.16
    -0.77 0.97 -1.11 -1.62 0.34 -0.18 0.48 0.77 -1.55 -0.34 -0.15 -1.26 -0.18 -0.01 1.22 0.26 -0.64 0.22 0.48
    -0.52 1.18 -0.38 -0.86 0.06 0.04 0.24 0.08 -0.04 0.50 0.47 0.10 -0.26 0.64 -0.03 0.20 0.11 -0.81 -0.74 -0.66
    0.22 -0.52 0.30 0.75
    """.split(),
    float,
)


def observed(seen, value):
    """return[t] ~ N(0, exp(h[t]))"""
    return norm.logpdf(value, 0.0, jnp.exp(0.5 * seen["log_variance"]))


def step(seen):
    """h[t] = level + persistence (h[t−1] − level) + unrest × noise"""
    before, after = seen["log_variance"]
    expected = seen["level"] + jnp.tanh(seen["atanh_persistence"]) * (before - seen["level"])
    return norm.logpdf(after, expected, jnp.exp(seen["log_unrest"]))


def begin(seen):
    spread = jnp.exp(seen["log_unrest"]) * jnp.cosh(seen["atanh_persistence"])  # of a path without beginning
    prior = norm.logpdf(seen["level"], -1.0, 1.0) + norm.logpdf(seen["log_unrest"], -1.2, 0.7)
    prior += norm.logpdf(seen["atanh_persistence"], 1.8, 0.5)
    return prior + norm.logpdf(seen["log_variance"], seen["level"], spread).sum()


days = np.arange(len(returns))
common = {"level": qd.whole, "atanh_persistence": qd.whole, "log_unrest": qd.whole}
target = qd.sum_of(
    qd.each(observed, returns, sees={"log_variance": days}),
    qd.each(step, sees={"log_variance": np.stack([days[:-1], days[1:]], axis=1), **common}),
    qd.each(begin, sees={"log_variance": days[:1], **common}),
)
start = {
    "level": -1.0,
    "atanh_persistence": 1.8,
    "log_unrest": -1.2,
    "log_variance": np.full(len(returns), np.log(returns.var())),
}
first = qd.fit(target, start)
print(first.verdict)

# %% [markdown]
# Persistence and unrest become the outer parameters; for each of their draws the best Gaussian of the path and of the level is solved
# anew. The level is Gaussian given the others, so it belongs inside. (64 outer draws and a full outer Gaussian keep this page quick.)

# %%
fit = qd.nested(target, start, outer=["atanh_persistence", "log_unrest"], family="full", draws=64)
print(fit.verdict)
for name in ("level", "atanh_persistence", "log_unrest"):
    print(
        f"{name:18s} one Gaussian {first.mean[name]:6.2f} ± {first.sd[name]:.2f}   nested {fit.mean[name]:6.2f} ± {fit.sd[name]:.2f}"
    )

# %%
volatility = np.exp(0.5 * fit.sample(4000)["log_variance"])
low, middle, high = np.quantile(volatility, [0.025, 0.5, 0.975], axis=0)
axes = new_figure(8.0, 3.8).subplots()
dress(axes, xlabel="day", ylabel="per cent", title="size of the returns, and their volatility with its 95 % band")
axes.fill_between(days, low, high, color=BLUE, alpha=0.2, lw=0)
axes.plot(days, middle, color=BLUE, lw=1.6)
axes.plot(days, np.abs(returns), ".", color=INK, markersize=3)
axes

# %% [markdown]
# ## What the verdict was, and what was done
#
# One full Gaussian over all 123 parameters was fitted first; its verdict stands under the first cell. `qd.nested` raised the
# bound, and widened what one Gaussian had made too narrow:

# %%
print(
    f"check bound: one Gaussian {first.check_bound:.2f} ± {first.check_error:.2f}, nested {fit.check_bound:.2f} ± {fit.check_error:.2f}"
)
