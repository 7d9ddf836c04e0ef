"""The parts of a page. Every function takes plain values, escapes them, and returns `Markup`."""

import base64
import html
import io
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

Level = Literal["good", "caution", "bad"]
_STILL = 200  # rows that are there without the script; all are there with it
_SEARCHED = 12  # rows from which on a table can be searched
_TALL = 40  # rows beyond which a table scrolls by itself
MARKS = {"good": "✓", "caution": "!", "bad": "✕"}


class Markup(str):
    """Text that is HTML already and needs no escape."""


def escape(value: Any) -> Markup:
    """A value as text; floats with four significant digits, None as a dash."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup("–")
    if isinstance(value, (float, np.floating)):
        return Markup(f"{value:.4g}")
    return Markup(html.escape(str(value)))


def part(value: Any) -> Markup:
    """A part of a section: markup as it is, anything else as a paragraph."""
    return value if isinstance(value, Markup) else Markup(f"<p>{escape(value)}</p>")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> Markup:
    """A table that sorts by a click on a heading; columns that hold only numbers are aligned to the right.

    A long one has a field to search in, and shows some hundred rows at a time.

    Parameters
    ----------
    columns
        Headings.
    rows
        One sequence of cells per row, as long as `columns`. A number that must show more than four digits is given
        as text.
    caption
        Above the table.

    Raises
    ------
    ValueError
        For a row of another length.
    """
    cells = [list(row) for row in rows]
    for row in cells:
        if len(row) != len(columns):
            raise ValueError(f"rows: {row!r} has {len(row)} cells, but there are {len(columns)} columns.")
    kinds = ["number" if _is_numeric(row[i] for row in cells) else "text" for i in range(len(columns))]
    head = "".join(
        f'<th scope="col" class="{kind}"><button type="button">{escape(name)}</button></th>'
        for kind, name in zip(kinds, columns, strict=True)
    )
    texts = [[escape(cell) for cell in row] for row in cells]
    body = "".join(
        "<tr>" + "".join(f'<td class="{k}">{cell}</td>' for k, cell in zip(kinds, row, strict=True)) + "</tr>\n"
        for row in texts[:_STILL]
    )
    title = f"<caption><span>{escape(caption)}</span></caption>" if caption else ""
    return Markup(
        f'<div class="table">{_tools(len(cells))}<div class="{"scroll tall" if len(cells) > _TALL else "scroll"}"><table>{title}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>{_rest(texts)}</div>"
    )


def _tools(n: int) -> str:
    if n < _SEARCHED:
        return ""
    return (
        '<div class="tools" hidden><input class="search" type="search" placeholder="Search" aria-label="Search this table">'
        '<span class="count" role="status"></span></div>'
    )


def _rest(texts: Sequence[Sequence[str]]) -> str:
    """All rows of a long table as data for the script, which a browser does not run."""
    if len(texts) <= _STILL:
        return ""
    plain = json.dumps(
        [[html.unescape(cell) for cell in row] for row in texts], ensure_ascii=False, separators=(",", ":")
    )
    held = plain.replace("<", "\\u003c")
    return (
        f'<p class="tools"><noscript>The first {_STILL} of {len(texts)} rows.</noscript>'
        f'<button class="more" type="button" hidden>Show more</button></p><script type="application/json" class="rows">{held}</script>'
    )


def _is_numeric(cells: Iterable[Any]) -> bool:
    """Whether a column holds numbers, also written out as text (`-32.12`, `3 ± 0.1`); a dash is a number that is missing."""
    given = [cell for cell in cells if cell not in (None, "–")]
    return bool(given) and all(_number(cell) for cell in given)


def _number(cell: Any) -> bool:
    if isinstance(cell, str):
        return all(_reads_as_float(piece) for piece in cell.split("±"))
    return isinstance(cell, (int, float, np.number)) and not isinstance(cell, bool)


def _reads_as_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Names and values, one pair per line."""
    lines = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>\n" for name, value in pairs)
    return Markup(f"<dl>\n{lines}</dl>")


def verdict_box(level: Level, heading: str, text: str) -> Markup:
    """A box that says in words, in a sign and in a colour how far to trust what follows; the heading is not said twice."""
    text = after(heading, text)
    return Markup(
        f'<div class="verdict {level}" role="note"><span class="mark" aria-hidden="true">{MARKS[level]}</span>'
        f"<div><strong>{escape(heading)}</strong><p>{escape(text)}</p></div></div>"
    )


def after(heading: str, text: str) -> str:
    """What a text says after its heading, if it begins with that."""
    rest = text.removeprefix(heading).lstrip(":. ")
    return rest[:1].upper() + rest[1:]


def figure(drawn: "Figure | SubFigure", caption: str = "") -> Markup:
    """A matplotlib figure as vector graphics inside the page."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "quenched"}):  # the same figure gives the same bytes
        drawn.get_figure(root=True).savefig(file, format="svg", metadata={"Date": None}, transparent=True)  # pyright: ignore
    return picture(file.getvalue(), "image/svg+xml", caption, chart=True)


def picture(content: bytes, kind: str, caption: str = "", *, chart: bool = False) -> Markup:
    """An image inside the page; a chart is inverted on a dark screen, a photograph never."""
    encoded = base64.b64encode(content).decode("ascii")
    shown = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    name = ' class="chart"' if chart else ""
    return Markup(
        f'<figure{name}><button class="enlarge" type="button" aria-label="Enlarge"><img alt="{escape(caption)}" '
        f'src="data:{escape(kind)};base64,{encoded}"></button>{shown}</figure>'
    )
