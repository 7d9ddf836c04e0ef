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
gaussian = qd.fit(target, start)
print(gaussian.verdict)

# %% [markdown]
# The sentence names a parameter whose sd is off, and by how much at least: weights of 63 parameters together see only so far. What drives
# the spread of the others belongs outside: for each draw of persistence and unrest, `qd.nested` finds the best Gaussian of path and level anew.

# %%
fit = qd.nested(target, start, outer=["atanh_persistence", "log_unrest"])
print(fit.verdict, "\n")
samples, moved = fit.sample(4000), gaussian.resample(4000)
for name in ("level", "atanh_persistence", "log_unrest"):
    found = {"Gaussian": gaussian.sample(4000)[name], "by weights": moved[name], "nested": samples[name]}
    print(f"{name:18s}", "   ".join(f"{who} {one.mean():5.2f} ± {one.std():.2f}" for who, one in found.items()))

# %% [markdown]
# The Gaussian in blue, the nested posterior dashed: unrest is four times as uncertain as one Gaussian over everything has it.

# %%
plot_marginals(gaussian, samples=samples)

# %%
low, middle, high = np.quantile(np.exp(0.5 * samples["log_variance"]), [0.025, 0.5, 0.975], axis=0)
axes = new_figure(8.0, 3.8).subplots()
dress(axes, xlabel="day", ylabel="per cent", title="size of the returns, and their volatility with its 95 % band")
axes.fill_between(days, low, high, color=BLUE, alpha=0.2, lw=0)
axes.plot(days, middle, color=BLUE, lw=1.6)
axes.plot(days, np.abs(returns), ".", color=INK, markersize=3)
axes

# %% [markdown]
# ## What the verdict was, and what was done
#
# One Gaussian over all 63 parameters was not trusted with its sds. Importance weights, which found that out, are not enough to mend it: most of
# what they should reach lies where the Gaussian has no samples. Nesting was the remedy, and its verdict stands under the second
# cell. [Which method when](../which_method.md) has the same for 500 days, beside NUTS.
