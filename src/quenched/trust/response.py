"""How much wider the target is than the best Gaussian, where the spread of many parameters changes along one: a funnel.

Weights see a funnel's neck only where draws enter it, and of twenty parameters none does: k-hat is good, few weights are large, and yet
an sd is half of what it should be. What draws in bulk do see is that curvature changes along a parameter. With the third derivatives
T = E ∂³ log p of the target on the scale on which q is a standard normal, which Stein's identity takes from the log ratios r at draws z
(T_ijk is the mean of r times the third Hermite polynomial), the linear response of the best Gaussian to a push along i is wider than
q's own variance by 1 / (1 − Π_i), Π_i = ½ Σ_jk T_ijk²; of a funnel x_j ~ N(0, exp(c v)), v ~ N(0, 1), that is exact.

Σ_jk T_ijk² is known from pairs of different draws without the noise of its d² terms adding up, and Π_i is no larger than the
variance of r, so that there is nothing to look for where weights are even. What noise is left grows with the number of parameters, and
falls with that of the draws.
"""

from typing import NamedTuple

import numpy as np

from quenched.threads import quiet_blas
from quenched.trust.departures import SD_DRIFT, clearly

_EACH = 160  # draws for every parameter, so that noise does not hide a response
_MOST_DRAWS = 7680
_PRODUCTS = 2**20  # of two coordinates, at a time
_LEAST = 1.0 - (1.0 + SD_DRIFT) ** -2  # of Π, and of the variance of r, where an sd may be off by what matters
_MOST = 0.95  # of Π, beyond which the first order says no more than that it is far
# Parameters: of fewer draws further out enter every neck, and say more than a first order; of more noise is all that draws tell.
_FEWEST_RESPONDING, MOST_RESPONDING = 6, 100


class Response(NamedTuple):
    """The parameter of which the posterior is too narrow, on the real line.

    Examples
    --------
    >>> funnel = lambda p: -0.5 * p["v"] ** 2 - 0.5 * jnp.sum(p["x"] ** 2 * jnp.exp(-0.6 * p["v"]) + 0.6 * p["v"])
    >>> found = qd.fit(funnel, {"v": 0.0, "x": np.zeros(10)}).response
    >>> found.name, found.ratio > 1.2  # the sd of v is 1, that of the best Gaussian 0.6
    ('v', True)
    """

    name: str
    ratio: float  # of the target's standard deviation and the posterior's, by no more than is clear
    largest: float  # the same of any parameter, as it was found


def draws_wanted(dim: int, log_ratios: np.ndarray) -> int:
    """Check draws by which the response of so many parameters is known; none where there can be no response."""
    return min(_EACH * dim, _MOST_DRAWS) if _may_respond(dim, log_ratios) else 0


def _may_respond(dim: int, log_ratios: np.ndarray) -> bool:
    known = log_ratios[np.isfinite(log_ratios)]
    return _FEWEST_RESPONDING <= dim <= MOST_RESPONDING and len(known) > 1 and bool(np.var(known) > _LEAST)


def widest(names: list[str], axes: np.ndarray, draws: np.ndarray, log_ratios: np.ndarray) -> Response | None:
    """The parameter along which the target is clearly wider than the posterior; None where it can be along none."""
    if not _may_respond(len(names), log_ratios):
        return None
    with quiet_blas(False):
        cubic, error = response(axes, draws, log_ratios)
    clear = np.clip(cubic - 0.5 * clearly(len(names)) * error, 0.0, _MOST)
    worst = int(np.argmax(clear))
    largest = min(float(np.max(cubic)), _MOST)
    return Response(names[worst], _ratio(float(clear[worst])), _ratio(max(largest, 0.0)))


def _ratio(cubic: float) -> float:
    return float(1.0 / np.sqrt(1.0 - cubic))


def response(axes: np.ndarray, draws: np.ndarray, log_ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Π of every parameter, and its standard error, by log ratios at draws of a standard normal.

    Rows of axes are the parameters' directions there, of length one.
    """
    inside = np.isfinite(log_ratios)
    z, n, dim = draws[inside], int(inside.sum()), draws.shape[1]
    known = np.column_stack([np.ones(n), z])
    fitted, *_ = np.linalg.lstsq(known, log_ratios[inside], rcond=None)
    r = log_ratios[inside] - known @ fitted  # so that the lower terms of the polynomials drop out
    along, size = z @ axes.T, np.sum(z**2, axis=1)
    pushed = r[:, None] * along
    total = _squares(z, pushed)
    square = r**2  # of every draw with itself: Σ_jk of the squared Hermite polynomials
    itself = (square * (size**2 - 6.0 * size + 6.0 + dim)) @ along**2 + 2.0 * square @ size
    cubic = 0.5 * (total - itself) / (n * (n - 1.0))
    noise = np.maximum(itself, 0.0) / n**2
    error = noise / dim + 2.0 * np.sqrt(np.maximum(cubic, 0.0) * noise) / dim
    return cubic, error


def _squares(z: np.ndarray, pushed: np.ndarray) -> np.ndarray:
    """Σ_jk (Σ_n p_n z_nj z_nk)² of every column p: each pair of coordinates is multiplied once for all columns."""
    rows, columns = np.tril_indices(z.shape[1])
    sums, step = np.zeros((len(rows), pushed.shape[1])), max(1, _PRODUCTS // len(rows))
    for first in range(0, len(z), step):
        some = z[first : first + step]
        sums += (some[:, rows] * some[:, columns]).T @ pushed[first : first + step]
    return np.where(rows == columns, 1.0, 2.0) @ sums**2
