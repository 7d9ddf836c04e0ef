"""Calls on any `concurrent.futures.Executor`: process pools, Dask (`client.get_executor()`), mpi4py, submitit.

What a call raises comes back as data, so that whatever the executor itself raises is about the executor: a worker was
killed, a machine has gone. What was lost is then computed again, in smaller batches, and on a new pool where the old one is
broken. Function and data travel once to each worker, which keeps them under a key; one that does not know the key asks.
"""

import hashlib
import os
import pickle
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from quenched.execute.host import Calls, InTurn, where
from quenched.interrupts import interrupts_at_once

_SECONDS_OF_A_BATCH = 0.1  # at the least, where there are as many calls: a scheduler takes some milliseconds
_BATCHES_OF_A_WORKER = 4  # while nobody knows how long a call takes, and at the least: some workers are slower
_MOST_LOSSES = 3  # in a row without one more answer
_SMALL = 1 << 15  # bytes that may travel with every batch
_KEPT = 4  # functions with their data, in a worker


class CallFailed(RuntimeError):
    """A call of a user's function raised in another process, or killed it.

    Attributes
    ----------
    draw
        Its place among the points that were asked for together.
    parameters
        What it was called with.
    """

    def __init__(self, message: str, draw: int, parameters: Any):
        super().__init__(message)
        self.draw, self.parameters = draw, parameters


class Raised(NamedTuple):
    """What a call raised, as text: an exception itself may not survive the journey."""

    what: str
    trace: str


class Answered(NamedTuple):
    """What a worker answers: as many answers as it came to, and how long they took. None if it does not know the work."""

    answers: list[Any] | None
    seconds: float


_known: OrderedDict[str, tuple[Callable[[Any, Any], Any], Any]] = OrderedDict()  # of this worker


def work(key: str, sent: Any, many: Sequence[Any]) -> Answered:
    """Runs in a worker: the answers up to the first call that raises."""
    if sent is not None and key not in _known:
        _known[key] = pickle.loads(sent) if isinstance(sent, bytes) else sent
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    known = _known.get(key)
    if known is None:
        return Answered(None, 0.0)
    return _answers(*known, many)


def _answers(call: Callable[[Any, Any], Any], data: Any, many: Sequence[Any]) -> Answered:
    answers, began = [], time.perf_counter()
    for parameters in many:
        try:
            answers.append(call(parameters, data))
        except Exception as error:
            answers.append(Raised(f"{type(error).__name__}: {error}", traceback.format_exc()))
            break
    return Answered(answers, time.perf_counter() - began)


class Pool(Calls):
    """Calls in batches on an executor, each as long as it takes to be worth sending.

    Parameters
    ----------
    executor
        Where.
    together
        Calls in a batch, if that is known.
    arrived
        Told the place and the answer of each call, as they come.
    """

    def __init__(
        self, executor: Executor, together: int | None = None, arrived: Callable[[int, Any], None] | None = None
    ):
        self.executor, self.together, self.arrived = executor, together, arrived
        self.seconds: float | None = None  # of one call
        self.lost = 0  # batches that had to be computed again
        self._parcel: tuple[Any, Any, str, Any] | None = None
        self._delivered = False

    def __call__(self, call, many, data):
        answers: dict[int, Any] = {}
        self.where = getattr(call, "where", where)
        losses, parcel = 0, self._parcelled(call, data)
        while left := [place for place in range(len(many)) if place not in answers]:
            before = len(answers)
            # After a second loss one at a time: a call that kills its worker shall take no other with it, and be named.
            batch = left[:1] if losses > 1 else left
            error = self._round(parcel, many, batch, self._size(len(batch)), answers)
            if error is not None:
                losses = 1 if len(answers) > before else losses + 1
                if _has_ended(error):
                    self._here(call, many, data, answers)
                    break
                self._recover(error, losses, many, left, answers)
        self.count += len(many)
        return [answers[place] for place in range(len(many))]

    def _round(self, parcel: tuple[str, Any], many: Sequence[Any], left: list[int], size: int, answers: dict) -> Any:
        """Send all that is left; what came back is put into `answers`. Returns what the executor raised, if it did."""
        key, sent = parcel
        batches = [left[first : first + size] for first in range(0, len(left), size)]
        small = not isinstance(sent, bytes) or len(sent) <= _SMALL
        first = sent if small or not self._delivered else None
        futures, failed = [], None
        try:
            with interrupts_at_once():
                try:
                    futures = [self.executor.submit(work, key, first, [many[i] for i in batch]) for batch in batches]
                except Exception as error:
                    return error
                for batch, future in _as_they_come(batches, futures):
                    try:
                        found = future.result()
                        if found.answers is None:  # this worker has not met the work before
                            found = self.executor.submit(work, key, sent, [many[i] for i in batch]).result()
                    except Exception as error:  # of the executor: what calls raise is among the answers
                        failed, self.lost = error, self.lost + 1
                        continue
                    self._take(found, batch, many, answers)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        self._delivered = self._delivered or failed is None
        return failed

    def _take(self, found: Answered, batch: list[int], many: Sequence[Any], answers: dict) -> None:
        assert found.answers is not None
        for place, answer in zip(batch, found.answers, strict=False):
            if isinstance(answer, Raised):
                told = f"fun raised {answer.what}\n{self.where(place, len(many), many[place])}\n\nin a worker:\n{answer.trace}"
                raise CallFailed(told, place, many[place])
            self._arrive(place, answer, answers)
        each = found.seconds / len(batch)
        self.seconds = each if self.seconds is None else 0.5 * (self.seconds + each)

    def _size(self, n: int) -> int:
        """Calls in a batch: as few as keep the scheduler's share small, and enough batches for all workers."""
        if self.together is not None:
            return self.together
        most = max(1, n // (_BATCHES_OF_A_WORKER * self.workers))
        if self.seconds is None:
            return most
        return max(most, min(int(_SECONDS_OF_A_BATCH / max(self.seconds, 1e-9)), -(-n // self.workers)), 1)

    @property
    def workers(self) -> int:
        """How many there are, as far as the executor tells."""
        number = getattr(self.executor, "_max_workers", None)
        client = getattr(self.executor, "_client", None)  # Dask's
        if number is None and client is not None:
            number = sum(client.nthreads().values())
        return max(1, int(number or os.cpu_count() or 1))

    def _parcelled(self, call: Callable[[Any, Any], Any], data: Any) -> tuple[str, Any]:
        """Function and data as they travel, with their key; threads need no copy."""
        if self._parcel is None or self._parcel[0] is not call or self._parcel[1] is not data:
            sent = (call, data) if isinstance(self.executor, ThreadPoolExecutor) else pickled((call, data))
            key = hashlib.blake2b(sent).hexdigest() if isinstance(sent, bytes) else f"{os.getpid()} {id(sent)}"
            self._parcel, self._delivered = (call, data, key, sent), False
        return self._parcel[2:]

    def _recover(self, error: Exception, losses: int, many: Sequence[Any], left: list[int], answers: dict) -> None:
        """See to a pool that works again, or say why there is none."""
        place = next(place for place in left if place not in answers)
        if losses >= _MOST_LOSSES:
            told = f"executor: its workers were lost {losses} times in a row ({type(error).__name__}: {error})"
            raise CallFailed(
                f"{told}, the last time {self.where(place, len(many), many[place])}", place, many[place]
            ) from error
        if not isinstance(error, BrokenExecutor):
            return  # Dask and its like have other workers, or start them
        if type(self.executor) is not ProcessPoolExecutor:
            raise CallFailed(
                f"executor: {type(self.executor).__name__} is broken ({error}), {self.where(place, len(many), many[place])}; "
                "give a new one, and go on from the checkpoint",
                place,
                many[place],
            ) from error
        self.executor, self._delivered = _another(self.executor), False

    def _here(self, call: Callable[[Any, Any], Any], many: Sequence[Any], data: Any, answers: dict) -> None:
        """The executor was shut down, as after a `with`: the rest is done in this process."""
        warnings.warn("executor: it has been shut down, so that fun is called in this process.", stacklevel=2)
        left = [place for place in range(len(many)) if place not in answers]
        for place, answer in zip(left, InTurn()(call, [many[place] for place in left], data), strict=True):
            self._arrive(place, answer, answers)

    def _arrive(self, place: int, answer: Any, answers: dict) -> None:
        answers[place] = answer
        if self.arrived is not None:
            self.arrived(place, answer)


def _as_they_come(batches: list[list[int]], futures: list[Any]) -> Iterator[tuple[list[int], Any]]:
    """Batches with their futures, the first that is done first; in order where an executor has futures of its own."""
    if all(isinstance(future, Future) for future in futures):
        of = dict(zip(futures, batches, strict=True))
        yield from ((of[future], future) for future in as_completed(futures))
    else:
        yield from zip(batches, futures, strict=True)


def _has_ended(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and not isinstance(error, BrokenExecutor) and "shutdown" in str(error)


def _another(broken: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """A pool like one that has lost a worker, which takes no more work. It ends with the last reference to it."""
    broken.shutdown(wait=False, cancel_futures=True)
    own = vars(broken)
    return ProcessPoolExecutor(
        own.get("_max_workers"), own.get("_mp_context"), own.get("_initializer"), own.get("_initargs", ())
    )


def pickled(work: Any) -> bytes:
    """As bytes: by cloudpickle where it is installed, which also takes lambdas and what a script defines.

    Raises
    ------
    ValueError
        When it cannot be sent to another process.
    """
    try:
        from cloudpickle import dumps
    except ImportError:
        from pickle import dumps
    try:
        return dumps(work)
    except Exception as error:
        raise ValueError(
            f"executor: the function and its data cannot be sent to another process ({type(error).__name__}: {error}); "
            "define the function at the top of a module, hold nothing in it that cannot be pickled, and install "
            "cloudpickle (`pip install 'quenched[dask]'`) for lambdas and closures."
        ) from error
