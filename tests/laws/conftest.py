"""Laws about numbers are checked in double precision, as a fit computes them."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield
