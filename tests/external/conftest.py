"""Tests of front ends: each needs its package, and is skipped without it; `make test-external` installs them all."""

import contextlib

import numpy as np
import pytest

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory):
    """Compilers leave object files where they are called."""
    with contextlib.chdir(tmp_path_factory.mktemp("compiled")):
        yield


@pytest.fixture
def schools() -> tuple[np.ndarray, np.ndarray]:
    """Effects and their standard errors."""
    return EFFECTS, ERRORS
