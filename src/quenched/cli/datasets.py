"""`quenched datasets list` and `quenched datasets fetch NAME`."""

import argparse
from typing import Any

from quenched.cli.leaving import begun, say
from quenched.cli.misuse import Misuse

_WIDE = 110  # characters: below, descriptions would be cut to nothing


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("datasets", help="list and fetch the datasets of the paper's experiments")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what there is, and what is on this machine")
    listing.set_defaults(run=show)
    fetching = actions.add_parser("fetch", help="download one, or all, and check every file")
    fetching.add_argument("name", metavar="NAME", help="of a dataset, or `all`")
    fetching.set_defaults(run=fetch)


def show(options: argparse.Namespace) -> int:
    """Print the catalogue."""
    from rich.console import Console
    from rich.table import Table

    from quenched.paper.datasets import DatasetError, find, names, where

    try:
        places = {find(name): where(find(name)) for name in names()}
    except DatasetError as error:
        raise Misuse(str(error)) from error
    console = Console()
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("name", no_wrap=True)
    for heading in ("rows", "features", "classes", "size"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("where", no_wrap=True)
    wide = console.width >= _WIDE
    if wide:
        shown.add_column("what", no_wrap=True, overflow="ellipsis")
    for dataset, place in places.items():
        counts = (dataset.rows, dataset.features, dataset.classes)
        cells = [dataset.name, *("" if count is None else str(count) for count in counts), _size(dataset.size), place]
        shown.add_row(*cells, *([dataset.description] if wide else []))
    console.print(shown)
    return 0


def _size(count: int) -> str:
    amount, units = float(count), ["bytes", "kB", "MB", "GB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.3g} {units[0]}"


def fetch(options: argparse.Namespace) -> int:
    """Bring the files of a dataset to this machine and say where they are."""
    from quenched.paper import datasets

    begun()
    for name in datasets.names() if options.name == "all" else (options.name,):
        try:
            paths = datasets.fetch(name)
        except (ValueError, datasets.DatasetError, ImportError) as error:
            raise Misuse(str(error)) from error
        folders = sorted({str(path.parent) for path in paths})
        files = "1 file" if len(paths) == 1 else f"{len(paths)} files"
        say(f"{name}: {files} in {', '.join(folders)}")
    return 0
