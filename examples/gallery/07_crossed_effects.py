# needs: formulae pandas sklearn data

# %% [markdown]
# # Crossed effects from a formula
#
# 73,421 ratings of lectures by 2,972 students of 1,128 lecturers in 14 departments, crossed in every way: 4,116 parameters in one
# full Gaussian, since the model is sparse where the data are.
#
# Data: `InstEval` of the R package lme4, lectures at ETH Zürich.

# %%
import os
from pathlib import Path

import pandas as pd

from quenched.models import MixedModel
from quenched.plots import plot_effects

table = pd.read_csv(Path(os.environ["QUENCHED_DATA"], "mixed", "InstEval.csv"))
table["good"] = (table["y"] >= 4).astype(float)
for column in ("s", "d", "dept"):
    table[column] = table[column].astype(str)

model = MixedModel("good ~ service + (1|s) + (1|d) + (1|dept)", likelihood="bernoulli", hyper="raised").fit(table)
print(model.fixed_.round(4), "\n")
print(model.sd_[["mean"]].round(4), "\n")
fit = model.fit_
print(fit.settings["family"], fit.posterior.dim, "parameters,", f"{fit.seconds:.0f} s")
print(fit.verdict)

# %%
plot_effects(model.effects_["1|d"], title="effect of each lecturer on the log odds of a good rating")

# %%
plot_effects(model.effects_["1|dept"], title="effect of each department")

# %% [markdown]
# ## What the verdict was, and what was done
#
# `hyper="raised"` puts the three standard deviations where the bound is highest, so they have no error of their own; with
# `"integrated"`, the default, they would have a posterior. The verdict on the 4,116 others is cautious about their sds, which the intervals
# in the pictures are made of; [NUTS on all rows](../sums_of_terms.md), with the three standard deviations as parameters, was asked about them: the sds of one
# Gaussian over everything are 0.95 to 1.05 times its own. As a check from outside: GPBoost 1.8.0 (Laplace) finds fixed effects −0.1595 and −0.1396 and variances 0.2273, 0.6217
# and 0.0135 for students, lecturers and departments. Ours:

# %%
(model.sd_["mean"] ** 2).round(4)
