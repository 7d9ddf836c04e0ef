# %% [markdown]
# # Stress drops from Fourier amplitude spectra
#
# From a CSV file of spectra to a posterior of stress drops, path and site parameters, with Boore's stochastic model.
#
#     QUENCHED_DATA=folder python examples/ground_motion.py            # KiK-net FKSH11, if the folder has it
#     python examples/ground_motion.py spectra.csv                     # your own: event, Mw, R, f, fas (cm/s)
#
# Without either, spectra are simulated. `docs/ground_motion.md` explains every step.

# %%
import sys

import jax
import numpy as np

from quenched.paper import datasets
from quenched.science import GroundMotion, fourier_amplitude, read_spectra_csv


# %%
def simulated():
    """Three events at four distances, with known parameters and noise."""
    event = np.repeat(["A", "B", "C"], 100)
    magnitude, stress = (np.repeat(values, 100) for values in ([4.8, 5.6, 6.3], [40.0, 90.0, 200.0]))
    distance = np.tile(np.repeat([15.0, 45.0, 90.0, 140.0], 25), 3)
    frequency = np.tile(np.geomspace(0.2, 25.0, 25), 12)
    with jax.enable_x64(True):
        path_and_site = {"spreading": 1.1, "quality": 250.0, "kappa0": 0.03}
        clean = np.asarray(fourier_amplitude(magnitude, distance, frequency, stress_drop=stress, **path_and_site))
    noisy = clean * np.exp(0.3 * np.random.default_rng(0).standard_normal(len(event)))
    return {"event": event, "Mw": magnitude, "R": distance, "f": frequency, "fas": noisy}


def spectra():
    """The file that was named, else FKSH11, else a simulation."""
    if len(sys.argv) > 1:
        return read_spectra_csv(sys.argv[1])
    try:
        return datasets.ground_motion("fksh11")
    except datasets.DatasetError as error:
        print(f"{error}\n\nSpectra are simulated instead.\n")
        return simulated()


# %%
if __name__ == "__main__":
    table = spectra()
    model = GroundMotion().fit(table)
    print(model)

    # %% Spectra with bands, and the trade-offs between path, site and source.
    model.plot_spectra("out/spectra.png")
    model.plot_corner("out/corner.png", names=["spreading", "quality", "kappa0", *model.events_[:2]])

    # %% What another site at 50 km would have recorded of the first event.
    frequency = np.array([0.5, 1.0, 5.0, 10.0])
    same = lambda value: np.full(4, value)
    magnitude = np.asarray(table["Mw"])[np.asarray(table["event"]) == model.events_[0]][0]
    bands = model.predict((same(model.events_[0]), same(magnitude), same(50.0), frequency))
    print(f"\n{model.events_[0]} at 50 km")
    for row in zip(frequency, bands.median, bands.lower, bands.upper, strict=True):
        print("{:5.1f} Hz  {:7.3f} cm/s, 95 % of observations between {:.3f} and {:.3f}".format(*row))

    # %% Without high frequencies: the summary says what such data leave open.
    low = np.flatnonzero(np.asarray(table["f" if "f" in table else "frequency_hz"]) < 0.5)
    print("\nWith frequencies below 0.5 Hz only:")
    print(GroundMotion().fit({name: np.asarray(column)[low] for name, column in table.items()}))
    model.save("out/ground_motion.npz")
