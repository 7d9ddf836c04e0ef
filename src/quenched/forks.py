"""Processes that were forked: the threads of JAX are not in them, and whatever waits for these waits for ever."""

import os

_first: int | None = None  # the process in which JAX was first used by a fit


def note_process() -> None:
    """A fit uses JAX here."""
    global _first
    if _first is None:
        _first = os.getpid()


def is_forked() -> bool:
    """Whether a fit has used JAX before this process was forked."""
    return _first is not None and _first != os.getpid()


def insist_not_forked() -> None:
    """Asked before anything is computed: a fit, and whatever a fit is asked for afterwards.

    Raises
    ------
    ValueError
        When a fit has used JAX before this process was forked.
    """
    if is_forked():
        raise ValueError(
            "fork: this process was forked after a fit, and JAX has no threads here: it would wait for ever. Start workers "
            "before the first fit, or start them anew: multiprocessing.get_context('spawn'), or "
            "ProcessPoolExecutor(mp_context=...) with it."
        )
