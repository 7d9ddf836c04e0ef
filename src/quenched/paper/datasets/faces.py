"""Extended Yale Face Database B, cropped: 2,414 frontal images of 38 people under up to 64 lights (paper, Sec. 3.5).

The images may be used for research, with acknowledgement, and not be passed on: the library carries none. `faces` looks,
in this order, for the official folder `CroppedYale` of pgm files, for one file with all images at half that size
(`yaleb_96x84_uint8.npz`), both in `yaleb/` of the data folder or the cache, and else fetches a public file of the same
images at 32 × 32 pixels.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quenched.paper.datasets.files import DATA_VARIABLE, DatasetError, cache_folder, data_folder, fetch, verify
from quenched.paper.datasets.registry import RemoteFile

_NOT_A_PERSON = 14  # the official numbers leave it out
_HALF_SIZE = RemoteFile(
    path="yaleb/yaleb_96x84_uint8.npz",
    address="",  # made from the official folder, published nowhere
    sha256="29efeb023c1f0d121bb1ecef5407e14ce9596d25c2387bef25902ab548a68674",
    size=14921168,
)
# Ambient images have other names, and those that the database itself finds bad another suffix.
_NAME = re.compile(r"yaleB(\d\d)_P00A[+-]\d{3}E[+-]\d\d\.pgm")
_HEADER = re.compile(rb"P5(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s")


@dataclass(frozen=True, eq=False)
class Faces:
    """Images of people.

    Parameters
    ----------
    images
        Uint8 of shape (n, height, width), grey values from 0 to 255.
    people
        Int64 of shape (n,): the official number of the person, 1 to 39 without 14.
    origin
        Where they came from: `"CroppedYale"`, `"96 × 84"` or `"32 × 32"`.
    """

    images: np.ndarray
    people: np.ndarray
    origin: str


def faces(people: Sequence[int] | None = None) -> Faces:
    """Load the images, at 96 × 84 pixels where they can be had.

    Parameters
    ----------
    people
        Numbers of people; everybody by default. Fewer are read sooner.

    Raises
    ------
    DatasetError
        If a folder holds no such images, a file is damaged, or a download fails.
    """
    if (folder := _beside("yaleb/CroppedYale")) is not None:
        return read_cropped_yale(folder, people)
    loaded = _small() if (path := _beside(_HALF_SIZE.path)) is None else _half_size(path)
    if people is None:
        return loaded
    chosen = np.isin(loaded.people, list(people))
    if not chosen.any():
        raise DatasetError(
            f"people={list(people)}: the file has no image of them. Set {DATA_VARIABLE} to a folder that has, or choose others."
        )
    return Faces(loaded.images[chosen], loaded.people[chosen], loaded.origin)


def _beside(path: str) -> Path | None:
    """A file or folder that nobody publishes, where the user has put it."""
    folders = (folder / path for folder in (data_folder(), cache_folder()) if folder is not None)
    return next((found for found in folders if found.exists()), None)


def _half_size(path: Path) -> Faces:
    remedy = "Replace it, or put the official folder at yaleb/CroppedYale beside it."
    with np.load(verify(path, _HALF_SIZE, remedy), allow_pickle=False) as file:
        return Faces(file["images"], file["subject"].astype(np.int64), "96 × 84")


def _small() -> Faces:
    from scipy.io import loadmat

    file = loadmat(fetch("yaleb")[0])
    numbers = file["gnd"].reshape(-1).astype(np.int64)
    numbers = numbers + (numbers >= _NOT_A_PERSON)
    # MATLAB stores an image column by column.
    return Faces(file["fea"].reshape(-1, 32, 32).swapaxes(1, 2), numbers, "32 × 32")


def read_cropped_yale(folder: Path, people: Sequence[int] | None = None) -> Faces:
    """The official folder: one pgm file (192 × 168, P5) per image, in a folder per person, in the order of the names.

    Images are reduced to 96 × 84, as in the paper, by the mean of 2 × 2 pixels.
    """
    images, numbers = [], []
    for path in sorted(folder.rglob("*.pgm"), key=lambda path: path.name):
        name = _NAME.fullmatch(path.name)
        if name and (people is None or int(name[1]) in people):
            images.append(halve(read_pgm(path.read_bytes(), path.name)))
            numbers.append(int(name[1]))
    if not images:
        whom = "" if people is None else f" of people {list(people)}"
        raise DatasetError(f"{folder} has no image{whom} named like yaleB01/yaleB01_P00A+000E+00.pgm.")
    if len({image.shape for image in images}) > 1:
        raise DatasetError(f"{folder} has images of several sizes; the cropped ones all have 192 × 168 pixels.")
    return Faces(np.stack(images), np.array(numbers, dtype=np.int64), "CroppedYale")


def read_pgm(content: bytes, name: str) -> np.ndarray:
    """A binary grey image of eight bits; if it is something else, or cut short, a `DatasetError` that calls it `name`."""
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
