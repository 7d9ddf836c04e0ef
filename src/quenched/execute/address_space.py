"""A limit on address space (`ulimit -v`), under which linear algebra may wait for ever.

OpenBLAS, of which NumPy and SciPy bring one each, asks for a buffer of 32 MB until it gets it. Where space has run out it asks
for ever, inside an import or a solve, where Python hears nothing; and where a thread of its own cannot be started, it sends
the process a Ctrl-C. So under such a limit it takes what it needs before a fit begins, or the fit is refused.
"""

import sys
from pathlib import Path
from threading import Barrier, Thread

import numpy as np

from quenched.execute.memory import NOT_ENOUGH
from quenched.threads import cores

_LIBRARIES = 96 * 2**20  # that are mapped with `scipy.linalg`
_BUFFERS = 2 * 40 * 2**20  # of the two OpenBLAS, for each thread that may be inside one, and its stack
_ARENA = (
    64 * 2**20
)  # that glibc sets aside for each thread which asks for memory, if there is room: it takes that of a buffer
_SIDE = 256  # of matrices whose product goes through a buffer
_STATM = Path("/proc/self/statm")
_taken = False


def take_what_linear_algebra_needs() -> None:
    """Where address space is limited, once in a process.

    Raises
    ------
    MemoryError
        When there is too little left.
    """
    global _taken
    left = None if _taken else _space_left()
    if left is None:
        return
    threads = cores()
    needed = threads * (_BUFFERS + _ARENA) + (0 if "scipy.linalg" in sys.modules else _LIBRARIES)
    if left < needed:
        raise MemoryError(
            f"{NOT_ENOUGH}: the limit on address space (ulimit -v) leaves {max(0, left) // 2**20} MB, and linear algebra on "
            f"{threads} cores takes {needed // 2**20} MB before it begins. Raise the limit, or give Python fewer cores "
            "(taskset -c 0 python ...)."
        )
    _take(threads)
    _taken = True


def _space_left() -> int | None:
    """Bytes; None where nothing is limited."""
    try:
        import resource
    except ImportError:  # not on this system
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or not _STATM.exists():
        return None
    return limit - int(_STATM.read_text().split()[0]) * resource.getpagesize()


def _take(threads: int) -> None:
    """Have as many threads inside OpenBLAS at once as there may be; it keeps the buffers that they were given."""
    import scipy.linalg

    matrix, together = np.eye(_SIDE), Barrier(threads)

    def multiply() -> None:
        together.wait()
        np.dot(matrix, matrix)
        scipy.linalg.solve_triangular(matrix, matrix, lower=True)

    workers = [Thread(target=multiply) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
