"""The official folder `CroppedYale`: one pgm file (192 × 168, P5) per image, in a folder per person.

Ambient images, and those that the database itself marks `.bad`, are left out. Images are reduced to 96 × 84, as in the
paper, by the mean of 2 × 2 pixels.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from quenched.datasets.verification import DatasetError

_NAME = re.compile(r"yaleB(\d\d)_P00A[+-]\d{3}E[+-]\d\d\.pgm")
_HEADER = re.compile(rb"P5(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s")


def read_cropped_yale(folder: Path, people: Sequence[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Images at half their size, and the number of the person on each, in the order of the file names.

    Parameters
    ----------
    folder
        `CroppedYale`, or a zip file of it.
    people
        Numbers of people; everybody by default.

    Raises
    ------
    DatasetError
        If there is no image, or one cannot be read.
    """
    images, numbers = [], []
    for name, content in _files(folder, people):
        images.append(halve(read_pgm(content, name)))
        numbers.append(_number(name))
    if not images:
        whom = "" if people is None else f" of people {list(people)}"
        raise DatasetError(f"{folder} has no image{whom} named like yaleB01/yaleB01_P00A+000E+00.pgm.")
    if len({image.shape for image in images}) > 1:
        raise DatasetError(f"{folder} has images of several sizes; the cropped ones all have 192 × 168 pixels.")
    return np.stack(images), np.array(numbers, dtype=np.int64)


def _files(folder: Path, people: Sequence[int] | None) -> Iterator[tuple[str, bytes]]:
    wanted = lambda name: _NAME.fullmatch(name) and (people is None or _number(name) in people)
    if folder.is_dir():
        for path in sorted(folder.rglob("*.pgm"), key=lambda path: path.name):
            if wanted(path.name):
                yield path.name, path.read_bytes()
    elif zipfile.is_zipfile(folder):
        with zipfile.ZipFile(folder) as archive:
            for entry in sorted(archive.namelist(), key=lambda entry: Path(entry).name):
                if wanted(Path(entry).name):
                    yield Path(entry).name, archive.read(entry)
    else:
        raise DatasetError(f"{folder} is neither a folder nor a zip file; give the official folder CroppedYale.")


def _number(name: str) -> int:
    return int(name[5:7])


def read_pgm(content: bytes, name: str) -> np.ndarray:
    """A binary grey image of eight bits.

    Raises
    ------
    DatasetError
        If it is something else, or cut short; `name` is what the message calls it.
    """
    header = _HEADER.match(content)
    if header is None:
        raise DatasetError(f"{name} is not a binary pgm file (P5).")
    width, height, largest = map(int, header.groups())
    pixels = content[header.end() :]
    if largest > 255 or len(pixels) < width * height:
        raise DatasetError(
            f"{name}: {width} × {height} pixels up to {largest} were announced, and {len(pixels)} bytes follow; one per "
            "pixel is needed."
        )
    return np.frombuffer(pixels, np.uint8, width * height).reshape(height, width)


def halve(image: np.ndarray) -> np.ndarray:
    """Means of 2 × 2 pixels, a half rounded up; an odd last row or column is left out."""
    height, width = image.shape[0] // 2, image.shape[1] // 2
    blocks = image[: 2 * height, : 2 * width].astype(np.uint16).reshape(height, 2, width, 2)
    return ((blocks.sum(axis=(1, 3)) + 2) // 4).astype(np.uint8)
