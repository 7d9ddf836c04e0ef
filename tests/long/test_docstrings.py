"""Every example in the reference does what it says."""

import importlib.util

import pytest

import quenched as qd
from doctests import BEYOND, NEEDS, run


@pytest.mark.parametrize("name", [*qd.__all__, *BEYOND])
def test_the_example_is_right(name):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed; tests/external runs this one")
    assert run(name) == ""
