"""Rows that are in a file: mapped, and read a block at a time, so that they may be more than memory holds."""

import mmap
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

_AT_A_TIME = 2**26  # bytes that are looked at
Extremes = tuple[float, float]


def mapped(array: Any) -> np.memmap | None:
    """The file behind an array, if there is one."""
    while array is not None:
        if isinstance(array, np.memmap):
            return array
        array = getattr(array, "base", None)
    return None


def let_go(array: Any) -> None:
    """Give back the memory of what was read; the file still has it."""
    pages = getattr(mapped(array), "_mmap", None)
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def extremes(array: np.ndarray) -> Extremes:
    """The smallest and the largest number, NaN if there is one, without a copy of all of it."""
    if not array.size:
        return 0.0, 0.0
    if mapped(array) is None:
        return float(array.min()), float(array.max())
    step = max(1, _AT_A_TIME // max(array[:1].nbytes, 1))
    found = []
    for first in range(0, len(array), step):
        block = array[first : first + step]
        found.append((float(block.min()), float(block.max())))
        let_go(array)
    lows, highs = zip(*found, strict=True)
    return float(np.min(lows)), float(np.max(highs))


def spooled(blocks: Iterator[Any], name: str) -> np.ndarray:
    """Blocks of rows, written one after the other to a temporary file, and mapped.

    Raises
    ------
    ValueError
        When there are none, or they differ in anything but their number of rows.
    """
    kind: tuple[Any, ...] | None = None
    n = 0
    with tempfile.TemporaryFile() as file:
        for block in blocks:
            array = np.ascontiguousarray(block)
            own = (array.dtype, array.shape[1:])
            if array.ndim == 0 or own != (kind or own):
                raise ValueError(
                    f"{name}: the blocks of an iterator must be alike but for their number of rows; after {n} rows came "
                    f"one of shape {array.shape} and dtype {array.dtype}."
                )
            kind, n = own, n + len(array)
            array.tofile(file)
        if kind is None or not n:
            raise ValueError(f"{name}: the iterator has no rows.")
        file.flush()
        return np.memmap(file, dtype=kind[0], mode="r", shape=(n, *kind[1]))
