"""What there is, and what is here: the rows of `quenched datasets list`."""

from collections import Counter
from dataclasses import dataclass

from quenched.datasets.locations import locate
from quenched.datasets.registry import Dataset, find, registry


@dataclass(frozen=True)
class Row:
    """A dataset as a catalogue shows it.

    Parameters
    ----------
    name, description, licence, citation
        As in the registry.
    rows, features, classes
        Counts, or `None` for an archive of several sets.
    files, size
        How many files, and their bytes in all.
    where
        `"local folder"`, `"cache"`, `"not fetched"`, or how many files are there. Only their presence is
        looked up; whether they are undamaged is found out by `fetch`.
    """

    name: str
    rows: int | None
    features: int | None
    classes: int | None
    files: int
    size: int
    where: str
    licence: str
    citation: str
    description: str


def names() -> tuple[str, ...]:
    """The names of all datasets."""
    return tuple(registry())


def describe(name: str) -> Row:
    """One dataset: its size, licence, citation, and where it is now.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    dataset = find(name)
    return Row(
        name=dataset.name,
        rows=dataset.rows,
        features=dataset.features,
        classes=dataset.classes,
        files=len(dataset.files),
        size=sum(file.size or 0 for file in dataset.files),
        where=_where(dataset),
        licence=dataset.licence,
        citation=dataset.citation,
        description=dataset.description,
    )


def table() -> list[Row]:
    """`describe` for every dataset."""
    return [describe(name) for name in names()]


def _where(dataset: Dataset) -> str:
    found = Counter(location.origin for file in dataset.files if (location := locate(file)) is not None)
    total = len(dataset.files)
    if not found:
        return "not fetched"
    if found.total() < total:
        return f"{found.total()} of {total} files"
    return next(iter(found)) if len(found) == 1 else "local folder and cache"
