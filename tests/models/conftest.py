"""Data with a few wild entries, shared by the tests of the models."""

from typing import NamedTuple

import numpy as np
import pytest


class Wild(NamedTuple):
    """Rows near a plane, the same with wild entries, and more rows of both kinds."""

    clean: np.ndarray
    wild: np.ndarray
    new_clean: np.ndarray
    new_wild: np.ndarray


@pytest.fixture(scope="session")
def rows() -> Wild:
    random = np.random.default_rng(3)
    loadings = random.standard_normal((16, 2)) * [3.0, 1.5]
    clean = random.standard_normal((56, 2)) @ loadings.T + 5.0 + 0.3 * random.standard_normal((56, 16))
    wild = np.where(random.uniform(size=clean.shape) < 0.15, random.uniform(-40.0, 40.0, clean.shape), clean)
    return Wild(clean[:40], wild[:40], clean[40:], wild[40:])
