"""What of an answer to trust is looked at when someone asks, once, and not while others wait for the fit."""

import os
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.trust import MANY
from quenched.trust import further as further_module
from quenched.trust import lookout as lookout_module
from quenched.trust import region as region_module

DATA = np.array([1.0, 2.0, 4.0])


def skew(w, y):
    """Long tails on one side: weights from any Gaussian are uneven."""
    return jnp.sum(w - y * jnp.exp(w)) - 0.05 * jnp.sum(w**2)


def fit(**options):
    return qd.fit(skew, np.zeros(3), data=DATA, progress=False, **options)


@pytest.fixture
def looked(monkeypatch) -> list[int]:
    """How many values the target was asked for after fits had ended, call by call."""
    asked: list[int] = []
    for module in (lookout_module, further_module, region_module):
        own = module.log_ratios

        def counted(problem, member, hyper, z, own=own):
            asked.append(len(z))
            return own(problem, member, hyper, z)

        monkeypatch.setattr(module, "log_ratios", counted)
    return asked


def test_a_fit_does_not_look_and_what_it_is_asked_it_looks_at_once(looked):
    one = fit()
    assert one.mean.shape == (3,)
    assert one.check_error > 0.0
    assert not looked
    first = one.verdict
    assert len(looked) == 3  # more check draws, draws further out, and the ends of every parameter
    assert looked[0] == MANY - len(one.log_ratios)
    assert one.verdict == first
    assert one.khat == one.weights.khat
    assert len(looked) == 3
    assert len(one.weighed_ratios) == len(one.check_draws) == MANY
    np.testing.assert_array_equal(one.weighed_ratios[: len(one.log_ratios)], one.log_ratios)


def test_the_check_takes_as_many_draws_as_were_asked_for_and_weights_no_more(looked):
    one = fit(check=700)
    assert len(one.log_ratios) == 700
    assert len(one.weights.weights) == 700
    assert not looked


def test_the_check_ends_when_its_error_hides_nothing():
    few, many = fit(draws=512, tolerance=1.0), fit(draws=512, tolerance=1e-6)
    assert (len(few.log_ratios), len(many.log_ratios)) == (640, 5 * 512)
    assert few.check_error <= 1.0 / 3.0
    assert many.check_error < few.check_error


def test_a_file_a_pickle_and_one_of_many_say_the_same(tmp_path):
    one = fit()
    saved, pickled = qd.load(one.save(tmp_path / "fit.npz")), pickle.loads(pickle.dumps(one))
    assert saved.verdict == pickled.verdict == one.verdict
    assert saved.khat == pickled.khat == one.khat
    many = qd.fit_many(skew, np.zeros(3), np.stack([DATA, DATA[::-1]]), progress=False)
    assert many[0].further is not None
    assert one.further is not None
    assert many[0].answer.trust == one.answer.trust
    assert many[0].further.khat == pytest.approx(one.further.khat, abs=1e-3)


def test_nobody_asks_the_target_after_a_fork():
    """JAX has no threads there: what is known has to do."""
    one = fit()
    child = os.fork()
    if not child:
        os._exit(0 if len(one.weighed_ratios) == len(one.log_ratios) and one.further is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(one.weighed_ratios) == MANY
