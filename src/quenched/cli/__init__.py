"""The command line: `quenched fit`, `quenched reproduce`, `quenched datasets`.

A command is a module with `add_parser(commands)`, which names the function that runs it. That function returns the exit
code: 0 done, 1 a fit that did not converge (what it reached is saved), 2 misuse, 130 interrupted. Whatever is slow to
import is imported when a command runs, not before.
"""

import argparse
import sys
from collections.abc import Sequence

from quenched.cli import datasets, fit, reproduce
from quenched.cli.misuse import Misuse

_COMMANDS = (fit, reproduce, datasets)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:  # from the first line on: someone may have changed their mind while Python was still importing
        options = _parser().parse_args(arguments)
        options.arguments = sys.argv[1:] if arguments is None else list(arguments)
        return options.run(options)
    except Misuse as error:
        print(f"quenched: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nquenched: interrupted before anything was reached", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quenched",
        description="Bayesian inference with frozen draws: the best Gaussian posterior, a bound on the log evidence, "
        "and how far to trust them.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, *_):
        from importlib.metadata import version

        print(f"quenched {version('quenched')}")
        sys.exit(0)
