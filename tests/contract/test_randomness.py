"""Random numbers come from `quenched.draws` alone: from a seed, a purpose and the library's own key."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import quenched

SOURCE = Path(quenched.__file__).parent
ELSEWHERE = ("draws", "paper")  # the paper's data splits are fixed by the seeds it was run with
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in ELSEWHERE)


def uses_of_numpy_random(tree):
    """Names that NumPy, JAX or the standard library make random numbers by; `Generator` is only a type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random", "jax.random"):
            if node.attr != "Generator":
                yield ast.unparse(node)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[-1] in ("random", "secrets"))
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (name for name in modules if name.split(".")[-1] in ("random", "secrets"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_random_numbers_come_from_one_place(path):
    assert not list(uses_of_numpy_random(ast.parse(path.read_text())))


@pytest.mark.parametrize(
    ("code", "n"),
    [
        ("np.random.default_rng(0)", 1),
        ("make = numpy.random.default_rng", 1),
        ("from numpy.random import default_rng", 1),
        ("from numpy import random", 1),
        ("import random", 1),
        ("jax.random.normal(key)", 1),
        ("def simulate(random: np.random.Generator): return random.standard_normal(3)", 0),
        ("from sklearn.utils import check_random_state", 0),
    ],
)
def test_the_search_finds_what_it_should(code, n):
    assert len(list(uses_of_numpy_random(ast.parse(code)))) == n


PRINTS_A_FIT = """
import hashlib

import jax.numpy as jnp
import numpy as np

import quenched as qd

start = {name: np.zeros(2) for name in ("gamma", "alpha", "beta", "delta")}
names = {"gamma", "alpha", "beta", "delta"}  # a set, whose order the hash seed decides
log_density = lambda p: sum(jnp.sum(p[name] - jnp.exp(p[name])) for name in sorted(names))
fit = qd.fit(log_density, start, progress=False)
numbers = [fit.bound, fit.check_bound, *fit.mean.values(), *fit.sd.values(), fit.covariance, fit.log_ratios]
print(hashlib.sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in numbers)).hexdigest())
"""


def test_other_processes_and_hash_seeds_give_the_same_bits():
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PRINTS_A_FIT], env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE
        )
        for seed in ("1", "2")
    ]
    first, second = (process.communicate()[0].decode().strip() for process in running)
    assert len(first) == 64
    assert first == second
