# needs: pandas data

# %% [markdown]
# # Item response
#
# 316 people answer 24 questions on verbal aggression: how inclined is each person, how easy is each item to agree with, and how well
# does it tell people apart? 364 parameters, of which a product of two enters every answer.
#
# Data: `VerbAgg` of the R package lme4 (De Boeck and Wilson 2004, *Explanatory Item Response Models*).

# %%
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.stats import norm

import quenched as qd
from quenched.plots import plot_effects, plot_predictive

table = pd.read_csv(Path(os.environ["QUENCHED_DATA"], "mixed", "VerbAgg.csv"))
person, people = pd.factorize(table["id"])
item, items = pd.factorize(table["item"])
yes = (table["r2"] == "Y").to_numpy(float)


def answer(seen, yes):
    score = jnp.exp(seen["log_slope"]) * seen["inclined"] + seen["easy"]
    return yes * score - jnp.logaddexp(0.0, score)


target = qd.sum_of(
    qd.each(answer, yes, sees={"inclined": person, "easy": item, "log_slope": item}),
    qd.each(lambda seen: norm.logpdf(seen["inclined"]), sees={"inclined": qd.each_entry}),
    qd.each(lambda seen: norm.logpdf(seen["easy"], 0.0, 2.0), sees={"easy": qd.each_entry}),
    qd.each(lambda seen: norm.logpdf(seen["log_slope"], 0.0, 0.5), sees={"log_slope": qd.each_entry}),
)
start = {"inclined": np.zeros(len(people)), "easy": np.zeros(len(items)), "log_slope": np.zeros(len(items))}
gaussian = qd.fit(target, start)
print(f"{gaussian.posterior.dim} parameters, family {gaussian.settings['family']}, {gaussian.seconds:.0f} s")
print(gaussian.verdict)

# %% [markdown]
# A product of two parameters is skewed where each is little known. The sparse Gaussian may be warped along each of them:

# %%
fit = qd.fit(target, start, family=qd.Sparse(warped=True))
print(f"check bound {gaussian.check_bound:.2f} -> {fit.check_bound:.2f}")
for name in start:
    ratio = fit.sd[name] / gaussian.sd[name]
    print(f"sds of {name:9s} {ratio.min():.2f} to {ratio.max():.2f} times as large")
print(fit.answer)

# %%
slope = {
    "mean": np.exp(fit.mean["log_slope"]),
    "sd": np.exp(fit.mean["log_slope"]) * fit.sd["log_slope"],
    "level": items,
}
plot_effects(slope, title="how well an item tells people apart")

# %%
plot_effects(
    {"mean": fit.mean["inclined"], "sd": fit.sd["inclined"], "level": people}, title="inclination of each person"
)

# %% [markdown]
# ## What the verdict was, and what was done
#
# The Gaussian was not trusted. The warped family is nearer, and its means are trusted; its sds are not, since weights ask whether all that
# the others share is right *together*. The list says what the warp changed of each sd, which is how far to read the intervals above. Whether the
# model describes people and items is asked by replicating the answers: how many said yes to each item.

# %%
samples = fit.sample(500)
score = np.exp(samples["log_slope"])[:, item] * samples["inclined"][:, person] + samples["easy"][:, item]
replicated = np.random.default_rng(1).uniform(size=score.shape) < 1 / (1 + np.exp(-score))
order = np.argsort(np.bincount(item, yes))
counts = np.stack([np.bincount(item, one, len(items)) for one in replicated])[:, order]
plot_predictive(counts, np.bincount(item, yes)[order], label="items, from the fewest to the most who said yes")
