"""Functions on the host that take many draws in one call."""

import numpy as np
import pytest

import quenched as qd

START = {"scale": 1.0, "w": np.zeros(2)}
DATA = np.array([0.5, -1.0])


def one(p, data):
    """Gamma and Gaussian, with their gradient."""
    away = p["w"] - data
    return 2.0 * np.log(p["scale"]) - p["scale"] - 0.5 * away @ away, {"scale": 2.0 / p["scale"] - 1.0, "w": -away}


def test_one_call_for_many_draws():
    sizes = []

    def many(p, data):
        sizes.append(len(p["scale"]))
        away = p["w"] - data
        value = 2.0 * np.log(p["scale"]) - p["scale"] - 0.5 * np.sum(away**2, axis=1)
        return value, {"scale": 2.0 / p["scale"] - 1.0, "w": -away}

    options = {"data": DATA, "transforms": {"scale": qd.positive}, "progress": False}
    together = qd.fit(qd.from_value_and_grad(many, batched=True), START, **options)
    alone = qd.fit(qd.from_value_and_grad(one), START, **options)
    np.testing.assert_allclose(together.bound, alone.bound, atol=1e-10)
    np.testing.assert_allclose(together.covariance, alone.covariance, atol=1e-8)
    assert sum(sizes) >= together.n_evaluations > 8 * len(sizes)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda w: (0.0, -w), r"shape \(\); it must return one number for each of the \d+ parameters"),
        (lambda w: (-0.5 * np.sum(w**2, axis=1), -w[0]), "gradient of shapes"),
    ],
)
def test_what_is_not_a_batch_is_named(answer, says):
    with pytest.raises(ValueError, match=says):
        qd.fit(qd.from_value_and_grad(answer, batched=True), np.zeros(2), progress=False)
