"""The ground-motion experiment: its partitions, its measure, and that absurd results are counted, not averaged."""

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.paper.experiments import printed
from quenched.paper.experiments.experiment import results
from quenched.paper.experiments.inversions import OTHERS, measure
from quenched.paper.experiments.spectra_inversion import groundmotion, split
from quenched.paper.experiments.spectra_inversion_report import METHODS
from quenched.paper.experiments.tasks import Outcome, Task
from quenched.science import GroundMotion
from science.test_ground_motion import simulate


@pytest.mark.usefixtures("data_folder")
def test_training_and_test_points_are_apart_and_new_each_time():
    key = lambda spectra: {*zip(spectra.event.tolist(), spectra.frequency.tolist(), strict=True)}
    train, test = split("fksh11", 100, 0)
    more, same_test = split("fksh11", 1000, 0)
    other, _ = split("fksh11", 100, 1)
    assert (len(train), len(more), len(test)) == (100, 1000, 1000)
    assert not key(more) & key(test)
    assert key(train) < key(more)
    assert key(test) == key(same_test)
    assert key(train) != key(other)


def test_a_posterior_beyond_the_physical_range_counts_as_infinite():
    table = simulate()
    model = GroundMotion().fit(table, progress=False)
    good = measure(model, model.spectra_)
    assert good["error"] == pytest.approx(model.prediction_error(table, seed=1))
    assert good["broken_samples"] == 0

    # Without transforms, and with standard deviations as large as the means: negative stress drops.
    start = {name: np.asarray(value) for name, value in model.fit_.mean.items()}
    wide = lambda p: -0.5 * sum(jnp.sum((p[name] / start[name] - 1.0) ** 2) for name in start)
    model.fit_ = qd.laplace(wide, start, progress=False)
    bad = measure(model, model.spectra_)
    assert bad["error"] == float("inf")
    assert bad["broken_samples"] > 0


@pytest.mark.parametrize("method", OTHERS)
def test_every_other_way_predicts_data_that_rule(method):
    """Where the data exclude all bounds, the prior hardly matters."""
    table = simulate()
    near = GroundMotion().fit(table, progress=False)
    other = measure(OTHERS[method](near.spectra_, near=near), near.spectra_)
    assert other["fine_error"] == pytest.approx(measure(near, near.spectra_)["fine_error"], rel=0.02)


def outcome(repetition, error, rival):
    entry = lambda value: dict.fromkeys(
        ("error", "fine_error", "log_density", "seconds", "evaluations", "gap", "n_draws"), value
    )
    result = {"variance": 1.0, "default": entry(error)}
    result |= {name: entry(rival) for name in ("laplace", "laplace_line", "laplace_natural", "frozen_line")}
    arguments = {"name": "fksh11", "n": 100, "repetition": repetition, "mode": "default"}
    return Outcome(Task("groundmotion", f"r{repetition}", "x:y", arguments), result)


def test_absurd_results_are_counted_and_left_out_of_the_mean():
    outcomes = [outcome(0, 0.2, 0.3), outcome(1, 0.4, float("inf")), outcome(2, 0.3, 7.0)]
    records = groundmotion.records(outcomes)
    find = lambda label, metric: next(r for r in records if r.method == label and r.metric == metric)
    ours, theirs = (METHODS[name][1] for name in ("default", "laplace"))
    assert find(ours, "error").value == pytest.approx(0.3)
    assert find(ours, "error").paper_value == printed.GROUND_MOTION_PROPOSED[100][0]
    assert find(ours, "absurd").value == 0
    assert find(theirs, "error").value == pytest.approx(0.3)
    assert find(theirs, "error").repetitions == 1
    assert find(theirs, "error").paper_value == printed.GROUND_MOTION_LAPLACE[100][0]
    assert find(theirs, "absurd").value == 2
    ((_, parts),) = groundmotion.sections(outcomes, records)
    text = " ".join(map(str, parts))
    assert "2 of 3" in text
    assert "RESORCE, which is not public" in text
    assert len(results(outcomes, name="fksh11")) == 3
