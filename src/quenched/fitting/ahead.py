"""Compile what a fit asks for next while it searches for a start: most of the time of a small first fit is compilation."""

from contextlib import suppress
from threading import Thread
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
    leaves, structure = jax.tree.flatten((posterior, problem.data))
    kind = (structure, tuple(np.shape(leaf) for leaf in leaves), objective.executor.chunk)
    before = _made.setdefault(problem.function, set())
    if kind in before:
        return None
    before.add(kind)
    thread = Thread(target=_compile, args=(objective, posterior, hyper))
    thread.start()
    return thread


def _compile(objective: Objective, posterior: Member, hyper: Hyper) -> None:
    with suppress(Exception), in_double():  # whoever needs the programs will meet it, too
        objective.compile(posterior, hyper)
