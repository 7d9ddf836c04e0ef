"""Every public entry, every argument of it, every value that nobody should give: an answer, or our words."""

import pytest

import hostile

ENTRIES = hostile.entries()


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_hostile_values_are_refused_in_our_words(entry):
    bad = {
        (argument, label): str(found)
        for argument in entry.arguments
        for label, make in hostile.VALUES.items()
        if (found := hostile.outcome(entry, argument, make())).bad
    }
    assert not bad
