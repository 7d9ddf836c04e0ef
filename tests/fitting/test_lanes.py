"""Lanes on toy work: whatever the durations and the widths, every entry gets exactly its own turns, with its own data."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import registry
from quenched.fitting.callers import Callers
from quenched.fitting.machines import drive
from quenched.fitting.rows import Widths
from quenched.objective import Rows


class Toy(NamedTuple):
    """Adds its datum once a turn until its duration is over; every third turn is followed by an amendment."""

    left: Any
    turns: Any
    total: Any
    amended: Any
    due: Any

    @property
    def running(self):
        return self.left > 0


@dataclass(frozen=True)
class Toys:
    def begin(self, inputs, context):
        zero = inputs * 0
        return Toy(inputs, zero, zero.astype(float), zero, zero > 0)

    def amend(self, state, context):
        return state._replace(amended=state.amended + 1, due=state.due & False)

    def turn(self, state, data, context):
        shared, own = data
        turns = state.turns + 1
        return Toy(state.left - 1, turns, state.total + context * own + shared, state.amended, turns % 3 == 0)

    def report(self, state, context):
        return state.turns, state.total, state.amended


durations = st.lists(st.integers(1, 23), min_size=1, max_size=70)


def run(lengths, widths, stop=lambda n: False, callers=2):
    n = len(lengths)
    data = Rows(own=jnp.arange(2 * n, dtype=float), shared=jnp.asarray(0.5))
    problems = np.arange(n) * 2  # only every second of the problems has an entry
    return drive(Toys(), 10.0, problems, np.asarray(lengths), data, widths, stop, Callers(callers))


@registry.law
@given(durations, st.sampled_from([(1, 1), (2, 8), (4, 32), (32, 64), (5, 5)]), st.integers(1, 3))
def test_every_entry_has_its_own_turns(lengths, widths, callers):
    done = run(lengths, Widths(*widths), callers=callers)
    turns, total, amended = done.reports
    assert done.begun.all()
    assert done.ended.all()
    np.testing.assert_array_equal(turns, lengths)
    np.testing.assert_allclose(total, [length * (10.0 * 2 * i + 0.5) for i, length in enumerate(lengths)])
    # What is due after the last turn is not done any more.
    np.testing.assert_array_equal(amended, [(length - 1) // 3 for length in lengths])


@registry.law
@given(durations, st.integers(0, 30))
def test_work_that_is_called_off_says_who_had_a_turn_and_who_ended(lengths, patience):
    looks = []

    def stop(n_ended):
        looks.append(n_ended)
        return len(looks) > patience

    done = run(lengths, Widths(2, 4), stop)
    turns = done.reports[0]
    np.testing.assert_array_equal(turns[done.ended], np.asarray(lengths)[done.ended])
    assert not done.ended[~done.begun].any()
    going = done.begun & ~done.ended
    assert (turns[going] < np.asarray(lengths)[going]).all()
    assert (turns[going] > 0).all()
    assert looks == sorted(looks)


@pytest.mark.parametrize("n", [1, 3, 33, 200])
def test_few_widths_are_compiled(n):
    widths = Widths(2, 32)
    assert {widths.fit(k) for k in range(1, n + 1)} <= {2, 4, 8, 16, 32}
    assert all(widths.fit(k) >= min(k, 32) for k in range(1, n + 1))
