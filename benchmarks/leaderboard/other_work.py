"""How many cores other work keeps busy while something is measured: seconds beside other work do not count."""

import os
import time
from pathlib import Path

QUIET = 0.1  # of all cores: what the system itself may take
_STATISTICS = Path("/proc/stat")
_IDLE, _GUESTS = (3, 4), 8  # places of what no work took, and from where on work is counted twice


class Others:
    """Counts from when it is made; nan where the system does not say."""

    def __init__(self):
        self._began = self._now()

    @property
    def cores(self) -> float:
        """So many on average, what a host has given to other machines included."""
        clock, busy = (now - before for now, before in zip(self._now(), self._began, strict=True))
        return max(busy / clock, 0.0) if clock > 0.0 else 0.0

    @staticmethod
    def _now() -> tuple[float, float]:
        """The clock, and processor seconds of everybody but this process and those that it has waited for."""
        own = sum(os.times()[:4])
        if not _STATISTICS.exists():
            return time.perf_counter(), float("nan")
        ticks = [int(field) for field in _STATISTICS.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
        busy = sum(ticks[:_GUESTS]) - sum(ticks[place] for place in _IDLE)
        return time.perf_counter(), busy / os.sysconf("SC_CLK_TCK") - own


def quiet(cores: float) -> bool:
    """Whether that many cores of others leave a measurement alone."""
    return not cores > QUIET * (os.cpu_count() or 1)


def quiet_now(seconds: float = 1.0) -> bool:
    """Looks for a while."""
    others = Others()
    time.sleep(seconds)
    return quiet(others.cores)
