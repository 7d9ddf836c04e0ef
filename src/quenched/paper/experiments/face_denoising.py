"""Sec. 3.5: denoising faces by PPCA and by Cauchy PPCA, one person at a time."""

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from quenched.paper import datasets
from quenched.paper.experiments import denoisers, printed
from quenched.paper.experiments.experiment import Experiment, Section, results
from quenched.paper.experiments.face_pictures import pack, picture_grid
from quenched.paper.experiments.records import Record, by_method, shown, summarise
from quenched.paper.experiments.tasks import Outcome, Task
from quenched.report import Markup, table

_PEOPLE = tuple(number for number in range(1, 40) if number != 14)
_QUICK = (1, 5, 28)  # with 64 images each: compiled once
_PAPER_ROUNDS = 3
_REPETITIONS = 3  # of splitting and corrupting
_OURS = {"default": "Cauchy PPCA", "paper": "Cauchy PPCA, iid draws, Algorithm 1"}
_FIT_NUMBERS = ("fit_seconds", "evaluations", "gap", "bound", "noise_scale")
_OTHERS = ("PPCA", "PCA, clipped", "PCA, median filter", "median filter alone")


def run(person: int, mode: str, fold: int = 0, repetition: int = 0, max_rounds: int = _PAPER_ROUNDS) -> dict[str, Any]:
    """One person: errors of every test image by every method (mode "default"), or by Cauchy PPCA as in the paper.

    In fold 1 the halves change places, so that every image is a test image once in each repetition.
    """
    loaded = datasets.faces([person])
    original, corrupted, half = denoisers.corrupt(loaded.images, person, repetition)
    halves = (slice(None, half), slice(half, None))
    trained, tested = reversed(halves) if fold == 1 else halves
    train, test, truth = corrupted[trained], corrupted[tested], original[tested]
    size = loaded.images.shape[1:]
    errors, seconds, reconstructed = {}, {}, {}
    methods = {_OURS[mode]: lambda: denoisers.by_cauchy_ppca(train, test, mode, person, max_rounds)}
    if mode == "default":
        methods |= denoisers.by_others(train, test, size)
    details: dict[str, Any] = {}
    for name, method in methods.items():
        began = time.perf_counter()
        answer = method()
        seconds[name] = time.perf_counter() - began
        if isinstance(answer, tuple):
            answer, details = answer
        reconstructed[name], errors[name] = answer, denoisers.distance(truth, answer).tolist()
    result = {"errors": errors, "seconds": seconds, "size": list(size), "origin": loaded.origin, **details}
    if mode == "default":
        errors["corrupted"] = denoisers.distance(truth, test).tolist()
        # Of middling brightness: neither the easiest nor almost black.
        shown_one = int(np.argsort(truth.mean(axis=1))[len(truth) // 2])
        panels = (truth, test, reconstructed["PPCA"], reconstructed[_OURS[mode]])
        result["picture"] = {"index": shown_one, "panels": [pack(panel[shown_one]) for panel in panels]}
    return result


def _tasks(full: bool) -> list[Task]:
    function = f"{__name__}:run"
    chosen = []
    for person in _PEOPLE if full else _QUICK:
        default = {"person": person, "mode": "default"}
        chosen.append(Task("faces", f"person-{person:02d}-default", function, default, 5.0))
        if full:
            chosen.append(Task("faces", f"person-{person:02d}-default-fold-1", function, default | {"fold": 1}, 5.0))
            for repetition, fold in itertools.product(range(1, _REPETITIONS), (0, 1)):
                name = f"person-{person:02d}-default-{repetition}-fold-{fold}"
                again = default | {"fold": fold, "repetition": repetition}
                chosen.append(Task("faces", name, function, again, 5.0))
        if full or person == _QUICK[0]:
            as_in_paper = {"person": person, "mode": "paper"} | ({} if full else {"max_rounds": 1})
            name = f"person-{person:02d}-paper" + ("" if full else "-1")
            chosen.append(Task("faces", name, function, as_in_paper, 4.0))
    return chosen


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for mode in _OURS:
        for person, found in _by_person(outcomes, mode).items():
            name = f"person {person:02d}"
            for method, errors in found["errors"].items():
                rows.append(summarise("faces", name, mode, method, "error", errors))
                rows.append(Record("faces", name, mode, method, "median_error", float(np.median(errors))))
            for method, seconds in found["seconds"].items():
                rows.append(Record("faces", name, mode, method, "seconds", seconds))
            for metric in _FIT_NUMBERS:
                rows.append(Record("faces", name, mode, _OURS[mode], metric, found[metric]))
    for mode, method in _OURS.items():
        for rival in _OTHERS:
            rows.extend(_victories(outcomes, mode, method, rival))
    return rows


def _victories(outcomes: Sequence[Outcome], mode: str, method: str, rival: str) -> list[Record]:
    """On how many people, and on which share of all test images, Cauchy PPCA has the smaller error."""
    theirs, ours = _by_person(outcomes, "default"), _by_person(outcomes, mode)
    pairs = [  # a mode that has run on the first half alone is compared on that
        (np.array(found["errors"][method]), np.array(theirs[person]["errors"][rival])[: len(found["errors"][method])])
        for person, found in ours.items()
        if person in theirs
    ]
    if not pairs:
        return []
    people = float(sum(mine.mean() < other.mean() for mine, other in pairs))
    images = np.concatenate([mine < other for mine, other in pairs])
    claimed = float(printed.FACES_PEOPLE_WON) if rival == "PPCA" and len(pairs) == len(_PEOPLE) else None
    best = f"{method} over {rival}"
    return [
        Record("faces", "all", mode, best, "people_won", people, None, claimed, None, len(pairs)),
        Record("faces", "all", mode, best, "images_won", float(images.mean()), None, None, None, len(images)),
    ]


def _by_person(outcomes: Sequence[Outcome], mode: str) -> dict[int, dict[str, Any]]:
    """Results of each person, the test images of both halves and of all repetitions put together."""
    return {
        person: _joined(found)
        for person in _PEOPLE
        if (found := results(_in_order(outcomes), person=person, mode=mode))
    }


def _in_order(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The first repetition first, and in each the first half."""
    place = lambda arguments: (arguments.get("repetition", 0), arguments.get("fold", 0))
    return sorted(outcomes, key=lambda outcome: place(outcome.task.arguments))


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One result of several: errors one after the other, numbers averaged, the picture of the first."""
    mean = lambda values: float(np.mean(list(values)))
    return parts[0] | {
        "errors": {name: [e for part in parts for e in part["errors"][name]] for name in parts[0]["errors"]},
        "seconds": {name: mean(part["seconds"][name] for part in parts) for name in parts[0]["seconds"]},
        **{name: mean(part[name] for part in parts) for name in _FIT_NUMBERS},
    }


def _images_won(outcomes: Sequence[Outcome]) -> list[str]:
    """The share of test images on which Cauchy PPCA beats PPCA, in each repetition."""
    shares = []
    for repetition in range(_REPETITIONS):
        chosen = [o for o in outcomes if o.task.arguments.get("repetition", 0) == repetition]
        won = [r for r in _victories(chosen, "default", _OURS["default"], "PPCA") if r.metric == "images_won"]
        shares.extend(f"{100.0 * record.value:.2f} %" for record in won)
    return shares


def _sections(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Section]:
    found = _by_person(outcomes, "default")
    if not found:
        return []
    size = " × ".join(map(str, next(iter(found.values()))["size"]))
    parts: list[Any] = [
        f"Extended Yale B at {size} pixels. Half of each person's images train, drawn by seed, and the other half test; in "
        "a full run the halves then change places, so that every image is tested once, and all is repeated with "
        f"{_REPETITIONS - 1} other seeds for splits and corruption. A third of the pixels of every image is replaced "
        f"by integers uniform on 0 to 255; q = {denoisers.COMPONENTS}. The error is ‖original − "
        "reconstruction‖² / ‖original‖² of the uncorrupted test image, averaged over a person's test images. Means are "
        "dominated by images that are almost black, of which the database has 71 below a mean grey value of 10; the medians "
        "are in results.csv.",
        _victory_table(records),
        "The share of images on which Cauchy PPCA beats PPCA, by seed: " + ", ".join(_images_won(outcomes)) + ".",
        f"Clipping holds every pixel within {denoisers.CLIP} standard deviations, by the median absolute deviation, of its median "
        "over the training images. The median filter is of another kind: it knows that neighbouring pixels are alike, which no "
        "method of the paper is told; it also needs no training.",
        _people_table(records),
        "The paper prints the errors of four images: "
        + "; ".join(f"corrupted {c}, PPCA {p}, Cauchy PPCA {r}" for c, p, r in printed.FACES_FIGURE)
        + ". It names neither people nor S; in paper mode there are "
        f"{denoisers.PAPER_DRAWS} iid draws and {_PAPER_ROUNDS} rounds of Algorithm 1 (one in a quick run), from the same start. It "
        "has run with the first half for training alone: its means are over other images than those beside them, and much "
        "lower where an almost black image is in the half that it was not tested on.",
        picture_grid({person: result for person, result in list(found.items())[:4]}, ("PPCA", _OURS["default"])),
    ]
    return [("Faces (Sec. 3.5)", parts)]


def _victory_table(records: Sequence[Record]) -> Markup:
    rows = []
    for (_, mode, method), cell in by_method(record for record in records if record.dataset == "all").items():
        people, images = cell["people_won"], cell["images_won"]
        rows.append((mode, method, f"{people.value:.0f} of {people.repetitions}"))
        rows[-1] += (f"{100.0 * images.value:.2f} %", images.repetitions)
    return table(["mode", "better", "people", "test images", "of"], rows)


def _people_table(records: Sequence[Record]) -> Markup:
    of = {(r.dataset, r.method, r.metric): r for r in records}
    methods = ["corrupted", *_OTHERS, *_OURS.values()]
    rows = []
    for dataset in dict.fromkeys(r.dataset for r in records if r.dataset != "all"):
        errors = [shown(of.get((dataset, method, "error")), 3).split(" ")[0] for method in methods]
        seconds = [shown(of.get((dataset, method, "fit_seconds")), 1) for method in _OURS.values()]
        rows.append((dataset, *errors, *seconds))
    columns = ["person", *methods, "fit, s", "fit as in the paper, s"]
    return table(columns, rows, "Mean error over the test images")


faces = Experiment("faces", "Faces", _tasks, _records, _sections)
