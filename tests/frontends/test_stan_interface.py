"""BridgeStan's interface, by an object that has it: no Stan is needed to read one."""

import threading
import time

import numpy as np
import pytest

import quenched as qd


class Regression:
    """A normal mean and a positive scale, then the two rows of a table in Stan's order, which is by columns."""

    def __init__(self, threads=False):
        self.threads, self.seen = threads, set()

    def model_info(self):
        return f"STAN_THREADS={str(self.threads).lower()}"

    def param_unc_num(self):
        return 6

    def param_names(self, *, include_tp=False, include_gq=False):
        table = ["table.1.1", "table.2.1", "table.1.2", "table.2.2"]
        return ["mean", "scale", *table, *["twice"] * include_tp, *["noisy"] * include_gq]

    def log_density_gradient(self, theta_unc, *, propto=True, jacobian=True):
        assert not propto
        assert jacobian
        self.seen.add(threading.get_ident())
        time.sleep(1e-4)  # as a call into C does, so that others may run
        if theta_unc[0] > 50.0:
            raise RuntimeError("rejected")
        away = theta_unc - np.array([0.0, 0.0, 11.0, 21.0, 12.0, 22.0])
        return -0.5 * away @ away - 3.0 * np.log(2.0 * np.pi), -away

    def param_constrain(self, theta_unc, *, include_tp=False, include_gq=False, rng=None):
        noisy = [theta_unc[0] + rng.standard_normal()] if include_gq else []
        return np.array(
            [theta_unc[0], np.exp(theta_unc[1]), *theta_unc[2:], *[2.0 * theta_unc[0]] * include_tp, *noisy]
        )

    def param_unconstrain(self, theta):
        return np.array([theta[0], np.log(theta[1]), *theta[2:]])

    def new_rng(self, seed):
        return np.random.default_rng(seed)


def test_names_orders_and_quantities():
    fit = qd.fit(qd.from_stan(Regression()), {"mean": 1.0, "scale": 2.0, "table": np.ones((2, 2))}, progress=False)
    np.testing.assert_allclose(fit.bound, 0.0, atol=1e-8)  # normalised, and constants are kept
    np.testing.assert_allclose(fit.evidence, 0.0, atol=1e-8)
    np.testing.assert_allclose(fit.mean["table"], [[11.0, 12.0], [21.0, 22.0]], atol=1e-6)
    samples = fit.sample(500)
    np.testing.assert_allclose(samples["twice"], 2.0 * samples["mean"])
    assert np.all(samples["scale"] > 0)
    noisy = fit.predict(500)["noisy"]
    np.testing.assert_allclose(noisy.std(), np.sqrt(2.0), rtol=0.1)
    np.testing.assert_array_equal(noisy, fit.predict(500)["noisy"])
    assert not np.array_equal(noisy, fit.predict(500, seed=1)["noisy"])


def test_threads_where_stan_was_compiled_for_them():
    alone, many = Regression(), Regression(threads=True)
    fits = [qd.fit(qd.from_stan(model), progress=False) for model in (alone, many)]
    np.testing.assert_array_equal(fits[0].posterior.mean, fits[1].posterior.mean)
    assert len(alone.seen) == 1
    assert len(many.seen) > 1


def test_misuse():
    with pytest.raises(ValueError, match="give a StanModel of BridgeStan"):
        qd.from_stan(3)
    with pytest.raises(ValueError, match="table does not match"):
        qd.fit(qd.from_stan(Regression()), {"mean": 0.0, "scale": 1.0})
    with pytest.raises(ValueError, match="outside its support"), np.errstate(invalid="ignore"):
        qd.fit(qd.from_stan(Regression()), {"mean": 0.0, "scale": -1.0, "table": np.ones((2, 2))})
