"""Extended Yale Face Database B, cropped: 2,414 frontal images of 38 people under up to 64 lights (paper, Sec. 3.5).

The images may be used for research, with acknowledgement, and not be passed on: the library carries none. `faces` looks,
in this order, for the official folder `CroppedYale` of pgm files, for one file with all images at half that size
(`yaleb_96x84_uint8.npz`), both in `yaleb/` of the data folder or the cache, and else fetches a public file of the same
images at 32 × 32 pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quenched.datasets.cropped_yale import read_cropped_yale
from quenched.datasets.fetching import fetch
from quenched.datasets.locations import DATA_VARIABLE, cache_folder, data_folder, locate
from quenched.datasets.registry import RemoteFile
from quenched.datasets.verification import DatasetError, verify

_NOT_A_PERSON = 14  # the official numbers leave it out
_HALF_SIZE = RemoteFile(
    path="yaleb/yaleb_96x84_uint8.npz",
    address="",  # made from the official folder, published nowhere
    sha256="29efeb023c1f0d121bb1ecef5407e14ce9596d25c2387bef25902ab548a68674",
    size=14921168,
)


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

    def of(self, person: int) -> np.ndarray:
        """All images of one person.

        Raises
        ------
        ValueError
            If there are none.
        """
        chosen = self.images[self.people == person]
        if not len(chosen):
            known = ", ".join(map(str, np.unique(self.people)))
            raise ValueError(f"person={person}: there is no image of this person; there are {known}.")
        return chosen


def faces(
    folder: str | Path | None = None, *, people: Sequence[int] | None = None, progress: bool | None = None
) -> Faces:
    """Load the images, at 96 × 84 pixels where they can be had.

    Parameters
    ----------
    folder
        The official `CroppedYale` folder, or a zip file of it; by default what the data folder or the cache has, else
        a download at 32 × 32 pixels.
    people
        Numbers of people; everybody by default. Fewer are read sooner.
    progress
        As for `fetch`.

    Raises
    ------
    DatasetError
        If a folder holds no images, a file is damaged, or a download fails.
    """
    if folder is None:
        folder = _official_folder()
    if folder is not None:
        images, numbers = read_cropped_yale(Path(folder), people)
        return Faces(images, numbers, "CroppedYale")
    if (found := locate(_HALF_SIZE)) is not None:
        remedy = "Replace it, or put the official folder at yaleb/CroppedYale beside it."
        with np.load(verify(found.path, _HALF_SIZE, remedy=remedy), allow_pickle=False) as file:
            return _choose(Faces(file["images"], file["subject"].astype(np.int64), "96 × 84"), people)
    return _choose(_small(progress), people)


def _official_folder() -> Path | None:
    for root in (data_folder(), cache_folder()):
        if root is not None and (root / "yaleb" / "CroppedYale").is_dir():
            return root / "yaleb" / "CroppedYale"
    return None


def _small(progress: bool | None) -> Faces:
    from scipy.io import loadmat

    (path,) = fetch("yaleb", progress=progress)
    file = loadmat(path)
    numbers = file["gnd"].reshape(-1).astype(np.int64)
    numbers = numbers + (numbers >= _NOT_A_PERSON)
    # MATLAB stores an image column by column.
    return Faces(file["fea"].reshape(-1, 32, 32).swapaxes(1, 2), numbers, "32 × 32")


def _choose(loaded: Faces, people: Sequence[int] | None) -> Faces:
    if people is None:
        return loaded
    chosen = np.isin(loaded.people, list(people))
    if not chosen.any():
        raise DatasetError(
            f"people={list(people)}: the file has no image of them. Set {DATA_VARIABLE} to a folder that has, or choose others."
        )
    return Faces(loaded.images[chosen], loaded.people[chosen], loaded.origin)
