"""What figures of a ground-motion model show: plain columns, so that plots need not know the model."""

from typing import TYPE_CHECKING

import numpy as np

from quenched.science.inversion import PARAMETERS
from quenched.science.spectra import UNITS, Spectra
from quenched.text import shown

if TYPE_CHECKING:
    from quenched.plots import Panel
    from quenched.science.ground_motion import GroundMotion

_GRID = 80  # frequencies of a curve


def spectrum_panels(model: "GroundMotion", spectra: Spectra, probability: float) -> "list[Panel]":
    """One panel per event and distance: observed points, and predictions on a grid of frequencies."""
    from quenched.plots import Panel

    assert spectra.amplitude is not None
    panels = []
    grid = np.geomspace(spectra.frequency.min(), spectra.frequency.max(), _GRID)
    for event, distance in sorted(set(zip(spectra.event.tolist(), spectra.distance.tolist(), strict=True))):
        rows = (spectra.event == event) & (spectra.distance == distance)
        magnitude, frequency = spectra.magnitude[rows][0], spectra.frequency[rows]
        same = lambda value: np.full(_GRID, value)
        bands = model.predict((same(event), same(magnitude), same(distance), grid), probability=probability)
        observed = spectra.amplitude[rows] / UNITS[model.unit]
        title = f"{event}\nMw {magnitude:g}, {distance:.0f} km"
        panels.append(Panel(title, frequency, observed, grid, *bands))
    return panels


def corner_columns(model: "GroundMotion", names: list[str] | None, n: int) -> dict[str, np.ndarray]:
    """Labelled samples of parameters and of events' stress drops."""
    samples = model.sample(n)
    known = {}
    heads = {event.rpartition("_")[0] for event in model.events_}
    shared = len(heads.pop()) + 1 if len(heads) == 1 and len(model.events_) > 1 else 0  # `FKSH11_` tells nothing apart
    for name, (symbol, unit, _, _) in PARAMETERS.items():
        if name != "stress_drop":
            known[name] = (symbol + (f" ({unit})" if unit else ""), samples[name])
    for index, event in enumerate(model.events_):
        known[event] = (f"Δσ (bar)\n{event[shared:]}", samples["stress_drop"][:, index])
    if names is not None and (not isinstance(names, (list, tuple)) or not names):
        raise ValueError(f"names={shown(names)}: give a list of parameters and events; there are {', '.join(known)}.")
    for name in names or ():
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"names: {shown(name)} is neither a parameter nor an event; there are {', '.join(known)}.")
    return dict(known[name] for name in (known if names is None else names))
