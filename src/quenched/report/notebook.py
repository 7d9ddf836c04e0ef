"""Results as a notebook shows them: the verdict with its colour, the table, and a small picture.

Everything is inside the HTML: styles are attributes, since notebooks that are shown elsewhere lose style sheets, pictures are
SVG, and colours are see-through, so that they suit a light and a dark page. Names and texts are escaped.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.report.fit_report import headline, level
from quenched.report.markup import MARKS, Level, Markup, after, escape
from quenched.results import describe, moved_by_draws, rows_of, rows_shown

if TYPE_CHECKING:
    from quenched.calibration import Calibration
    from quenched.diagnostics import Diagnosis
    from quenched.results import Fit, Fits

_COLOURS = {"good": "#009E73", "caution": "#E69F00", "bad": "#D55E00"}
_BLUE = "#0072B2"
_MOST = 12  # rows of a table
_WIDTH, _HEIGHT = 120, 16  # of a picture in a row


def fit_html(fit: "Fit") -> str:
    """A fit: verdict, parameters with their intervals, and the bound from round to round."""
    return _page(
        _verdict(level(fit), headline(fit), fit.verdict),
        _parameters(fit, fit.diagnosis),
        Markup(
            f"<details><summary>How it went</summary>{_facts(describe(fit, fit.diagnosis))}{_rounds(fit)}</details>"
        ),
    )


def diagnosis_html(diagnosis: "Diagnosis") -> str:
    """A diagnosis: verdict, parameters with the errors of means and sds, and the spread of the importance weights."""
    fit = diagnosis.fit
    levels: tuple[Level, ...] = ("bad", "caution", "good")
    weights = np.asarray(diagnosis.weights.weights)
    logs = np.log(np.maximum(weights * len(weights), 1e-6))
    return _page(
        _verdict(levels[diagnosis.answer.trust], diagnosis.answer.words, diagnosis.verdict),
        _parameters(fit, diagnosis),
        _facts(describe(fit, diagnosis)),
        _captioned(
            _histogram(logs),
            f"log importance weights from the posterior to the target, from {logs.min():.2g} to {logs.max():.2g}; all zero if "
            "they are the same",
        ),
    )


def fits_html(fits: "Fits") -> str:
    """Many fits: how many ended well, and those that did so least."""
    converged, suffice, failed = fits.converged, fits.draws_suffice, fits.failed
    n, good = len(fits), int((converged & suffice).sum())
    worst: Level = "bad" if failed.any() else "good" if good == n else "caution"
    counts = [(good, "good"), (n - good - int(failed.sum()), "caution"), (int(failed.sum()), "bad")]
    with np.errstate(invalid="ignore"):
        concern = np.where(failed, 2.0, np.where(converged, 0.0, 1.0)) + np.nan_to_num(np.abs(fits.gap)) * 1e-6
    order = np.argsort(-concern, kind="stable")[:_MOST]
    rows = [
        (int(i), fits.status[i], f"{fits.bound[i]:.3f}", f"{fits.gap[i]:z.3f}", int(fits.n_draws[i])) for i in order
    ]
    left_out = f"; {n - len(rows)} more are not shown" if n > len(rows) else ""
    return _page(
        _verdict(worst, f"{int(converged.sum())} of {n} fits converged", fits.verdict),
        _captioned(_shares(counts), "draws suffice, more draws or rounds needed, failed"),
        _table(("problem", "status", "bound", "gap", "draws"), rows),
        _small(f"The ones to look at first{left_out}."),
    )


def calibration_html(calibration: "Calibration") -> str:
    """A calibration: verdict, and for each number the distribution of its ranks less the uniform one, with its band."""
    findings = calibration.findings
    order = sorted(range(len(findings)), key=lambda place: -findings[place].departure)[:_MOST]
    rows = [
        (
            findings[i].name,
            findings[i].verdict,
            f"{findings[i].shift:.2f}",
            f"{findings[i].width:.2f}",
            _ranks(calibration, i),
        )
        for i in order
    ]
    left_out = f"; {len(findings) - len(rows)} more are not shown" if len(findings) > len(rows) else ""
    return _page(
        _verdict(
            "good" if calibration.calibrated else "bad",
            "Calibrated" if calibration.calibrated else "Not calibrated",
            calibration.verdict,
        ),
        _table(("parameter", "verdict", "shift", "width", "ranks less uniform"), rows),
        _small(f"Shift in posterior sds, width of the posterior over the right one{left_out}."),
    )


def _page(*parts: str) -> str:
    return f'<div style="max-width:60em;line-height:1.45">{"".join(parts)}</div>'


def _verdict(grade: Level, heading: str, text: str) -> Markup:
    colour = _COLOURS[grade]
    return Markup(
        f'<div role="note" style="border-left:4px solid {colour};background:{colour}22;padding:0.5em 0.9em;margin:0.3em 0">'
        f'<strong><span aria-hidden="true" style="color:{colour}">{MARKS[grade]}</span> {escape(heading)}</strong>'
        f"<div>{escape(after(heading, text))}</div></div>"
    )


def _parameters(fit: "Fit", diagnosis: "Diagnosis | None") -> Markup:
    everything = rows_of(fit, diagnosis)
    sizes = [int(np.prod(leaf.shape)) for leaf in fit.space.leaves]
    places, hidden = rows_shown(sizes, _MOST, moved_by_draws(everything))
    columns = [name for name in everything[0] if name != "name"]
    leaf_of = np.repeat(np.arange(len(sizes)), sizes)
    rows: list[Sequence[Any]] = []
    for place in places:
        if isinstance(place, str):
            rows.append((place, *[""] * (len(columns) + 1)))
            continue
        row = everything[place]
        numbers = [f"{row[name]:.2g}" if name.endswith("_error") else f"{row[name]:.4g}" for name in columns]
        same = [everything[i] for i in np.flatnonzero(leaf_of == leaf_of[place])]
        rows.append((row["name"], *numbers, _interval(row, same)))
    if hidden:
        rows.append((f"... {hidden} more parameters", *[""] * (len(columns) + 1)))
    heads = ["±" if name.endswith("_error") else name for name in columns]
    return _table(("parameter", *heads, "5 % to 95 %"), rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    cell = "padding:0.15em 0.7em;text-align:{}"
    head = "".join(
        f'<th style="{cell.format("left" if not i else "right")}">{escape(name)}</th>' for i, name in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{cell.format("left" if not i else "right")}">{escape(value)}</td>'
            for i, value in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return Markup(
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0.4em 0">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    return Markup(
        '<table style="margin:0.4em 0">'
        + "".join(
            f'<tr><th style="text-align:left;padding:0.1em 0.7em">{escape(name)}</th>'
            f'<td style="text-align:left;padding:0.1em 0.7em">{escape(value)}</td></tr>'
            for name, value in pairs
        )
        + "</table>"
    )


def _small(text: str) -> Markup:
    return Markup(f'<div style="opacity:0.7;font-size:0.85em">{escape(text)}</div>')


def _captioned(picture: Markup, caption: str) -> Markup:
    return Markup(f'<div style="margin:0.4em 0">{picture}{_small(caption)}</div>')


# Pictures: lines in the colour of the text, so that they show on any page.


def _svg(content: str, label: str, width: int = _WIDTH, height: int = _HEIGHT) -> Markup:
    return Markup(
        f'<svg role="img" aria-label="{escape(label)}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="vertical-align:middle;overflow:visible">{content}</svg>'
    )


def _interval(row: dict[str, Any], same: Sequence[dict[str, Any]]) -> Markup:
    """The interval and the median of a number, on an axis that all numbers of its array share."""
    low, high = min(other["5%"] for other in same), max(other["95%"] for other in same)
    if not np.isfinite(high - low) or not high > low:
        return Markup("")
    left, middle, right = (4 + (_WIDTH - 8) * (row[name] - low) / (high - low) for name in ("5%", "50%", "95%"))
    zero = 4 + (_WIDTH - 8) * (0.0 - low) / (high - low)
    axis = f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="1" y2="15" stroke="currentColor" stroke-opacity="0.3"/>'
    return _svg(
        (axis if low < 0.0 < high else "")
        + f'<line x1="{left:.1f}" x2="{right:.1f}" y1="8" y2="8" stroke="{_BLUE}" stroke-width="3" stroke-opacity="0.6"/>'
        + f'<circle cx="{middle:.1f}" cy="8" r="3.5" fill="{_BLUE}"/>',
        f"from {row['5%']:.3g} to {row['95%']:.3g}",
    )


def _rounds(fit: "Fit") -> Markup:
    """Bound and check bound from round to round."""
    bounds, checks = (np.asarray(getattr(fit.history, name), dtype=float) for name in ("bound", "check_bound"))
    both = np.concatenate([bounds, checks])
    both = both[np.isfinite(both)]
    if len(fit.history) < 2 or len(both) < 2 or not both.max() > both.min():
        return Markup("")
    width, height, low, high = 260, 70, both.min(), both.max()

    def path(values: np.ndarray, colour: str, dash: str) -> str:
        points = " ".join(
            f"{4 + (width - 8) * i / (len(values) - 1):.1f},{height - 4 - (height - 8) * (value - low) / (high - low):.1f}"
            for i, value in enumerate(values)
            if np.isfinite(value)
        )
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" {dash}/>'

    lines = path(bounds, _BLUE, "") + path(checks, _COLOURS["good"], 'stroke-dasharray="4 3"')
    return _captioned(
        _svg(lines, "bound and check bound by round", width, height),
        f"bound (line) and check bound (dashes) by round, from {low:.2f} to {high:.2f} nats",
    )


def _histogram(values: np.ndarray) -> Markup:
    counts, edges = np.histogram(values[np.isfinite(values)], bins=40)
    width, height = 260, 60
    bars = "".join(
        f'<rect x="{i * width / 40:.1f}" y="{height - height * count / max(counts.max(), 1):.1f}" width="{width / 40 - 0.5:.1f}" '
        f'height="{height * count / max(counts.max(), 1):.1f}" fill="{_BLUE}" fill-opacity="0.7"/>'
        for i, count in enumerate(counts)
    )
    return _svg(bars, f"histogram from {edges[0]:.2g} to {edges[-1]:.2g}", width, height)


def _shares(counts: Sequence[tuple[int, str]]) -> Markup:
    """One bar, cut in the proportion of counts."""
    total, at, parts = max(sum(count for count, _ in counts), 1), 0.0, ""
    for count, grade in counts:
        size = 260 * count / total
        parts += f'<rect x="{at:.1f}" y="2" width="{size:.1f}" height="12" fill="{_COLOURS[grade]}"/>'
        at += size
    return _svg(parts, ", ".join(str(count) for count, _ in counts), 260)


def _ranks(calibration: "Calibration", place: int) -> Markup:
    band, height = calibration.band, 30
    found = calibration.distribution(calibration.ranks[:, place]) - band.points
    low, high = band.low - band.points, band.high - band.points
    most = max(float(np.abs(values).max()) for values in (found, low, high)) or 1.0
    x = 2 + (_WIDTH - 4) * band.points
    y = lambda values: height / 2 - (height / 2 - 2) * values / most
    joined = lambda xs, ys: " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys, strict=True))
    area = joined(np.concatenate([x, x[::-1]]), np.concatenate([y(low), y(high)[::-1]]))
    colour = _BLUE if calibration.findings[place].verdict == "calibrated" else _COLOURS["bad"]
    return _svg(
        f'<polygon points="{area}" fill="currentColor" fill-opacity="0.15"/>'
        f'<polyline points="{joined(x, y(found))}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
        f"ranks of {calibration.findings[place].name}",
        height=height,
    )
