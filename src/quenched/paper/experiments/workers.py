"""Worker processes, each of which is given tasks that are alike: what one of them has compiled serves the next.

Workers are fresh processes (JAX does not survive a fork) with one thread each: the tasks are the parallelism. One that dies
takes only its own task with it, and is replaced.
"""

import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any, Protocol, TypeVar

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class Assignment(Protocol):
    """What is to be done, as far as workers need to know it."""

    @property
    def kin(self) -> Hashable: ...


W = TypeVar("W", bound=Assignment)


def in_parallel(
    work: Sequence[W], n_workers: int, submit: Callable[[ProcessPoolExecutor, W], Future]
) -> Iterator[tuple[W, Future]]:
    """Do all of it in parallel, the first in the list first where there is a choice; yields what is done, as it is done."""
    waiting, running = list(work), {}
    workers = [Worker() for _ in range(min(n_workers, len(waiting)))]

    def begin(worker: Worker) -> None:
        if waiting:
            taken = {kin for other in workers for kin in other.kin}
            chosen = worker.choose(waiting, taken)
            waiting.remove(chosen)
            with _uninterrupted():  # the first task of a worker starts it
                running[submit(worker.process, chosen)] = worker, chosen

    with _environment(_ONE_THREAD):
        try:
            for worker in workers:
                begin(worker)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, done = running.pop(future)
                    if isinstance(future.exception(), BrokenExecutor):
                        worker.replace()
                    begin(worker)
                    yield done, future
        finally:
            for worker in workers:
                worker.process.shutdown(wait=False, cancel_futures=True)


class Worker:
    """One process, and the kinds of work it has done."""

    def __init__(self):
        self.kin: set[Hashable] = set()
        self.process = _start()

    def choose(self, waiting: Sequence[W], taken: set[Hashable]) -> W:
        """Of its own kind, or else of a kind that nobody has begun, or else whatever is left."""
        own = next((work for work in waiting if work.kin in self.kin), None)
        fresh = next((work for work in waiting if work.kin not in taken), None)
        chosen = own or fresh or waiting[0]
        self.kin.add(chosen.kin)
        return chosen

    def replace(self) -> None:
        self.process.shutdown(wait=False)
        self.kin.clear()
        self.process = _start()


def _start() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Runs in a worker: it would wait for its next task for ever, though nobody is left to give one."""
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes that begin here do not hear Ctrl-C, which a terminal sends to all: it is for the one that started them."""
    if not hasattr(signal, "pthread_sigmask"):  # not on this system
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _environment:
    """Variables that are not set yet, for as long as it lasts."""

    def __init__(self, variables: dict[str, str]):
        self._added = {name: value for name, value in variables.items() if name not in os.environ}

    def __enter__(self) -> None:
        os.environ.update(self._added)

    def __exit__(self, *exception: Any) -> None:
        for name in self._added:
            os.environ.pop(name, None)
