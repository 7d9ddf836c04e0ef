"""The experiment on faces, with images that are none: smooth random ones in the official layout."""

import csv
import json

import numpy as np
import pytest

from quenched.paper.experiments import reproduce
from quenched.paper.experiments.denoisers import corrupt, distance
from quenched.paper.experiments.face_denoising import faces, run
from quenched.paper.experiments.face_pictures import pack, unpack
from quenched.paper.experiments.tasks import Outcome


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Two people with 16 images each of 24 × 20 pixels: sums of two patterns under random lights."""
    random = np.random.default_rng(0)
    wave = lambda a, b: 1.0 + np.cos(np.linspace(0, a, 48))[:, None] * np.cos(np.linspace(0, b, 40))
    for person in (1, 2):
        folder = tmp_path / "data" / "yaleb" / "CroppedYale" / f"yaleB{person:02d}"
        folder.mkdir(parents=True)
        for light in range(16):
            image = 40 * random.uniform(0.5, 1.5) * wave(3, 2 + person) + 40 * random.uniform() * wave(8, 5) + 5
            content = b"P5 40 48 255\n" + np.clip(image, 0, 255).astype(np.uint8).tobytes()
            (folder / f"yaleB{person:02d}_P00A+{light:03d}E+00.pgm").write_bytes(content)
    monkeypatch.setenv("QUENCHED_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("quenched.paper.experiments.face_denoising._PEOPLE", (1, 2))
    monkeypatch.setattr("quenched.paper.experiments.face_denoising._QUICK", (1, 2))


def test_a_third_of_the_pixels_is_replaced():
    images = np.full((8, 30, 30), 300.0)  # brighter than any replacement
    original, corrupted, half = corrupt(images, 1)
    assert half == 4
    np.testing.assert_array_equal((original != corrupted).sum(axis=1), 300)
    wrong = corrupted[original != corrupted]
    assert wrong.min() == 0
    assert wrong.max() == 255
    assert abs(wrong.mean() - 127.5) < 6
    np.testing.assert_array_equal(corrupt(images, 1)[1], corrupted)
    assert (corrupt(images, 2)[1] != corrupted).any()


def test_rows_keep_their_corruption_and_are_in_another_order():
    images = np.arange(8 * 9).reshape(8, 3, 3) + 1000
    original, corrupted, _ = corrupt(images, 3)
    assert sorted(original[:, 0].tolist()) == images[:, 0, 0].tolist()
    assert original[:, 0].tolist() != images[:, 0, 0].tolist()
    kept = corrupted >= 1000
    np.testing.assert_array_equal(corrupted[kept], original[kept])


def test_the_measure_of_the_paper():
    assert distance(np.array([[3.0, 4.0]]), np.array([[3.0, 0.0]])).tolist() == [16 / 25]


def test_pictures_survive_the_result_file():
    image = np.random.default_rng(0).uniform(-10, 300, 12)
    shown = unpack(json.loads(json.dumps(pack(image))), (3, 4))
    np.testing.assert_array_equal(shown, np.clip(np.round(image), 0, 255).reshape(3, 4))


@pytest.mark.usefixtures("people")
def test_the_experiment_end_to_end(tmp_path):
    written = reproduce(["faces"], out=tmp_path / "out", jobs=1)
    assert not written.failed
    page = written.report.read_text(encoding="utf-8")
    assert "Faces (Sec. 3.5)" in page
    assert "data:image/png;base64," in page
    with written.table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    value = {(r["dataset"], r["mode"], r["method"], r["metric"]): float(r["value"]) for r in rows}
    won = value["all", "default", "Cauchy PPCA over PPCA", "people_won"]
    assert won == 2
    for person in ("person 01", "person 02"):
        assert value[person, "default", "Cauchy PPCA", "error"] < value[person, "default", "PPCA", "error"]
        assert value[person, "default", "PPCA", "error"] < value[person, "default", "corrupted", "error"]
    claimed = next(r for r in rows if r["metric"] == "people_won" and r["mode"] == "default")
    assert float(claimed["paper_value"]) == 38
    assert ("person 01", "paper", "Cauchy PPCA, iid draws, Algorithm 1", "error") in value


@pytest.mark.usefixtures("people")
def test_a_missing_person_is_named():
    with pytest.raises(RuntimeError, match=r"no image of people \[5\]"):
        run(5, "default")


def test_both_halves_are_put_together():
    """Errors of the second half follow those of the first; a mode with one half is compared on that half."""
    ours, theirs = "Cauchy PPCA", ("PPCA", "PCA, clipped", "PCA, median filter", "median filter alone", "corrupted")
    numbers = {"fit_seconds": 1.0, "evaluations": 2, "gap": 0.0, "bound": 0.0, "noise_scale": 1.0}
    result = lambda name, mine, other: {
        "errors": {name: mine, **({rival: other for rival in theirs} if other else {})},
        "seconds": {name: 1.0},
        **numbers,
    }
    tasks = {
        (t.arguments["mode"], t.arguments.get("fold", 0)): t for t in faces.tasks(True) if t.arguments["person"] == 3
    }
    outcomes = [
        Outcome(tasks["default", 1], result(ours, [0.5, 0.5], [0.4, 0.6])),
        Outcome(tasks["default", 0], result(ours, [0.1, 0.1, 0.1], [0.2, 0.2, 0.2])),
        Outcome(tasks["paper", 0], result("Cauchy PPCA, iid draws, Algorithm 1", [0.1, 0.3, 0.3], [])),
    ]
    found = {(r.mode, r.metric, r.method): r for r in faces.records(outcomes)}
    share = found["default", "images_won", "Cauchy PPCA over PPCA"]
    assert share.value == pytest.approx(4 / 5)
    assert share.repetitions == 5
    assert found["paper", "images_won", "Cauchy PPCA, iid draws, Algorithm 1 over PPCA"].value == pytest.approx(1 / 3)
    assert found["default", "error", "PPCA"].value == pytest.approx(0.32)
