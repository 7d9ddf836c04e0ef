"""What can be fetched: every dataset, its files, their addresses and their sha256.

The facts are in two data files of the package: `datasets.toml` (a table per dataset) and `files.txt` (a line
per file). An address names a commit, so what lies behind it cannot change; the sha256 proves that it did not.
"""

import difflib
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Literal

Kind = Literal["classification", "partitions", "archive", "faces", "tables"]


@dataclass(frozen=True)
class RemoteFile:
    """One file: its path below a data folder, where it comes from, what proves that it is the right one, and its bytes."""

    path: str
    address: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Dataset:
    """One dataset of the registry. The counts are `None` for an archive of several sets."""

    name: str
    kind: Kind
    files: tuple[RemoteFile, ...]
    licence: str
    citation: str
    description: str
    rows: int | None = None
    features: int | None = None
    classes: int | None = None

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@functools.cache
def registry() -> Mapping[str, Dataset]:
    """Every dataset by name, in the order of `datasets.toml`."""
    folder = resources.files("quenched.paper.datasets")
    tables = tomllib.loads(folder.joinpath("datasets.toml").read_text(encoding="utf-8"))
    files = _read_files(folder.joinpath("files.txt").read_text(encoding="utf-8"))
    of = lambda name: tuple(file for file in files if file.path.startswith(f"{name}/"))
    return MappingProxyType({name: Dataset(name=name, files=of(name), **table) for name, table in tables.items()})


def names() -> tuple[str, ...]:
    """The names of all datasets."""
    return tuple(registry())


def find(name: str, kind: Kind | None = None) -> Dataset:
    """The dataset of this name.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one and the list of all; or for one that is not of this kind, with
        those that are.
    """
    known = registry()
    if name not in known:
        near = difflib.get_close_matches(str(name).lower(), list(known), n=1)
        suggestion = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown dataset {name!r}.{suggestion} Known: {', '.join(known)}.")
    if kind is not None and known[name].kind != kind:
        alike = ", ".join(other for other, dataset in known.items() if dataset.kind == kind)
        raise ValueError(f"{name} is not read here: it is of the kind {known[name].kind!r}. Choose one of {alike}.")
    return known[name]


def _read_files(text: str) -> tuple[RemoteFile, ...]:
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(
        RemoteFile(path=path, address=address, sha256=sha256, size=int(size)) for sha256, size, path, address in lines
    )
