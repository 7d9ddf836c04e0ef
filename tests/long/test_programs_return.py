"""Programs that call LAPACK return, every time: each kind a hundred times, in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from matrices import FACTORISED

TIMEOUT = 900  # seconds: far more than is needed, and less than for ever


def in_a_process_of_its_own(name, *arguments):
    """Run one of the scripts; a hang is an error."""
    tests = Path(__file__).parents[1]
    code = f"import sys; sys.path[:0] = [{str(tests)!r}, {str(tests / 'execute')!r}]; import scripts; scripts.{name}"
    command = [sys.executable, "-c", f"{code}({', '.join(map(repr, arguments))})"]
    done = subprocess.run(command, timeout=TIMEOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_hundred_calls_of_every_kind_return():
    assert in_a_process_of_its_own("evaluate_often", 100) == ["returned"] * len(FACTORISED)


@pytest.mark.parametrize("name", ["solve", "inverse", "eigenvalues", "singular values"])
def test_fits_return(name):
    assert in_a_process_of_its_own("fit_and_diagnose", name, 30) == ["converged"]


def test_many_fits_return():
    assert in_a_process_of_its_own("fit_many", "solve", 30) == ["True"]


@pytest.mark.parametrize("name", ["solve", "inverse"])
def test_fits_of_terms_return(name):
    assert in_a_process_of_its_own("fit_terms", name, 30) == ["converged"]


def test_derived_quantities_and_nested_fits_return():
    assert in_a_process_of_its_own("derived_and_nested", "solve", 8) == ["True", "converged"]
