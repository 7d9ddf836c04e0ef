"""The fitted posterior on the real line, in NumPy.

Everything here is computed in double precision, whatever JAX is set to where it is asked for.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.draws import Purpose, generator
from quenched.families import Member, ask
from quenched.numbers import real_array, whole_number
from quenched.precision import in_double
from quenched.text import did_you_mean, shown
from quenched.transforms import Space

_MOST_NUMBERS = 2**40  # of samples: more fit into no machine
_MOST_HELD = 2**24  # of samples that are looked at and let go: 128 MB
_MOST_WRITTEN = 2**28  # of coefficients of linear functions: 2 GB, of which several are held at once


class Posterior:
    """The fitted posterior, a Gaussian or a warped one, over the raveled parameters on the real line, in NumPy.

    Examples
    --------
    >>> posterior = qd.fit(lambda p: -0.5 * p["sigma"] ** 2, {"sigma": 1.0}, transforms={"sigma": qd.positive}).posterior
    >>> posterior.sample(1000).shape, posterior.log_density(posterior.mean).shape  # of log(sigma)
    ((1000, 1), ())
    >>> posterior.marginal("sigma").mean.shape
    (1,)
    """

    def __init__(self, member: Member, space: Space | None = None):
        self.space = space  # names its coordinates, where it is known
        self.member = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), member)

    def __repr__(self) -> str:
        return f"{type(self.member).__name__}(dim={self.dim})"

    @property
    def dim(self) -> int:
        """Coordinates on the real line."""
        return self.member.dim

    @cached_property
    def mean(self) -> np.ndarray:
        """m: also of a warped posterior, whose terms have mean zero."""
        with in_double():  # a field needs no program, but some families put theirs together
            return np.asarray(self.member.mean)

    @cached_property
    def scale(self) -> np.ndarray:
        """L, lower triangular, with covariance L Lᵀ; of a warped posterior, the factor of its own covariance."""
        return self._ask("scale")

    @cached_property
    def covariance(self) -> np.ndarray:
        """L Lᵀ, dense."""
        return self._ask("covariance")

    def variance(self) -> np.ndarray:
        """Diagonal of the covariance, without forming it."""
        return self._variance

    @cached_property
    def _variance(self) -> np.ndarray:
        return self._ask("variance")

    def entropy(self) -> float:
        """In nats."""
        return float(self._ask("entropy"))

    def log_density(self, w: Any) -> np.ndarray:
        """log q at one point (dim,) or at every row of (n, dim)."""
        points = real_array("w", w)
        if points.shape[-1:] != (self.dim,) or points.ndim > 2:
            raise ValueError(f"w has shape {points.shape}; give ({self.dim},) or (n, {self.dim}).")
        return self._ask("log_density", np.atleast_2d(points)).reshape(points.shape[:-1])

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """Independent samples on the real line, (n, dim)."""
        n = whole_number("n", n, 1, _MOST_NUMBERS // self.dim)
        return self.transform(generator(seed, Purpose.SAMPLES).standard_normal((n, self.dim)))

    def samples_in_turn(self, n: int, seed: int = 0) -> Iterator[np.ndarray]:
        """The samples that `sample` gives, only as many at a time as are no burden to hold."""
        random, together = generator(seed, Purpose.SAMPLES), max(1, _MOST_HELD // self.dim)
        for first in range(0, n, together):
            yield self.transform(random.standard_normal((min(together, n - first), self.dim)))

    def transform(self, draws: np.ndarray) -> np.ndarray:
        """The point of every row z: mean + scale z, or its warped image."""
        points = real_array("draws", draws)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"draws has shape {points.shape}; give (n, {self.dim}).")
        return self._ask("transform", points)

    def of(self, linear: Any) -> "Marginal":
        """Means and covariance of linear functions of the parameters on the real line.

        Parameters
        ----------
        linear
            Their coefficients, (functions, dim) or (dim,): an array, or a scipy.sparse matrix.
        """
        matrix = real_array("linear", linear.toarray() if callable(getattr(linear, "toarray", None)) else linear)
        if matrix.ndim not in (1, 2) or matrix.shape[-1] != self.dim:
            raise ValueError(f"linear has shape {matrix.shape}; give ({self.dim},) or (functions, {self.dim}).")
        covariance = np.atleast_2d(matrix) @ self._ask("covariance_times", np.atleast_2d(matrix).T)
        covariance = 0.5 * (covariance + covariance.T)
        return Marginal(matrix @ self.mean, covariance if matrix.ndim == 2 else covariance[0, 0])

    def places(self, names: Any) -> np.ndarray:
        """Where parameters stand in the raveled vector, by their names (see `marginal`)."""
        try:
            asked = [names] if isinstance(names, (str, int, np.integer)) else list(names)
        except Exception as error:  # of whatever it is, when it is looked through
            raise ValueError(f"names={shown(names)}: give one name or place, or several.") from error
        words = [name for name in asked if isinstance(name, str)]
        if words and self.space is None:
            raise ValueError(f"names={shown(names)}: this posterior does not know its parameters by name; give places.")
        known = _places_by_name(self.space, words) if self.space is not None else {}
        parts = [known[name] if isinstance(name, str) else _as_place(name) for name in asked]
        places = np.concatenate(parts) if parts else np.zeros(0)
        if places.dtype.kind not in "iu" or not 0 <= places.min() <= places.max() < self.dim:
            raise ValueError(f"names={shown(names)}: places are whole numbers from 0 to {self.dim - 1}.")
        return places

    def marginal(self, names: Any) -> "Marginal":
        """Mean and covariance of some parameters on the real line.

        Parameters
        ----------
        names
            One or several: of leaves (`"beta"`, all its numbers) and of single numbers (`"student[3]"`), or their places
            in the raveled vector.
        """
        places = self.places(names)
        if len(places) > _MOST_WRITTEN // self.dim:
            raise ValueError(
                f"names={shown(names)}: the covariance of {len(places)} numbers among {self.dim} is too large to be written out; ask "
                "for fewer, or for posterior.variance()."
            )
        units = np.zeros((len(places), self.dim))
        units[np.arange(len(places)), places] = 1.0
        return self.of(units)

    def _ask(self, name: str, *inputs: np.ndarray) -> np.ndarray:
        with in_double():
            return np.asarray(ask(self.member, name, *inputs))


def _as_place(value: Any) -> np.ndarray:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and abs(value) < 2**62
    return np.array([int(value)]) if whole else np.zeros(1)  # refused by whoever asks


class Marginal(NamedTuple):
    """Mean and covariance of some numbers on the real line."""

    mean: Any
    covariance: Any

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations."""
        return np.sqrt(np.diag(self.covariance) if np.ndim(self.covariance) else self.covariance)


def _places_by_name(space: Space, names: list[str]) -> dict[str, np.ndarray]:
    begins = np.cumsum([0, *space.sizes])
    leaves = {leaf.name: np.arange(begins[i], begins[i + 1]) for i, leaf in enumerate(space.leaves)}
    missing = [name for name in names if name not in leaves]
    single = {name: place for place, name in enumerate(space.coordinate_names())} if missing else {}
    for name in missing:
        if name not in single:
            hint = did_you_mean(name, [*leaves, *single])
            raise ValueError(f"names: there is no parameter {name!r}; there are {', '.join(map(repr, leaves))}{hint}")
        leaves[name] = np.array([single[name]])
    return leaves
