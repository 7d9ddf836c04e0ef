# needs: pymc pandas data

# %% [markdown]
# # A PyMC model of counts
#
# Seizures of 59 people in four fortnights, half of them treated: a Poisson regression with an effect for each person. The model is
# PyMC's, and its gradient comes from PyMC; a model of Bambi is given as `formula.backend.model`.
#
# Data: Thall and Vail (1990), Biometrics 46, 657–671, as `Epil` among the BUGS examples.

# %%
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm

import quenched as qd
from quenched.plots import plot_effects, plot_predictive

table = pd.read_csv(Path(os.environ["QUENCHED_DATA"], "mixed", "Epil.txt"), sep=" ")
base, age = np.log(table["Base"] / 4.0), np.log(table["Age"])
columns = {"base": base, "treated": table["Trt"], "both": base * table["Trt"], "age": age, "last visit": table["V4"]}
design = np.stack([column - column.mean() for column in columns.values()], axis=1)
person = table["Ind"].to_numpy() - 1

with pm.Model(coords={"column": list(columns), "person": range(1, 60)}) as model:
    level = pm.Normal("level", 1.5, 1.0)
    slopes = pm.Normal("slopes", 0.0, 1.0, dims="column")
    sd = pm.HalfNormal("sd", 1.0)
    effect = pm.Normal("effect", 0.0, sd, dims="person")
    pm.Poisson("seizures", pm.math.exp(level + design @ slopes + effect[person]), observed=table["y"].to_numpy())

fit = qd.fit(qd.from_pymc(model))
print(fit.verdict)

# %% [markdown]
# What trust means in numbers: `fit.resample` takes samples of the Gaussian by their importance weights (k-hat is below 0.7), and both sds
# stand side by side. The intervals in the pictures are of those samples.

# %%
samples, moved = fit.sample(4000), fit.resample(4000)
slopes = {"level": list(columns), "mean": moved["slopes"].mean(axis=0), "sd": moved["slopes"].std(axis=0)}
for one, name in enumerate(columns):
    print(f"{name:12s} sd {samples['slopes'][:, one].std():.3f}, weighted {slopes['sd'][one]:.3f}")
print(f"sd of people sd {samples['sd'].std():.3f}, weighted {moved['sd'].std():.3f}")
plot_effects(slopes, title="what a unit of each adds to the log of the expected seizures")

# %%
effects = moved["effect"]
effect_of = {"mean": effects.mean(axis=0), "sd": effects.std(axis=0), "level": range(1, 60)}
plot_effects(effect_of, title="effect of each person on the log of the expected seizures")

# %% [markdown]
# Replicated data beside those that were seen. Crosses are visits that a Poisson model finds surprising: counts of seizures vary more
# from visit to visit than it allows for.

# %%
predicted = fit.predict(1000)["seizures"]
order = np.argsort(predicted.mean(axis=0), kind="stable")
axes = plot_predictive(
    predicted[:, order], table["y"].to_numpy(float)[order], label="visits, by their expected number of seizures"
)
axes.set_yscale("symlog")
axes

# %% [markdown]
# ## What the verdict was, and what was done
#
# The verdict on the full Gaussian trusts means and sds, and nothing had to be done. Samples that are weighted to the target were drawn all
# the same, and the list says what that changed: hardly anything but the spread of the scale of people, which is skewed. The last picture
# asks another question, that no verdict on a posterior answers: whether the model is right. An effect for each visit would be the next thing to try.
