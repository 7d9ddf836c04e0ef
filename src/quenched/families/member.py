"""What every posterior can do, whatever its family: a smooth one-to-one map of standard-normal draws.

The fit optimises in whitened coordinates: it holds a member that is roughly right and moves it by another, of the same
family, whose numbers begin at zero. Zero stands for the identity map.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import small_program
from quenched.frozen import Tree

LOG_TWO_PI = float(np.log(2.0 * np.pi))

Groups = tuple[tuple[int, ...], ...] | None  # disjoint sets of coordinates; None for one set of all


class Member(Tree):
    """A posterior q with numbers, on the real line: the density of `transform(z)` for standard-normal z.

    `scale` is the lower-triangular factor of the covariance. Whether `transform` is affine, and so known by mean and
    scale alone, `affine` says. Every array is declared with its role (see `roles`); what else a member holds is static,
    and made of tuples, numbers and words, so that it can be written to a file.
    """

    affine: ClassVar[bool]
    on_host: ClassVar[bool] = False  # works in NumPy, and cannot be traced
    in_numpy: ClassVar[bool] = False  # works in NumPy as well, so that what is asked of it need not be compiled
    if TYPE_CHECKING:
        mean: Array

    @property
    def dim(self) -> int:
        return self.mean.shape[-1]

    @property
    @abstractmethod
    def groups(self) -> Groups:
        """The sets of coordinates whose correlations among themselves it keeps; None if it keeps all."""

    @property
    @abstractmethod
    def family(self) -> Any:
        """The family that it is a member of."""

    @abstractmethod
    def transform(self, draws: Array) -> Array:
        """The point w of every draw z."""

    @abstractmethod
    def standardise(self, points: Array) -> Array:
        """The draws z behind the points w: the inverse of `transform`."""

    @abstractmethod
    def log_slope(self, draws: Array) -> Array:
        """log |det dw/dz| at every draw."""

    def moved(self, inner: Self) -> Self:
        """The member at the whitened coordinates `inner` around this one, if its maps form a group."""
        raise NotImplementedError(f"{type(self).__name__} has no whitened coordinates: it is raised by Newton steps.")

    @abstractmethod
    def shifted(self, shift: Array) -> Self:
        """The member with its mean moved by a vector."""

    @abstractmethod
    def log_determinant(self) -> Array:
        """The mean of `log_slope` over all standard-normal draws; for a Gaussian, log |det scale|."""

    @abstractmethod
    def variance(self) -> Array:
        """Diagonal of the covariance."""

    def margins(self, heights: np.ndarray) -> np.ndarray | None:
        """Each coordinate alone, where a standard normal has these heights; None where only draws can tell."""
        return self.mean + heights[:, None] * np.sqrt(self.variance()) if self.affine else None  # pyright: ignore

    @property
    @abstractmethod
    def scale(self) -> Array:
        """A dense matrix L with covariance L Lᵀ."""

    @property
    def covariance(self) -> Array:
        """L Lᵀ, dense."""
        return self.scale @ self.scale.T

    def covariance_times(self, vectors: Array) -> Array:
        """The covariance times the columns of (dim, n)."""
        return self.scale @ (self.scale.T @ vectors)

    def entropy(self) -> Array:
        return 0.5 * self.dim * (LOG_TWO_PI + 1.0) + self.log_determinant()

    def log_density(self, points: Array) -> Array:
        """log q at every row."""
        draws = self.standardise(points)
        return -0.5 * (draws**2).sum(axis=-1) - 0.5 * self.dim * LOG_TWO_PI - self.log_slope(draws)

    def second_moment(self) -> Array:
        """E wᵀw = mean·mean + tr(covariance): what an isotropic prior needs to know."""
        return self.mean @ self.mean + jnp.sum(self.variance())

    def kl_to_isotropic(self, precision: Array) -> Array:
        """KL(q ‖ N(0, I / precision)): Eq. (10) of the paper."""
        quadratic = precision * self.second_moment() - self.dim
        return 0.5 * (quadratic - self.dim * jnp.log(precision)) - self.log_determinant()

    def kl_to_gaussian(self, mean: Array, precision: Array, log_determinant: Array | None = None) -> Array:
        """KL(q ‖ N(mean, precision⁻¹)) for a dense prior precision, whose log-determinant may be known."""
        away = self.mean - mean
        quadratic = jnp.sum((precision @ self.scale) * self.scale) + away @ precision @ away - self.dim
        log_determinant = jnp.linalg.slogdet(precision)[1] if log_determinant is None else log_determinant
        return 0.5 * (quadratic - log_determinant) - self.log_determinant()


def ask(member: Member, name: str, *inputs: Array) -> Array:
    """A property or method of a member: in NumPy, or as one program, since each of its operations would be compiled for itself."""
    given = isinstance(member.mean, np.ndarray) and all(isinstance(one, np.ndarray) for one in inputs)
    return (_answer if member.on_host or (member.in_numpy and given) else _program)(member, name, *inputs)


def _answer(member: Member, name: str, *inputs: Array) -> Array:
    answer = getattr(member, name)
    return answer(*inputs) if callable(answer) else answer


_program = small_program(_answer, static_argnums=1)
