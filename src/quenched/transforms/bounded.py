"""Numbers with bounds: positive, above, below, and in an interval."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.numbers import finite_number, plain_array, real_array
from quenched.text import shown
from quenched.transforms.transform import Transform

Bound = float | tuple  # a number, or an array as nested tuples: transforms are hashed


class Positive(Transform):
    """x > 0, by the exponential.

    Examples
    --------
    >>> fit = qd.fit(lambda scale: jnp.log(scale) - scale, 1.0, transforms=qd.positive)  # a Gamma(2)
    >>> bool(abs(fit.mean - 2.0) < 0.05)
    True
    """

    def to_natural(self, real):
        return jnp.exp(real)

    def to_real(self, natural):
        return jnp.log(natural)

    def log_jacobian(self, real):
        return jnp.sum(real)

    def describe(self):
        return "greater than 0"


class Above(Transform):
    """x > lower, by the exponential."""

    lower: Bound

    def __post_init__(self):
        object.__setattr__(self, "lower", _bound("above", self.lower))

    def to_natural(self, real):
        return jnp.asarray(self.lower, real.dtype) + jnp.exp(real)

    def entries_to_natural(self, real, natural_shape, index):
        return _entries(self.lower, real, natural_shape, index) + jnp.exp(real)

    def to_real(self, natural):
        return jnp.log(natural - jnp.asarray(self.lower, natural.dtype))

    def log_jacobian(self, real):
        return jnp.sum(real)

    def describe(self):
        return f"above {_shown(self.lower)}"

    def real_shape(self, natural_shape):
        return _with_bounds("above", self.lower, natural_shape)


class Below(Transform):
    """x < upper, by minus the exponential of minus the coordinate."""

    upper: Bound

    def __post_init__(self):
        object.__setattr__(self, "upper", _bound("below", self.upper))

    def to_natural(self, real):
        return jnp.asarray(self.upper, real.dtype) - jnp.exp(-real)

    def entries_to_natural(self, real, natural_shape, index):
        return _entries(self.upper, real, natural_shape, index) - jnp.exp(-real)

    def to_real(self, natural):
        return -jnp.log(jnp.asarray(self.upper, natural.dtype) - natural)

    def log_jacobian(self, real):
        return -jnp.sum(real)

    def describe(self):
        return f"below {_shown(self.upper)}"

    def real_shape(self, natural_shape):
        return _with_bounds("below", self.upper, natural_shape)


def _bound(name: str, value: Any) -> Bound:
    try:
        array = real_array(name, value)
        bad = isinstance(value, bool) or np.asarray(value).dtype.kind not in "fiu" or not array.size
    except ValueError:
        array, bad = np.zeros(0), True
    if bad:
        raise ValueError(f"{name}({shown(value)}): the bound must be a finite number, or an array of them.")
    return _as_tuples(array.tolist())


def _as_tuples(value: Any) -> Bound:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _entries(bound: Bound, real: Array, shape: tuple[int, ...], index: Array) -> Array:
    """The bounds of some entries along the first axis."""
    return jnp.broadcast_to(jnp.asarray(bound, real.dtype), shape)[index]


def _shown(bound: Bound) -> str:
    return f"{bound}" if isinstance(bound, float) else f"{np.asarray(bound)}"


def _with_bounds(name: str, bound: Bound, shape: tuple[int, ...]) -> tuple[int, ...]:
    own = np.shape(bound)
    if len(own) > len(shape) or any(a not in (1, b) for a, b in zip(own[::-1], shape[::-1], strict=False)):
        raise ValueError(f"{name}: its bounds have shape {own}, which does not fit a parameter of shape {shape}.")
    return shape


class Interval(Transform):
    """lower < x < upper, by the logistic function."""

    lower: float
    upper: float

    def __post_init__(self):
        for name in ("lower", "upper"):
            try:
                end = getattr(self, name)
                number = finite_number(name, plain_array(name, end).item() if hasattr(end, "ndim") else end)
            except Exception as error:  # of whatever it is, when it is looked at
                raise ValueError(
                    f"interval(lower={shown(self.lower)}, upper={shown(self.upper)}): both ends must be finite numbers; "
                    "for one alone there are above(lower) and below(upper)."
                ) from error
            object.__setattr__(self, name, number)
        if not -math.inf < self.lower < self.upper < math.inf:
            raise ValueError(
                f"interval({self.lower}, {self.upper}): both ends must be finite, the lower below the upper; "
                "for one alone there are above(lower) and below(upper)."
            )

    def to_natural(self, real):
        # The convex combination keeps both ends: lower + width * 1 may round to beyond upper.
        share = jax.nn.sigmoid(real)
        return self.lower * (1.0 - share) + self.upper * share

    def to_real(self, natural):
        return jnp.log(natural - self.lower) - jnp.log(self.upper - natural)

    def log_jacobian(self, real):
        width = jnp.log(jnp.asarray(self.upper - self.lower, real.dtype))
        return jnp.sum(width - jax.nn.softplus(real) - jax.nn.softplus(-real))

    def describe(self):
        return f"between {self.lower} and {self.upper}"


positive = Positive()


def interval(lower: float, upper: float) -> Interval:
    """Between `lower` and `upper`, both finite.

    Examples
    --------
    >>> fit = qd.fit(lambda share: 3.0 * jnp.log(share) + jnp.log1p(-share), 0.5, transforms=qd.interval(0.0, 1.0))
    >>> float(fit.mean.round(2))  # of a Beta(4, 2), whose mean is 0.67
    0.67
    """
    return Interval(lower, upper)


def above(lower: Any) -> Above:
    """Greater than `lower`: a number, or an array of bounds that fits the parameter.

    Examples
    --------
    >>> fit = qd.fit(lambda delay: -delay, 3.0, transforms=qd.above(2.0))  # an exponential that begins at 2
    >>> bool(fit.sample(1000).min() > 2.0)
    True
    """
    return Above(lower)


def below(upper: Any) -> Below:
    """Less than `upper`: a number, or an array of bounds that fits the parameter.

    Examples
    --------
    >>> fit = qd.fit(lambda debt: debt, -1.0, transforms=qd.below(0.0))
    >>> bool(fit.sample(1000).max() < 0.0)
    True
    """
    return Below(upper)
