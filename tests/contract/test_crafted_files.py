"""Files that someone has made up: valid archives, with something in them that cannot be."""

import copy
import json
import os
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = problems.fitted("poisson").save(tmp_path_factory.mktemp("saved") / "fit.npz")
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(str(arrays.pop("fit.json"))), arrays


def changed(text, *path_and_value):
    text, (*path, last, value) = copy.deepcopy(text), path_and_value
    inner = text
    for key in path:
        inner = inner[key]
    inner[last] = value
    return text


TEXTS = {
    "no settings": ("settings", {}),
    "settings of another type": ("settings", []),
    "draws of no kind": ("settings", "draws", "../../etc"),
    "a seed that is none": ("settings", "seed", "0"),
    "groups": ("settings", "groups", [["a"]]),
    "a family that moves the cursor": ("settings", "family", "full\x1b[2J"),
    "a tolerance": ("settings", "tolerance", None),
    "a bound that is text": ("numbers", "bound", "1.0"),
    "a bound that is an object to NumPy": ("numbers", "bound", 10**30),
    "a count that is none": ("numbers", "n_draws", -3),
    "a count that is no number": ("numbers", "n_draws", True),
    "a message": ("message", 3),
    "remarks": ("remarks", "text"),
    "a status": ("status", "excellent"),
    "rounds": ("history", [[1, 2]]),
    "optima": ("optima", [["a", [1.0], 2]]),
    "leaves": ("leaves", 0, "shape", [-1]),
    "leaves of text": ("leaves", 0, "shape", ["2"]),
    "huge leaves": ("leaves", 0, "shape", [10**12, 10**12]),
    "no leaves": ("leaves", []),
    "a transform": ("leaves", 0, "transform", {"kind": "eval"}),
    "a tree": ("structure", {"object": 1}),
    "a tree without end": ("structure", {"list": [{"leaf": 0}] * 3}),
    "a class": ("structure", {"named": "os:system", "fields": [["__class__", {"leaf": 0}]]}),
    "hyper": ("hyper", {"leaf": "nowhere.0"}),
    "a posterior": ("posterior", "kind", "Exploit"),
    "fields": ("posterior", "fields", {}),
    "a format that is no number": ("format", "five"),
    "a format that is a list": ("format", []),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_cannot_be(name, content, tmp_path):
    text, arrays = content
    path = tmp_path / "fit.npz"
    np.savez(path, **{"fit.json": np.array(json.dumps(changed(text, *TEXTS[name])))}, **arrays)
    with pytest.raises(ValueError, match=r"fit.npz': (is not a saved fit, or is damaged|has format)"):
        qd.load(path)


@pytest.mark.parametrize("name", ["n_draws", "n_evaluations", "n_objective_evaluations", "rounds"])
@pytest.mark.parametrize("value", [np.inf, -1.0])
def test_counts_of_many_fits_that_cannot_be(name, value, many, tmp_path):
    path = tmp_path / "fits.npz"
    np.savez(path, **{**many, f"fits.{name}": np.full_like(many[f"fits.{name}"], value, float)})
    with pytest.raises(ValueError, match="is not a saved fit, or is damaged"):
        qd.load(path)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    log_density = lambda w, data: -0.5 * jnp.sum((w - data) ** 2)
    fits = qd.fit_many(log_density, np.zeros(2), np.ones((3, 2)), draws=8, check=64, progress=False)
    with np.load(fits.save(tmp_path_factory.mktemp("saved") / "fits.npz")) as archive:
        return {name: archive[name] for name in archive.files}


PLACES = {
    "text": ("places", 0, 0, 0, "x"),
    "nothing": ("places", 0, 0, 0, None),
    "yes": ("places", 0, 0, 0, True),
    "more than there are": ("places", 0, 0, 0, 10**9),
    "twice the same": ("places", 0, 0, 0, 1),
    "a mapping": ("places", 0, {"a": 1}),
    "none": ("places", []),
    "ragged": ("places", 1, 0, 1, [1]),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_of_blocks_that_cannot_be(name, tmp_path):
    start = {"a": np.zeros(2), "b": 0.0}
    log_density = lambda p: -0.5 * jnp.sum(p["a"] ** 2) - 0.5 * p["b"] ** 2
    path = qd.fit(log_density, start, family=qd.Blocks(), draws=16, check=64, progress=False).save(tmp_path / "fit.npz")
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    text = changed(json.loads(str(arrays.pop("fit.json"))), "posterior", "fields", *PLACES[name])
    np.savez(path, **{"fit.json": np.array(json.dumps(text))}, **arrays)
    with pytest.raises(ValueError, match="is not a saved fit, or is damaged"):
        qd.load(path)


ARRAYS = {
    "a mean that is not finite": lambda array: np.full_like(array, np.nan),
    "a mean that is complex": lambda array: array + 1j,
    "a mean of text": lambda array: array.astype(str),
    "a mean of another length": lambda array: np.append(array, 0.0),
    "a mean with another axis": lambda array: array[None],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_cannot_be(name, content, tmp_path):
    text, arrays = content
    path = tmp_path / "fit.npz"
    wrong = {**arrays, "posterior.0": ARRAYS[name](arrays["posterior.0"])}
    np.savez(path, **{"fit.json": np.array(json.dumps(text))}, **wrong)
    with pytest.raises(ValueError, match=r"is not a saved fit, or is damaged"):
        qd.load(path)


def test_an_archive_that_would_fill_the_memory(content, tmp_path):
    text, arrays = content
    path = tmp_path / "fit.npz"
    np.savez_compressed(path, **{"fit.json": np.array(json.dumps(text))}, **arrays, more=np.zeros(10**6))
    with pytest.raises(ValueError, match="its entries are compressed"):
        qd.load(path)


@pytest.mark.parametrize("shape", [(2,), (10**7,), (10**12,), (2**62, 2**62)])
def test_an_entry_that_is_not_as_long_as_it_says(shape, content, tmp_path):
    """A header of a few bytes may speak of terabytes."""
    text, arrays = content
    path = tmp_path / "fit.npz"
    np.savez(path, **{"fit.json": np.array(json.dumps(text))}, **arrays)
    with zipfile.ZipFile(path, "a") as archive, archive.open("more.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.write(bytes(8))
    with pytest.raises(ValueError, match=r"more.npy is not as long as it says"):
        qd.load(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="it is a folder, a pipe or a device"):
        qd.load(tmp_path / "pipe")


def test_what_a_file_says_cannot_move_the_cursor(content, tmp_path):
    text, arrays = content
    path = tmp_path / "fit.npz"
    told = changed(text, "posterior", "kind", "\x1b[2Jgone")
    np.savez(path, **{"fit.json": np.array(json.dumps(told))}, **arrays)
    with pytest.raises(ValueError, match="damaged") as raised:
        qd.load(path)
    assert "\x1b" not in str(raised.value)
    told = changed(
        changed(changed(text, "message", "\x1b[31m"), "remarks", ["\x1b]0;"]), "leaves", 0, "name", "\x1b[2J"
    )
    np.savez(path, **{"fit.json": np.array(json.dumps(told))}, **arrays)
    assert "\x1b" not in str(qd.load(path))
