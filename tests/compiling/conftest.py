"""Everything here is computed in double precision, as fits are."""

import jax
import pytest


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield
