"""Remarks on where a fit has gone."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.fitting.blame import sign_remark
from quenched.transforms import describe_space

START = {"mu": 2.0, "sigma": 0.1, "tau": -1.0, "w": [1.0, 1.0, 1.0]}


def remark(mean, sd=0.02, transforms=None):
    space, start = describe_space(START, transforms)
    return sign_remark(space, start, np.asarray(mean), np.full(space.dim, sd))


def test_a_scale_that_has_become_negative_is_named():
    said = remark([1.7, -0.089, -1.0, 1.0, 1.0, 1.0])
    assert said.startswith("sigma began at 0.1 and ended at -0.089 ± 0.02. ")
    assert "give a transform (positive" in said


@pytest.mark.parametrize(
    ("mean", "sd", "transforms"),
    [
        ([1.7, 0.089, -1.0, 1.0, 1.0, 1.0], 0.02, None),
        ([1.7, -0.05, -1.0, 1.0, 1.0, 1.0], 0.02, None),  # zero is within reach
        ([1.7, -2.4, -1.0, 1.0, 1.0, 1.0], 0.02, {"sigma": qd.positive}),  # a logarithm
        ([1.7, 0.1, 0.5, 1.0, 1.0, 1.0], 0.02, None),  # no scale begins below zero
        ([np.nan] * 6, 0.02, None),
    ],
)
def test_where_there_is_nothing_to_remark(mean, sd, transforms):
    assert remark(mean, sd, transforms) == ""


def test_of_many_a_few_are_named():
    said = remark([-1.0, -1.0, 1.0, -1.0, -1.0, -1.0])
    assert said.count("began at") == 3
    assert "; 2 more changed their sign. " in said
    assert "w[1]" not in said


def test_a_bound_of_minus_infinity_is_told_in_words_and_not_in_warnings():
    beyond = lambda p: jnp.where(p["s"] > 0.0, -3.0 * jnp.log(jnp.abs(p["s"])) - 1.0 / jnp.abs(p["s"]), -jnp.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(qd.FitError, match=r"minus infinity at .* give a transform"):
            qd.fit(beyond, {"s": 1.0}, progress=False)
