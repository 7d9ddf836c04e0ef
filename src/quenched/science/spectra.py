"""Spectra as columns, read from a table and checked before anything is computed."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from quenched.numbers import plain_array, yes_or_no
from quenched.science.boore import GRAVITY
from quenched.text import harmless, shown

UNITS = {"cm/s": 1.0, "m/s": 100.0, "g s": GRAVITY}  # of acceleration times time, in cm/s

_NAMES = {  # the first is ours, the others are found in tables
    "event": ("event", "event_id", "eventid"),
    "magnitude": ("Mw", "magnitude", "mw"),
    "distance": ("R", "R_hyp_km", "R_km", "distance_km", "distance"),
    "frequency": ("f", "frequency_hz", "frequency"),
    "amplitude": ("fas", "fas_cm_s", "amplitude", "fourier_amplitude"),
}


@dataclass(frozen=True, eq=False)
class Spectra:
    """Points of spectra: one row per event, station and frequency.

    Attributes
    ----------
    event
        Name of the event, as text.
    magnitude, distance, frequency
        Mw, R in km, f in Hz.
    amplitude
        Observed Fourier amplitude of acceleration in cm/s; None where nothing was observed.

    Examples
    --------
    >>> from quenched.science import read_spectra
    >>> read_spectra((["one", "two"], [5.0, 6.0], [20.0, 20.0], [1.0, 1.0]), observed=False).magnitude
    array([5., 6.])
    """

    event: np.ndarray
    magnitude: np.ndarray
    distance: np.ndarray
    frequency: np.ndarray
    amplitude: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.event)


def read_spectra(table: Any, unit: str = "cm/s", *, observed: bool = True) -> Spectra:
    """Columns of a table: a DataFrame, any mapping of columns, or arrays (event, Mw, R, f[, amplitude]).

    Raises
    ------
    ValueError
        Names the column, the row and the value that cannot be right.

    Examples
    --------
    >>> from quenched.science import read_spectra
    >>> rows = {"event": ["one", "one"], "Mw": [5.0, 5.0], "R": [20.0, 20.0], "f": [1.0, 2.0], "fas": [0.5, 0.7]}
    >>> spectra = read_spectra(rows, unit="m/s")
    >>> len(spectra), spectra.amplitude
    (2, array([50., 70.]))
    """
    if isinstance(table, Spectra):
        return table
    if not isinstance(unit, str) or unit not in UNITS:
        raise ValueError(f"unit={shown(unit)} is not known; use {', '.join(map(repr, UNITS))}.")
    observed = yes_or_no("observed", observed)
    columns = _columns(table, observed)
    event = np.asarray([_text(name) for name in _names(columns["event"])], dtype=str)
    numbers = {name: _positive(name, columns[name], len(event)) for name in columns if name != "event"}
    if not len(event):
        raise ValueError("table: has no rows; there is nothing to fit or predict.")
    if "amplitude" in numbers:
        numbers["amplitude"] = numbers["amplitude"] * UNITS[unit]
    spectra = Spectra(event, **numbers)
    _one_magnitude_each(spectra)
    return spectra


def _columns(table: Any, observed: bool) -> dict[str, Any]:
    wanted = [name for name in _NAMES if observed or name != "amplitude"]
    if isinstance(table, (tuple, list)):
        if len(table) not in (len(wanted), len(_NAMES)):
            raise ValueError(
                f"table: {len(table)} arrays were given; give (event, Mw, R, f{', amplitude' if observed else ''})."
            )
        return dict(zip(wanted, table, strict=False))
    like_a_table = hasattr(table, "keys") and hasattr(table, "__getitem__")
    if isinstance(table, type) or not (isinstance(table, Mapping) or like_a_table):
        raise ValueError(
            f"table: a {type(table).__name__} is not a table; give a DataFrame, a dict of columns, or arrays "
            "(event, Mw, R, f, amplitude)."
        )
    present = [str(key) for key in table.keys()]  # noqa: SIM118  (iterating a DataFrame-like need not give its columns)
    return {name: table[_find(name, present)] for name in wanted}


def _find(name: str, present: list[str]) -> str:
    for candidate in _NAMES[name]:
        if candidate in present:
            return candidate
    near = difflib.get_close_matches(_NAMES[name][0], present, n=1)
    hint = f" (is it {near[0]!r}?)" if near else ""
    raise ValueError(
        f"table: has no column for the {name}{hint}; call it one of {', '.join(_NAMES[name])}. It has "
        f"{', '.join(present) or 'none'}."
    )


def _names(column: Any) -> np.ndarray:
    """As they were given: NumPy makes a missing name among others the text "nan"."""
    found = plain_array("table: event", column)
    return (
        np.asarray(column, dtype=object) if found.dtype.kind == "U" and isinstance(column, (list, tuple)) else found
    ).ravel()


def _positive(name: str, column: Any, n: int) -> np.ndarray:
    try:
        found = plain_array(f"the {name}", column)
        if found.dtype.kind in "cmM":  # whose imaginary parts, or units, would be lost
            raise TypeError(f"it has dtype {found.dtype}")
        values = np.asarray(found, dtype=np.float64).ravel()
    except Exception as error:  # of whatever it is, when it is made an array
        raise ValueError(f"table: the {name} is not a column of numbers: {error}.") from error
    if len(values) != n:
        raise ValueError(f"table: {name} has {len(values)} rows, but event has {n}.")
    right = np.isfinite(values) if name == "magnitude" else np.isfinite(values) & (values > 0)
    if not right.all():
        row = int(np.argmin(right))
        needed = "finite" if name == "magnitude" else "finite and greater than 0"
        raise ValueError(
            f"table: {name} = {values[row]} in row {row} ({int((~right).sum())} such rows); it must be {needed}: "
            "remove these rows."
        )
    return values


def _one_magnitude_each(spectra: Spectra) -> None:
    for event in np.unique(spectra.event):
        found = np.unique(spectra.magnitude[spectra.event == event])
        if len(found) > 1:
            raise ValueError(
                f"table: event {_text(event)!r} has magnitudes {found[0]} and {found[1]}; an event has one."
            )


def _text(name: Any) -> str:
    # Of NumPy and of pandas: NaN of any length, NaT, NA.
    if name is None or (not isinstance(name, str) and str(name) in ("nan", "NaT", "<NA>")):
        raise ValueError("table: event has missing names; every row needs one.")
    return harmless(str(name))
