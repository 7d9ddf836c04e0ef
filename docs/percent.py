"""Examples in percent format: cells that begin with `# %%` (code) or `# %% [markdown]` (text in comments)."""

import re
from typing import Literal, NamedTuple

_MARK = re.compile(r"^# %%(.*)$", re.MULTILINE)


class Cell(NamedTuple):
    """A piece of an example."""

    kind: Literal["code", "markdown"]
    source: str


def read_cells(text: str) -> list[Cell]:
    """The cells in order; what stands before the first mark is for machines, and left out."""
    marks = list(_MARK.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    cells = []
    for mark, end in zip(marks, ends, strict=True):
        body = text[mark.end() : end].strip("\n")
        if "[markdown]" in mark[1]:
            cells.append(Cell("markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE)))
        elif body.strip():
            cells.append(Cell("code", body))
    return cells


def needs(text: str) -> list[str]:
    """What the line `# needs: ...` before the first cell names: packages, and `data` for the folder `QUENCHED_DATA`."""
    head = text.split("# %%", 1)[0]
    found = re.search(r"^# needs: (.*)$", head, re.MULTILINE)
    return found[1].replace(",", " ").split() if found else []
