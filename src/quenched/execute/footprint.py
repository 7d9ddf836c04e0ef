"""What compiled programs take, as far as it can be told: XLA knows no size of its programs for processors.

So they are counted, with the pieces of address space that they lie in; what a function holds is added up, since programs hold it
too; and for all that is not seen by this there is what the whole process holds.
"""

import os
from functools import partial
from pathlib import Path
from types import CellType
from typing import Any

import jax

_MAPS = Path("/proc/self/maps")
_STATM = Path("/proc/self/statm")


def count_programs() -> int:
    """Compiled ones, of anybody."""
    return len(jax.devices()[0].client.live_executables())


def count_maps() -> int:
    """Pieces of address space; 0 where it cannot be told."""
    try:
        return _MAPS.read_bytes().count(b"\n")
    except OSError:  # not on Linux
        return 0


def resident() -> int:
    """Bytes of memory that this process holds; 0 where it cannot be told."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not on Linux
        return 0


def bytes_held(function: Any, depth: int = 3) -> int:
    """Of the arrays that a function closes over, as far as can be seen."""
    if depth == 0 or function is None:
        return 0
    if isinstance(function, partial):
        return sum(bytes_held(one, depth - 1) for one in (function.func, *function.args, *function.keywords.values()))
    size = getattr(function, "nbytes", None)
    if isinstance(size, int):
        return size
    cells = [_content(cell) for cell in getattr(function, "__closure__", None) or ()]
    inside = [*cells, *(getattr(function, "__defaults__", None) or ()), getattr(function, "__self__", None)]
    held = getattr(function, "__dict__", {}) if not isinstance(function, type) else {}
    return sum(bytes_held(one, depth - 1) for one in (*inside, *(held.values() if isinstance(held, dict) else ())))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
