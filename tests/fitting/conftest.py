"""Fits switch 64 bits on by themselves; the formulas beside them need it too."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def lanes_for_few(monkeypatch):
    """Problems are fitted in lanes however few they are; the rule itself has tests of its own, which undo this."""
    monkeypatch.setattr("quenched.fitting.run.FEW", 2)
