"""Examples in the reference that need other people's packages."""

import pytest

from doctests import NEEDS, run


@pytest.mark.parametrize("name", NEEDS)
def test_the_example_is_right(name):
    pytest.importorskip(NEEDS[name])
    assert run(name) == ""
