"""The posterior of the physical parameters as a table, with a remark on what the data do not tell."""

import io
from typing import Any

import numpy as np

from quenched.results import Fit
from quenched.science.identification import Judgement, identify
from quenched.science.inversion import PARAMETERS, Bounds


def table_of(samples: dict[str, np.ndarray], events: list[str], bounds: Bounds) -> list[dict[str, Any]]:
    """One row per number: name, event, unit, mean, sd, 95 % interval, bounds, and a remark."""
    table = []
    for name, (symbol, unit, _, _) in PARAMETERS.items():
        values = samples[name]
        for event, column in zip(events, values.T, strict=True) if values.ndim == 2 else (("", values),):
            lower, upper = bounds[name]
            # The noise is flat in its logarithm: judged there.
            measure = np.log if name == "noise" else np.asarray
            judgement = identify(measure(column), float(measure(lower)), float(measure(upper)))
            low, high = np.quantile(column, [0.025, 0.975])
            table.append(
                {
                    "name": name,
                    "event": event,
                    "symbol": symbol,
                    "unit": unit,
                    "mean": float(column.mean()),
                    "sd": float(column.std()),
                    "low": float(low),
                    "high": float(high),
                    "lower_bound": lower,
                    "upper_bound": upper,
                    "identified": judgement.identified,
                    "pressed": judgement.pressed,
                    "remark": _remark(judgement, lower, upper),
                }
            )
    return table


def _remark(judgement: Judgement, lower: float, upper: float) -> str:
    """With the bound in natural units."""
    if not judgement.pressed:
        return judgement.words
    return f"{judgement.words} {lower if judgement.pressed == 'lower' else upper:g}"


def render_table(table: list[dict[str, Any]], fit: Fit, n_points: int) -> str:
    """The table, what it rests on, and the verdict."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text  # plain: names of events may hold square brackets

    shown = Table(box=None, pad_edge=False)
    for heading in ("parameter", "event", "mean", "sd", "95 % interval", "remark"):
        shown.add_column(heading, justify="left" if heading in ("parameter", "event", "remark") else "right")
    for row in table:
        name = f"{row['name']} {row['symbol']}" + (f" ({row['unit']})" if row["unit"] else "")
        interval = f"{row['low']:.4g} – {row['high']:.4g}"
        numbers = (f"{row['mean']:.4g}", f"{row['sd']:.3g}", interval)
        shown.add_row(Text(name), Text(row["event"]), *numbers, Text(row["remark"]))
    console = Console(file=io.StringIO(), width=140)
    console.print(shown)
    console.print(Text(f"\n{n_points} points of spectra. {fit.verdict}"), width=100)  # as a fit is printed
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # pyright: ignore
