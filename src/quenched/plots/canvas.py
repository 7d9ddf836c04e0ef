"""One style for every figure, without touching matplotlib's settings or the user's back end.

Figures are made from `matplotlib.figure.Figure` directly: they belong to no window and no global state. The colours are
those of Okabe and Ito, told apart with every kind of colour vision; lines differ in dash as well.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from quenched.files import read_path_to_write, write_whole
from quenched.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, GREEN, ORANGE = "#0072B2", "#009E73", "#D55E00"
INK, GREY, HAIRLINE = "#222222", "#666666", "#d0d0d0"
SMALL = 8.5  # points
PLAIN: Any = {"parse_math": False}  # for names: `$x^$` is one, and no formula


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, whose parts arrange themselves.

    Raises
    ------
    ImportError
        Without matplotlib; the message names the extra.

    Examples
    --------
    >>> from quenched.plots import new_figure
    >>> left, right = new_figure(9.0, 4.0).subplots(1, 2)
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "quenched[plots]".') from error
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def read_figure_path(path: Any) -> Path | None:
    """Where to write a figure, if anywhere: looked at before it is drawn. The ending says the format.

    Raises
    ------
    ValueError
        For endings that are no format, and where no file can be made.
    """
    if path is None:
        return None
    new_figure(1.0, 1.0)  # says what to install
    from matplotlib.backend_bases import FigureCanvasBase

    path = read_path_to_write("path", path)
    kind = path.suffix.lstrip(".").lower() or "png"
    if kind not in FigureCanvasBase.get_supported_filetypes():
        raise ValueError(f"path={shown(str(path))}: no figure is written as {kind!r}; end it in .png, .svg or .pdf.")
    return path if path.suffix else path.with_name(f"{path.name}.png")


def write_figure(figure: "Figure", path: Path | None, dpi: int) -> None:
    """Write a figure to a path that was read, whole or not at all."""
    if path is not None:
        kind = path.suffix.lstrip(".").lower()
        write_whole(path, lambda file: figure.savefig(file, format=kind, dpi=dpi))


def read_axes(axes: Any, width: float, height: float) -> "Axes":
    """Where to draw: axes that were given, or those of a new figure.

    Raises
    ------
    ValueError
        For what nothing can be drawn on.
    """
    if axes is None:
        return new_figure(width, height).subplots()
    if not hasattr(axes, "fill_between"):
        raise ValueError(f"axes={shown(axes)}: give axes of matplotlib, or None for a figure of their own.")
    return axes


def short(name: str, most: int) -> str:
    """A long name without its middle, so that it does not run into its neighbour; what tells it apart is often at its end."""
    return name if len(name) <= most else f"{name[: most - 9]}…{name[-8:]}"


def dress(axes: "Axes", *, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Two spines, small grey ticks, a title at the left.

    Examples
    --------
    >>> from quenched.plots import dress, new_figure
    >>> axes = new_figure(4.0, 3.0).subplots()
    >>> dress(axes, title="Losses", xlabel="round")
    >>> axes.get_title(loc="left")
    'Losses'
    """
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(HAIRLINE)
    axes.tick_params(colors=GREY, labelsize=SMALL, length=3)
    axes.set_title(title, loc="left", fontsize=SMALL + 1.5, color=INK, **PLAIN)
    axes.set_xlabel(xlabel, fontsize=SMALL, color=GREY, **PLAIN)
    axes.set_ylabel(ylabel, fontsize=SMALL, color=GREY, **PLAIN)


def plain_numbers(axis: Any) -> None:
    """Tick labels as numbers, never as an offset to be added in the head."""
    from matplotlib.ticker import ScalarFormatter

    formatter = ScalarFormatter(useOffset=False)
    formatter.set_powerlimits((-4, 6))
    axis.set_major_formatter(formatter)
