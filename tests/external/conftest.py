"""Tests of front ends: each needs its package, and is skipped without it; `make test-external` installs them all."""

import contextlib
import sys
from importlib.util import find_spec

import numpy as np
import pytest

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


PACKAGES = ("numpyro", "funsor", "pymc", "bambi", "stan", "torch", "optax", "distributed", "formulae", "arviz")


def pytest_sessionstart(session):
    """On Python 3.11 nothing is skipped: all packages are to be had."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing and sys.version_info[:2] == (3, 11):
        raise pytest.UsageError(f"{', '.join(missing)} missing; `make test-external` installs all.")


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory):
    """Compilers leave object files where they are called."""
    with contextlib.chdir(tmp_path_factory.mktemp("compiled")):
        yield


@pytest.fixture
def schools() -> tuple[np.ndarray, np.ndarray]:
    """Effects and their standard errors."""
    return EFFECTS, ERRORS
