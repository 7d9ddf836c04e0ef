# needs: data

# %% [markdown]
# # Ground motion: stress drops from spectra
#
# Eight earthquakes at one station, and what their Fourier amplitudes say about the stress that each released, and about the path and
# the ground they came through.
#
# Data: borehole spectra of KiK-net station FKSH11 (NIED, doi:10.17598/NIED.0004), every tenth frequency.

# %%
import numpy as np

from quenched.paper import datasets
from quenched.science import GroundMotion

table = datasets.ground_motion("fksh11")
frequencies = np.unique(table["frequency_hz"])[::10]
table = {name: column[np.isin(table["frequency_hz"], frequencies)] for name, column in table.items()}
first = GroundMotion().fit(table)
print(first.fit_.verdict)

# %% [markdown]
# The quality factor leans towards large values, where it hardly matters: its posterior is skewed, and the verdict names it. The warped
# family follows that.

# %%
model = GroundMotion().fit(table, family="auto")
fit = model.fit_
print(model)

# %%
model.plot_spectra()

# %% [markdown]
# Path and site trade off against each other, since all records come through the same ground:

# %%
model.plot_corner(names=["spreading", "quality", "kappa0", model.events_[0]])

# %% [markdown]
# ## What the verdict was, and what was done
#
# The first verdict named the parameter whose mean importance weights would move; `family="auto"` was the remedy, and the verdict
# under the table is the one on what it chose. In bulk that is near; it still doubts what lies further out than its draws came, and for
# probabilities there MCMC from `fit.nuts_start()` is what is left. Such a model has bounds on everything; where a posterior leans on one, the table says so.
# With low frequencies alone the data leave much open, and the model says that too:

# %%
low = table["frequency_hz"] < 0.5
print(GroundMotion().fit({name: column[low] for name, column in table.items()}))
