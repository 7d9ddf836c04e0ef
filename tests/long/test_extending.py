"""The skeletons of the page on extending run as they stand, and do what they say."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names():
    found: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "extending.md", "exec"), found)
    return found


def test_a_new_likelihood_is_normalised_and_fits(names):
    counts = np.arange(400.0)
    total = np.exp(np.asarray(names["negative_binomial"](counts, 1.0, 0.5), float)).sum()
    assert total == pytest.approx(1.0, abs=1e-3)
    assert names["fit"].converged
    assert names["large"].settings["family"] == "sparse"


def test_a_new_front_end_brings_its_names_and_predictions(names):
    assert names["line"].converged
    assert names["replicated"].shape == (50, 20)
    assert names["line"].mean["slope"] == pytest.approx(1.0, abs=0.1)


def test_a_new_family_is_the_best_of_its_kind(names):
    np.testing.assert_allclose(names["narrow"].posterior.variance(), 0.4, rtol=1e-3)
    assert names["narrow"].settings["family"] == "spherical"
