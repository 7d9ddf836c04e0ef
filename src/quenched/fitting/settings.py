"""What a fit was asked for, read once and then fixed."""

import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.families import Family
from quenched.fitting.method import Method


@dataclass(frozen=True, eq=False)
class Settings:
    """What a fit was asked for.

    Attributes
    ----------
    draws
        The first set.
    max_draws
        Where their growth ends.
    most_draws
        Where it ends for those that follow their draws instead of the target; no fewer.
    n_check
        Check draws; None for as many as it takes to judge.
    """

    family: Family
    method: Method
    draws: Any  # `Draws`, or `TermDraws` for a sum of terms
    seed: int
    tolerance: float
    max_draws: int
    most_draws: int
    starts: int = 1
    n_check: int | None = None
    checkpoint: Path | None = None
    called: str | None = None  # the method, if not by its own name

    def describe(self) -> dict[str, Any]:
        """What the result remembers of how it was made."""
        return {
            "draws": self.draws.kind,
            "draws_seed": self.draws.seed,
            "groups": None if self.draws.groups is None else [list(group) for group in self.draws.groups],
            "seed": self.seed,
            "family": self.family.name,
            "method": self.called or self.method.name,
            "tolerance": self.tolerance,
            "check": self.n_check,
            "versions": dict(_versions()),
        }


@cache
def _versions() -> dict[str, str]:
    """Found once: reading them takes as long as many evaluations of a small bound."""
    return {
        "quenched": version("quenched"),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
    }
