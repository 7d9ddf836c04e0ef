"""Compile what a fit asks for next while it searches for a start: most of the time of a small first fit is compilation."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from quenched.execute import folder_of_programs
from quenched.families import Member
from quenched.objective import Objective, RealLine
from quenched.precision import in_double
from quenched.targets import Hyper

_made: WeakKeyDictionary[RealLine, set] = WeakKeyDictionary()


def compiled_ahead(objective: Objective, posterior: Member, hyper: Hyper) -> Thread | None:
    """A thread that compiles the programs of an objective; None where they have been compiled before."""
    problem = objective.problem
    if objective.executor.traced is None or folder_of_programs() is not None:  # read from files, they take no time
        return None
    kind = (*compiled_for((posterior, problem.data)), objective.executor.chunk)
    work = {"objective": lambda: objective.compile(posterior, hyper)}
    return Ahead(problem.function, kind, work).threads.get("objective")


class Ahead:
    """Threads that compile something for a function, unless the same kind of it has been compiled before."""

    def __init__(self, function: RealLine, kind: tuple, work: Mapping[str, Callable[[], None]]):
        before = _made.setdefault(function, set())
        new, self.threads = kind not in before, {}
        before.add(kind)
        for name in work if new else ():
            self.threads[name] = Thread(target=_compile, args=(work[name], jax.config.jax_default_device))  # pyright: ignore
            self.threads[name].start()

    def wait(self, name: str) -> None:
        """Until a piece of work is done: or the same would be compiled once more."""
        if name in self.threads:
            self.threads.pop(name).join()


def compiled_for(tree: Any) -> tuple:
    """What a program is compiled for."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(np.shape(leaf) for leaf in leaves)


def _compile(work: Callable[[], None], device: Any) -> None:
    # Whoever needs the programs will meet what is raised, too.
    with suppress(Exception), in_double(), jax.default_device(device):
        work()
