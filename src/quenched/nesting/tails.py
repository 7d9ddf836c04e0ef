"""Which outer coordinates have long tails, by the slope of their log density far out.

Where a Gaussian has the slope k / s at k standard deviations s, an exponential tail has one that does not grow. In coordinates
in which such a tail is a Gaussian's, the outer family can follow it.
"""

from dataclasses import replace

import numpy as np

from quenched.nesting.outer import Outer
from quenched.posterior import Posterior

_FAR = 6.0  # standard deviations
_LONG, _LONGEST = 0.3, 3.0  # tails that are lengthened, and by how much at the most


def with_tails(problem: Outer, posterior: Posterior) -> Outer:
    """The same problem, its long tails shortened; `posterior` is a Gaussian of its outer coordinates."""
    centre, unit = np.asarray(posterior.mean), np.sqrt(np.asarray(posterior.variance()))
    n = len(centre)
    steps = _FAR * np.concatenate([-np.diag(unit), np.diag(unit)])
    found = problem.solved(centre + steps)
    outwards = np.concatenate([np.full(n, 1.0), np.full(n, -1.0)])
    fall = outwards * found.gradient[np.arange(2 * n), np.tile(np.arange(n), 2)] * np.tile(unit, 2)
    with np.errstate(divide="ignore"):
        length = np.where((found.error <= 1e-4) & (fall > 0.0), 1.0 / fall - 1.0 / _FAR, 0.0)
    length = np.where(length > _LONG, np.minimum(length, _LONGEST), 0.0)
    return replace(problem, tails=np.stack([centre, unit, length[:n], length[n:]]))
