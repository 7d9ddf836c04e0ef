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


@dataclass(frozen=True)
class RemoteFile:
    """One file: its path below a data folder, where it comes from, and what proves that it is the right one.

    The size is in bytes; it only makes errors and progress bars more telling.
    """

    path: str
    address: str
    sha256: str
    size: int | None = None


@dataclass(frozen=True)
class Dataset:
    """One dataset of the registry. The counts are `None` for an archive of several sets."""

    name: str
    kind: Literal["classification", "partitions", "archive", "faces"]
    files: tuple[RemoteFile, ...]
    licence: str
    citation: str
    description: str
    rows: int | None = None
    features: int | None = None
    classes: int | None = None
    feature_names: tuple[str, ...] = ()


@functools.cache
def registry() -> Mapping[str, Dataset]:
    """Every dataset by name, in the order of `datasets.toml`."""
    folder = resources.files("quenched.datasets")
    tables = tomllib.loads(folder.joinpath("datasets.toml").read_text(encoding="utf-8"))
    files = _read_files(folder.joinpath("files.txt").read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            name: Dataset(
                name=name,
                files=tuple(file for file in files if file.path.startswith(f"{name}/")),
                feature_names=tuple(table.pop("feature_names", ())),
                **table,
            )
            for name, table in tables.items()
        }
    )


def find(name: str) -> Dataset:
    """The dataset of this name.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one and the list of all.
    """
    known = registry()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(str(name).lower(), list(known), n=1)
    suggestion = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"Unknown dataset {name!r}.{suggestion} Known: {', '.join(known)}.")


def of_kind(kind: str) -> tuple[str, ...]:
    """The names of the datasets of one kind."""
    return tuple(name for name, dataset in registry().items() if dataset.kind == kind)


def _read_files(text: str) -> tuple[RemoteFile, ...]:
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(
        RemoteFile(path=path, address=address, sha256=sha256, size=int(size)) for sha256, size, path, address in lines
    )
