"""What a method is to the protocol, and what it answers with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Answer:
    """A posterior on the real line.

    A Gaussian by its mean and lower-triangular scale; a posterior that is none (`transform`, `log_density`) or that is known by
    its samples only has the mean and scale of these, and is judged as the Gaussian that they make.
    """

    mean: np.ndarray
    scale: np.ndarray
    samples: np.ndarray | None = None  # of methods that have nothing else
    transform: Callable[[np.ndarray], np.ndarray] | None = None
    log_density: Callable[[np.ndarray], np.ndarray] | None = None
    says: str = ""  # what the method says of its own answer
    own_gradients: int | None = None  # by its own count

    @staticmethod
    def of_samples(samples: Any, says: str = "") -> "Answer":
        points = np.asarray(samples, np.float64)
        covariance = np.atleast_2d(np.cov(points.T))
        return Answer(points.mean(axis=0), np.linalg.cholesky(covariance), samples=points, says=says)

    @staticmethod
    def gaussian(mean: Any, covariance: Any, says: str = "") -> "Answer":
        return Answer(np.asarray(mean, np.float64), np.linalg.cholesky(np.asarray(covariance, np.float64)), says=says)

    @property
    def kind(self) -> str:
        if self.samples is not None:
            return "samples"
        return "Gaussian" if self.transform is None else "warped"


class NotApplicable(Exception):
    """A method that cannot be given this problem, and why."""


@dataclass(frozen=True)
class Method:
    """`load` imports what it needs, and is timed apart; what it gives makes a run of a problem: run(seed) -> Answer."""

    load: Callable[[], Callable[..., Callable[[int], Answer]]]
    packages: tuple[str, ...]  # whose versions are noted
    settings: str  # in words
