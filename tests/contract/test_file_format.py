"""The page that specifies the format of files names every entry of an archive and every key of its text."""

import dataclasses
import json
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from quenched.projected import Collapsed

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")


def poisson(w, data=None):
    return jnp.sum(w - jnp.exp(w)) - (0.0 if data is None else 0.5 * jnp.sum(w**2) * data)


def one():
    return problems.fitted("poisson")


def many():
    """With what was seen further out."""
    return qd.fit_many(poisson, np.zeros(2), np.ones(3), draws=16, check=640, progress=False)


def collapsed():
    fit = one()
    rows = np.zeros((4, fit.posterior.dim))
    return dataclasses.replace(fit, collapsed=Collapsed(np.zeros(8), *rows, n_outer=1))


def with_hyper():
    return qd.fit(qd.with_gaussian_prior(poisson), np.zeros(2), draws=16, check=64, progress=False)


@pytest.mark.parametrize("fit", [one, many, collapsed, with_hyper])
def test_every_entry_and_key_is_specified(fit, tmp_path):
    with np.load(fit().save(tmp_path / "fit.npz")) as archive:
        entries, text = archive.files, json.loads(str(archive["fit.json"]))
    named = set(re.findall(r"`([^`]+)`", PAGE))
    assert {re.sub(r"\.\d+$", ".0", entry) for entry in entries} <= named
    assert set(text) <= named
    assert set(text.get("further") or {}) <= named
    assert f"## Format {text['format']}" in PAGE
