"""Vectors whose numbers depend on each other: in increasing order, and shares that sum to one."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from quenched.transforms.transform import Transform


class Ordered(Transform):
    """Increasing along the last axis, by a first value and log differences.

    Examples
    --------
    >>> fit = qd.fit(lambda cuts: -0.5 * jnp.sum(cuts**2), np.array([-1.0, 0.0, 1.0]), transforms=qd.ordered)
    >>> bool((np.diff(fit.sample(1000), axis=1) > 0).all())
    True
    """

    axes: ClassVar[int] = 1

    def to_natural(self, real):
        return jnp.cumsum(jnp.concatenate([real[..., :1], jnp.exp(real[..., 1:])], axis=-1), axis=-1)

    def to_real(self, natural):
        return jnp.concatenate([natural[..., :1], jnp.log(jnp.diff(natural, axis=-1))], axis=-1)

    def log_jacobian(self, real):
        return jnp.sum(real[..., 1:])

    def describe(self):
        return "increasing along the last axis"

    def real_shape(self, natural_shape):
        if not natural_shape:
            raise ValueError("ordered applies to arrays with at least one axis, not to a scalar.")
        return natural_shape


class Simplex(Transform):
    """Positive and summing to one along the last axis, by stick breaking; the centre maps to zero.

    Examples
    --------
    >>> fit = qd.fit(lambda share: jnp.sum(jnp.log(share)), np.full(3, 1 / 3), transforms=qd.simplex)  # a Dirichlet(2, 2, 2)
    >>> bool(np.allclose(fit.sample(100).sum(axis=1), 1.0)), fit.mean.round(1)
    (True, array([0.3, 0.3, 0.3]))
    """

    axes: ClassVar[int] = 1

    def to_natural(self, real):
        share = jax.nn.sigmoid(real + self._offset(real))
        rest = jnp.cumprod(1.0 - share, axis=-1)
        one = jnp.ones_like(rest[..., :1])
        return jnp.concatenate([share, one], axis=-1) * jnp.concatenate([one, rest], axis=-1)

    def to_real(self, natural):
        # The stick that remains is summed from the end, which keeps small parts exact.
        rest = jnp.flip(jnp.cumsum(jnp.flip(natural, -1), axis=-1), -1)
        real = jnp.log(natural[..., :-1]) - jnp.log(rest[..., 1:])
        return real - self._offset(real)

    def log_jacobian(self, real):
        shifted = real + self._offset(real)
        log_rest = jnp.cumsum(-jax.nn.softplus(shifted), axis=-1)
        before = jnp.concatenate([jnp.zeros_like(log_rest[..., :1]), log_rest[..., :-1]], axis=-1)
        return jnp.sum(before - jax.nn.softplus(shifted) - jax.nn.softplus(-shifted))

    def describe(self):
        return "positive and summing to 1 along the last axis"

    def real_shape(self, natural_shape):
        if not natural_shape or natural_shape[-1] < 2:
            raise ValueError(f"simplex needs at least two parts along the last axis, got shape {natural_shape}.")
        return (*natural_shape[:-1], natural_shape[-1] - 1)

    @staticmethod
    def _offset(real):
        return -jnp.log(jnp.arange(real.shape[-1], 0, -1, dtype=real.dtype))


ordered = Ordered()
simplex = Simplex()
