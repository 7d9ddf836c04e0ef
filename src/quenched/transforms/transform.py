"""Maps between a constrained parameter and the real line, with their log-Jacobian.

`to_natural` takes a point of the real line to natural units, `to_real` goes back, and `log_jacobian` is
log |d natural / d real| at a point of the real line: what must be added to a log density written in natural units so
that it is a density on the real line.
"""

from abc import abstractmethod
from typing import ClassVar

import jax.numpy as jnp

from quenched.arrays import Array
from quenched.frozen import Frozen


class Transform(Frozen):
    """One constraint. A simplex has one coordinate less on the real line: see `real_shape`.

    `axes` is the number of last axes whose entries depend on each other. With none, every number goes its own way, and
    increases with its coordinate on the real line.
    """

    axes: ClassVar[int] = 0

    @abstractmethod
    def to_natural(self, real: Array) -> Array:
        """From the real line to natural units."""

    def entries_to_natural(self, real: Array, natural_shape: tuple[int, ...], index: Array) -> Array:
        """Natural units of some entries along the first axis of a parameter of this shape, from their coordinates."""
        return self.to_natural(real)

    @abstractmethod
    def to_real(self, natural: Array) -> Array:
        """From natural units to the real line; NaN or infinite outside the support."""

    @abstractmethod
    def log_jacobian(self, real: Array) -> Array:
        """Log of the volume element, a scalar."""

    def real_shape(self, natural_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape on the real line of a parameter of this shape in natural units."""
        return natural_shape

    @abstractmethod
    def describe(self) -> str:
        """The support in words, for messages: what a valid value looks like."""


class Real(Transform):
    """No constraint.

    Examples
    --------
    >>> qd.fit(lambda w: -0.5 * w**2, 0.5, transforms=qd.real).space.leaves[0].transform == qd.real
    True
    """

    def to_natural(self, real):
        return real

    def to_real(self, natural):
        return natural

    def log_jacobian(self, real):
        return jnp.zeros((), real.dtype)

    def describe(self):
        return "a real number"


real = Real()
