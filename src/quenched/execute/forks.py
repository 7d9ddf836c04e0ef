"""Processes that were forked: the threads of JAX are not in them, and whatever waits for these waits for ever."""

import os

_first: int | None = None  # the process in which JAX was first used by a fit


def insist_not_forked() -> None:
    """Note that JAX is used here.

    Raises
    ------
    ValueError
        When it was used before this process was forked.
    """
    global _first
    if _first is None:
        _first = os.getpid()
    elif _first != os.getpid():
        raise ValueError(
            "fork: this process was forked after a fit, and JAX has no threads here: it would wait for ever. Start workers "
            "before the first fit, or start them anew: multiprocessing.get_context('spawn'), or "
            "ProcessPoolExecutor(mp_context=...) with it."
        )
