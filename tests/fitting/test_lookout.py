"""What of an answer to trust is looked at when someone asks, once, and not while others wait for the fit."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

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
    assert len(looked) == 4  # more check draws, draws further out, rays, and the ends of every parameter
    assert looked[0] == MANY - len(one.log_ratios)
    assert one.verdict == first
    assert one.khat == one.weights.khat
    assert len(looked) == 4
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


def test_where_a_host_function_is_nan_or_raises_beyond_the_check_draws_is_found():
    def broken(answer):
        def fun(x):
            return (-0.5 * x @ x if x[0] < 4.2 else answer()), -x

        return qd.fit(qd.from_value_and_grad(fun), np.zeros(2), progress=False)

    def raises():
        raise ValueError("math domain error")

    for one in (broken(lambda: np.nan), broken(raises)):
        assert one.answer.rule == "not finite further out"
        assert "5 sds above the mean of parameters[0]" in one.verdict
        assert not one.finite


def broken_aslant(w, limit):
    return -0.5 * jnp.sum(w**2) + 0.0 * jnp.log(limit - jnp.sum(w) / jnp.sqrt(5.0))


def test_a_nan_that_lies_along_no_parameter_and_that_no_check_draw_meets_is_found():
    one = qd.fit(broken_aslant, np.zeros(5), data=np.asarray(3.5), progress=False)
    assert np.isfinite(one.weighed_ratios).all()
    assert one.answer.rule == "not finite further out"
    assert "draws further out than any check draw came" in one.verdict
    assert "resample" not in one.diagnose().verdict  # which mends nothing: the remark says what does
    far = qd.fit(broken_aslant, np.zeros(5), data=np.asarray(8.0), progress=False)  # 1e-15 of the mass
    assert far.finite


@pytest.mark.parametrize(("dim", "says"), [(20, "for NaNs alone"), (21, "was not looked at")])
def test_of_a_host_function_it_is_said_what_was_not_looked_for(dim, says):
    asked = []

    def fun(x):
        asked.append(x)
        return -0.5 * x @ x, -x

    one = qd.fit(qd.from_value_and_grad(fun), np.zeros(dim), progress=False)
    before = len(asked)
    assert says in one.verdict
    assert len(asked) - before == (4 * dim if dim == 20 else 0)  # an eighth of the check at the most
    assert len(one.log_ratios) == 640


def test_of_a_function_that_workers_evaluate_it_is_said_that_none_looked_further():
    with ThreadPoolExecutor(1) as pool:
        fun = qd.from_value_and_grad(lambda x: (-0.5 * x @ x, -x))
        one = qd.fit(fun, np.zeros(2), executor=pool, progress=False)
        assert "was not looked at" in one.verdict
        assert one.finite


def test_nobody_asks_the_target_after_a_fork():
    """JAX has no threads there: what is known has to do."""
    one = fit()
    child = os.fork()
    if not child:
        os._exit(0 if len(one.weighed_ratios) == len(one.log_ratios) and one.further is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(one.weighed_ratios) == MANY


def test_an_end_of_the_support_that_kept_a_fit_narrow_is_named():
    fit = qd.fit(
        lambda p: jnp.where((p["x"] > 0) & (p["x"] < 1), 0.0, -jnp.inf), {"x": 0.5}, throw=False, progress=False
    )
    assert fit.status == "no_ascent"
    assert 5.0 * fit.sd["x"] < 0.5  # where every fit is looked at, there is nothing
    assert "sds above the mean of x" in fit.verdict
    assert "its support ends before, and no transform says so. Give one (positive, interval(a, b), ...)." in fit.verdict
