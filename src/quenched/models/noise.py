"""Noise: log densities of a residual in units of its scale, and how strongly each pulls.

A noise is a JAX function f of an array, element by element; the residual r then has log density f(r / scale) − log scale.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy.special import k1

from quenched.arrays import Array
from quenched.compiling import program
from quenched.numbers import finite_number, positive_number, real_array
from quenched.text import shown

Noise = Callable[[Array], Array]
_TIP = 0.01  # scales: how far the tip of the Laplace density is rounded
_LOG_LAPLACE_INTEGRAL = float(np.log(2.0 * _TIP * k1(_TIP)))
_NEAR_ZERO = 1e-3  # scales: the pull of a residual is taken no closer to zero than this


def _residual(given: Any) -> Array:
    """An array of JAX as it is, anything else read."""
    return given if isinstance(given, jax.Array) else real_array("residual", given)


def cauchy(residual: Array) -> Array:
    """−log π(1 + r²): the noise of the paper (Sec. 3.5). A residual of many scales hardly pulls.

    Examples
    --------
    >>> from quenched.models import cauchy
    >>> bool(cauchy(0.0) - cauchy(100.0) < 10.0)  # a Gaussian would fall by 5,000
    True
    """
    residual = _residual(residual)
    return -jnp.log1p(residual**2) - np.log(np.pi)


def gaussian(residual: Array) -> Array:
    """−½ r² − ½ log 2π: ordinary PPCA.

    Examples
    --------
    >>> from quenched.models import gaussian
    >>> float(gaussian(0.0) - gaussian(2.0))
    2.0
    """
    return -0.5 * _residual(residual) ** 2 - 0.5 * np.log(2.0 * np.pi)


def laplace(residual: Array) -> Array:
    """Laplace's −|r| − log 2, its tip rounded over a hundredth of the scale so that a gradient can vanish there.

    Examples
    --------
    >>> from quenched.models import laplace
    >>> float((laplace(1.0) - laplace(3.0)).round(2))
    2.0
    """
    return -jnp.sqrt(_residual(residual) ** 2 + _TIP**2) - _LOG_LAPLACE_INTEGRAL


def student_t(degrees: float = 4.0) -> Noise:
    """Student's t with these degrees of freedom: Cauchy at one, nearly Gaussian above thirty.

    Examples
    --------
    >>> from quenched.models import cauchy, student_t
    >>> bool(abs(student_t(1.0)(2.0) - cauchy(2.0)) < 1e-5)
    True
    """
    return _student_t(finite_number("degrees", positive_number("degrees", degrees)))


@lru_cache(maxsize=32)  # the same degrees give the same function, which is then compiled once
def _student_t(degrees: float) -> Noise:
    def log_density(residual: Array) -> Array:
        constant = gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees) - 0.5 * jnp.log(degrees * jnp.pi)
        return constant - 0.5 * (degrees + 1.0) * jnp.log1p(residual**2 / degrees)

    return log_density


noises: dict[str, Noise] = {
    "cauchy": cauchy,
    "gaussian": gaussian,
    "laplace": laplace,
    "student_t": student_t(),
}


def read_noise(noise: Any) -> Noise:
    """A noise by name, or the user's own function, tried on a few residuals.

    Raises
    ------
    ValueError
        For an unknown name, or a function that is not finite, elementwise and real.
    """
    if isinstance(noise, str):
        if noise not in noises:
            raise ValueError(
                f"noise={shown(noise)} is not known; use {', '.join(map(repr, noises))} or a JAX function."
            )
        return noises[noise]
    if not callable(noise):
        raise ValueError(f"noise={shown(noise)}: give a name or a JAX function of the residual.")
    tried = np.array([[-30.0, -1.0, 0.0], [0.5, 2.0, 40.0]])
    try:
        values = np.asarray(noise(jnp.asarray(tried)), dtype=float)
    except Exception as error:  # of the user's own, whatever it is
        raise ValueError(f"noise: the function failed on an array of residuals: {error}") from error
    if values.shape != tried.shape or not np.isfinite(values).all():
        raise ValueError(
            "noise: the function must give one finite log density per residual, for an array of any shape; for "
            f"residuals of shape {tried.shape} it gave {values.tolist()}."
        )
    return noise


@partial(program, static_argnums=0)
def pull(noise: Noise, size: Array) -> Array:
    """−f'(u) / u at u = `size`: the weight of a residual in the quadratic that touches the noise there from below.

    One for a Gaussian; small for far residuals when the noise is robust. Never negative, whatever the function.
    """
    u = jnp.maximum(size, _NEAR_ZERO)
    weight = -jax.grad(lambda values: jnp.sum(noise(values)))(u) / u
    return jnp.where(jnp.isfinite(weight), jnp.maximum(weight, 1e-12), 1e-12)
