"""The picture grid of the paper's figure, for the report that is written on this machine and nowhere else."""

import base64
import io
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from quenched.plots import new_figure
from quenched.report import Markup, picture


def pack(row: np.ndarray) -> str:
    """An image as text for a result in JSON."""
    return base64.b64encode(zlib.compress(np.clip(np.round(row), 0, 255).astype(np.uint8).tobytes())).decode("ascii")


def unpack(text: str, size: tuple[int, int]) -> np.ndarray:
    """An image from its text."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(size)


def picture_grid(found: Mapping[int, dict[str, Any]], methods: tuple[str, str]) -> Markup:
    """A row per person: original, corrupted, and two reconstructions, each with its distance from the original.

    Parameters
    ----------
    found
        Results of the experiment by person.
    methods
        The two reconstructions, as the errors of a result call them.
    """
    figure = new_figure(6.4, 1.9 * len(found))
    titles = ("original", "corrupted", *methods)
    for line, result in enumerate(found.values()):
        index, panels = result["picture"]["index"], result["picture"]["panels"]
        errors = [0.0, *(result["errors"][name][index] for name in ("corrupted", *methods))]
        for place, (panel, error, title) in enumerate(zip(panels, errors, titles, strict=True)):
            axes = figure.add_subplot(len(found), 4, 4 * line + place + 1)
            axes.imshow(unpack(panel, tuple(result["size"])), cmap="gray", vmin=0, vmax=255)
            axes.set(xticks=[], yticks=[], xlabel=f"{error:.4f}")
            if line == 0:
                axes.set_title(title, fontsize="small")
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    names = ", ".join(f"{person:02d}" for person in found)
    return picture(
        file.getvalue(),
        "image/png",
        f"The test image of middling brightness of people {names}: original, corrupted, PPCA, Cauchy PPCA, with the "
        "distance from the original below. These images must not be published.",
    )
