"""Independent pieces of work on the devices of a mesh: a thread for every device of this process, and an exchange at the end."""

import itertools
import pickle
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from quenched.execute.lost import FIRST_LOST_AFTER, with_others
from quenched.execute.pool import Pool

_exchanging: dict[Any, float] = {}
_meetings = itertools.count()


class OnDevices(ThreadPoolExecutor):
    """What is submitted runs on the device of its thread; a mesh of several processes has their own devices in each."""

    def __init__(self, mesh: Mesh):
        self._free: queue.SimpleQueue = queue.SimpleQueue()
        own = [device for device in mesh.devices.flat if device.process_index == jax.process_index()]
        for device in own:
            self._free.put(device)
        self._of_thread = threading.local()
        super().__init__(max(len(own), 1), initializer=self._take)

    def _take(self) -> None:
        self._of_thread.device = self._free.get()

    def submit(self, function: Callable, /, *arguments: Any, **options: Any) -> Future:
        def on_own_device() -> Any:
            with jax.default_device(self._of_thread.device):
                return function(*arguments, **options)

        return super().submit(on_own_device)


def on_devices(call: Any, many: Sequence[Any], mesh: Mesh, arrived: Callable[[int, Any], None]) -> None:
    """The answers of all calls, on every process, as they come.

    Several processes go in step, some calls each, and then tell each other: so that nobody waits long for the others.
    """
    processes = jax.process_count()
    with OnDevices(mesh) as devices:
        if processes == 1:
            Pool(devices, together=1, arrived=arrived)(call, many, None)
            return
        step = mesh.devices.size
        for first in range(0, len(many), step):
            own = range(first + jax.process_index(), min(first + step, len(many)), processes)
            answers = Pool(devices, together=1)(call, [many[place] for place in own], None)
            for place, answer in sorted(exchanged(dict(zip(own, answers, strict=True))).items()):
                arrived(place, answer)


def _meet() -> None:
    """Wait until all are there, at JAX's own coordinator: a collective would give up on a process that still computes."""
    from jax._src import distributed

    client: Any = distributed.global_state.client
    with with_others({}, "meeting"):
        client.wait_at_barrier(f"quenched-{next(_meetings)}", int(1000 * FIRST_LOST_AFTER))


def exchanged(own: dict[int, Any]) -> dict[int, Any]:
    """What all processes have, by place; of what several have, that of the first."""
    if jax.process_count() == 1:
        return own
    from jax.experimental.multihost_utils import process_allgather

    _meet()
    sent = np.frombuffer(pickle.dumps(own), np.uint8)
    with with_others(_exchanging, "sizes"):
        sizes = np.asarray(process_allgather(np.array(len(sent)))).ravel()
    padded = np.zeros(-(-int(sizes.max()) // 2**16) * 2**16, np.uint8)  # few shapes, few programs
    padded[: len(sent)] = sent
    with with_others(_exchanging, "bytes"):
        all_of_them = np.asarray(process_allgather(padded)).reshape(len(sizes), -1)
    found: dict[int, Any] = {}
    for row, size in zip(all_of_them, sizes, strict=True):
        found = pickle.loads(row[:size].tobytes()) | found
    return found
