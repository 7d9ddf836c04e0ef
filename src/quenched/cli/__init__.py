"""The command line: `quenched fit`, `quenched reproduce`, `quenched datasets`.

A command is a module with `add_parser(commands)`, which names the function that runs it. That function returns the exit
code: 0 done, 1 a fit that did not converge (what it reached is saved), 2 misuse, 130 interrupted. Whatever is slow to
import is imported when a command runs, not before; and nothing at all before Ctrl-C is seen to.
"""

import sys
from collections.abc import Sequence

from quenched.cli.leaving import as_process


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without arguments as the process that was started with them."""
    if arguments is not None:
        return _run(arguments)
    return as_process(lambda: _run(sys.argv[1:]))


def _run(arguments: Sequence[str]) -> int:
    from quenched.cli.commands import run

    return run(arguments)
