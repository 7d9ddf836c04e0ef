"""Every command, and what becomes of what it raises."""

import argparse
import sys
from collections.abc import Sequence

from quenched.cli import datasets, fit, reproduce
from quenched.cli.leaving import INTERRUPTED, NOTHING_REACHED, say
from quenched.cli.misuse import Misuse

_COMMANDS = (fit, reproduce, datasets)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        options = _parser().parse_args(arguments)
        options.arguments = list(arguments)
        return options.run(options)
    except Misuse as error:
        say(f"quenched: {error}", complaint=True)
        return 2
    except KeyboardInterrupt:
        say(NOTHING_REACHED, complaint=True)
        return INTERRUPTED


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
