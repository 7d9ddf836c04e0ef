# needs: pandas data

# %% [markdown]
# # Many fits: one per record
#
# 59 records of two earthquakes at Taiwanese stations, and for each its own level, corner frequency and attenuation κ. One call fits
# them all, side by side in one compiled program.
#
# Data: smoothed Fourier amplitudes of the 2022 Guanshan and Chihshang earthquakes, from the records published by the GEER reconnaissance.

# %%
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.stats import norm

import quenched as qd
from quenched.plots import BLUE, GREY, ORANGE, dress, new_figure

table = pd.read_csv(Path(os.environ["QUENCHED_DATA"], "groundmotion", "fas_records.csv"))
table = table[table["dataset"] == "taiwan2022"]
records = [rows.sort_values("frequency_hz") for _, rows in table.groupby(["event", "station", "sensor"])]
distance = np.array([rows["R_hyp_km"].iloc[0] for rows in records])
data = {
    "frequency": np.stack([rows["frequency_hz"] for rows in records]),
    "log_amplitude": np.log(np.stack([rows["fas"] for rows in records])),
}


def log_density(p, data):
    """An omega-square spectrum with attenuation exp(−π κ f); Student's t for the peaks and troughs of a site."""
    f = data["frequency"]
    expected = p["level"] + 2 * jnp.log(f) - jnp.log1p((f / p["corner"]) ** 2) - jnp.pi * p["kappa"] * f
    prior = (
        norm.logpdf(p["level"], 2.0, 4.0) + norm.logpdf(jnp.log(p["corner"]), jnp.log(0.3), 1.0) - jnp.log(p["corner"])
    )
    prior += norm.logpdf(p["kappa"], 0.05, 0.05) + norm.logpdf(jnp.log(p["noise"]), -1.0, 1.0) - jnp.log(p["noise"])
    away = (data["log_amplitude"] - expected) / p["noise"]
    return (
        prior - (2.5 * jnp.log1p(away**2 / 4.0) + jnp.log(p["noise"])).sum()
    )  # four degrees of freedom, without constants


start = {"level": 2.0, "corner": 0.3, "kappa": 0.05, "noise": 0.4}
fits = qd.fit_many(log_density, start, data, transforms={"corner": qd.positive, "noise": qd.positive})
print(fits)

# %%
axes = new_figure(7.0, 3.8).subplots()
dress(axes, xlabel="distance (km)", ylabel="κ (s)", title="attenuation of each record, with its 95 % interval")
kappa, spread = fits.mean["kappa"], fits.sd["kappa"]
axes.errorbar(distance, kappa, 1.96 * spread, fmt="o", color=BLUE, markersize=4, lw=1)
axes.axhline(0, color=GREY, lw=0.8, ls=":")
axes

# %% [markdown]
# `fits[i]` is the fit that `qd.fit` would have found. The one with the largest k-hat, looked at more closely:

# %%
khats = np.array([one.khat for one in fits])
worst = int(np.argmax(khats))
print(pd.Series([one.answer.trust.words for one in fits]).value_counts().to_string(), "\n")
print(f"record {worst}: {fits[worst].answer}")

# %% [markdown]
# ## What the verdict was, and what was done
#
# Each record has its own verdict, counted above. The record with the largest k-hat was fitted again with `family="auto"`:

# %%
one = {name: values[worst] for name, values in data.items()}
fit = qd.fit(log_density, start, data=one, transforms={"corner": qd.positive, "noise": qd.positive}, family="auto")
print(fit)

# %%
samples = fit.sample(2000)
f = one["frequency"]
curves = samples["level"][:, None] + 2 * np.log(f) - np.log1p((f / samples["corner"][:, None]) ** 2)
curves -= np.pi * samples["kappa"][:, None] * f
axes = new_figure(6.4, 3.8).subplots()
dress(
    axes, xlabel="frequency (Hz)", ylabel="ln amplitude", title=f"record {worst}: the spectrum, and 95 % of the curves"
)
axes.fill_between(f, *np.quantile(curves, [0.025, 0.975], axis=0), color=BLUE, alpha=0.25, lw=0)
axes.plot(f, one["log_amplitude"], ".", color=ORANGE)
axes.set_xscale("log")
axes
