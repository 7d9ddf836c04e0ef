# %% [markdown]
# # Stochastic volatility
#
# 60 daily returns whose unknown log variance wanders from day to day. Its persistence and its unrest decide how far each day's value can be
# from the next, and so how wide the others are: one Gaussian over everything cannot follow that altogether.
#
# Data: percentage returns of the Deutsche mark against the pound, 60 trading days from the 480th after 3 January 1984 on, to two decimals
# (Bollerslev and Ghysels 1996, Journal of Business and Economic Statistics 14, 139–151; `MarkPound` of the R package AER).

# %%
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import quenched as qd
from quenched.plots import BLUE, INK, dress, new_figure, plot_marginals

returns = np.array(
    """
    -0.76 -1.00 -0.48 -0.63 0.29 -0.16 -0.39 -0.84 -0.02 0.07 0.07 -0.55 -0.69 0.40 -0.16 0.16 -0.25 -0.73 0.26
    0.80 0.36 -0.34 -0.04 -0.17 -0.39 0.12 -0.36 -1.54 -0.30 -1.72 -0.66 -1.93 2.20 -1.76 0.70 0.53 -1.66 -0.42
    1.07 0.81 -0.30 -0.32 -0.00 -0.55 0.48 -0.57 1.10 -0.63 0.61 -0.55 -0.04 0.57 -0.72 -1.44 -0.97 -2.05 0.12
    1.92 0.20 -0.49
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
fit = qd.fit(target, start)
print(fit.verdict)

# %% [markdown]
# The sentence names the parameter whose mean is off, and by how much. With k-hat below 0.7 the importance weights that found it out can mend it:
# `fit.resample` draws from the target instead of the Gaussian.

# %%
gaussian, target_samples = fit.sample(4000), fit.resample(4000)
print(f"k-hat {fit.khat:.2f}")
for name in ("level", "atanh_persistence", "log_unrest"):
    one, other = gaussian[name], target_samples[name]
    print(
        f"{name:18s} Gaussian {one.mean():6.2f} ± {one.std():.2f}   resampled {other.mean():6.2f} ± {other.std():.2f}"
    )

# %%
plot_marginals(fit, samples=target_samples)

# %%
volatility = np.exp(0.5 * target_samples["log_variance"])
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
# The verdict on the full Gaussian of all 63 parameters stands under the first cell; importance resampling was the remedy, and its means and
# standard deviations stand beside those of the Gaussian. For longer series weights of all parameters together fail, and the remedy
# is `qd.nested(target, start, outer=["atanh_persistence", "log_unrest"])`: for each draw of the outer two the best Gaussian of path and
# level is solved anew. [Which method when](../which_method.md) has what that gains.
