"""`quenched reproduce`: rerun the paper's experiments and write the report."""

import argparse
from pathlib import Path
from typing import Any

from quenched.cli.leaving import INTERRUPTED, begun, say
from quenched.cli.misuse import Misuse
from quenched.files import read_folder_to_write

_NAMES = ("bivariate", "linear", "logistic", "multiclass", "faces", "groundmotion", "improved", "all")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("reproduce", help="rerun the paper's experiments, our numbers beside the paper's")
    parser.add_argument(
        "experiments", nargs="*", choices=_NAMES, default="all", metavar="EXPERIMENT", help=", ".join(_NAMES)
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a selection that takes a few minutes (the default)")
    size.add_argument("--full", action="store_true", help="every partition and fold")
    parser.add_argument("--out", type=Path, default=Path("out/reproduce"), metavar="DIR", help="folder (%(default)s)")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes; one per core by default")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run, and say where the report is."""
    if options.jobs is not None and options.jobs < 1:
        raise Misuse(f"--jobs {options.jobs}: at least one process is needed")
    try:
        from quenched.paper.experiments import reproduce

        out = read_folder_to_write("--out", options.out)
        begun()
        names = [options.experiments] if isinstance(options.experiments, str) else options.experiments
        written = reproduce(names, full=options.full, out=out, jobs=options.jobs)
    except ImportError as error:
        raise Misuse(f'{error} (pip install "quenched[reproduce]" installs all that reproduce needs)') from error
    except (OSError, ValueError) as error:  # a disk that is full by now, or a folder from the start
        raise Misuse(f"{error}" if isinstance(error, ValueError) else f"--out {options.out}: {error}") from error
    except KeyboardInterrupt:
        say("\nquenched: interrupted; finished tasks are kept, and the same command goes on", complaint=True)
        return INTERRUPTED
    say(f"report   {written.report}\nnumbers  {written.table}")
    if written.failed:
        say(f"failed   {len(written.failed)} tasks; the report lists them, and the next run tries them again")
    return 1 if written.failed else 0
