"""Fits switch 64 bits on by themselves; the formulas beside them need it too."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield
