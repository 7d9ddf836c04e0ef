"""Maps that lengthen tails: one-to-one, with the slopes that they say, and the identity where nothing is long."""

import jax
import numpy as np

from quenched.families.tails import lengthen, log_slopes, no_tails, shorten, turns

TAILS = np.array([[0.3, -1.0, 2.0], [0.5, 2.0, 1.0], [2.0, 0.0, 0.7], [0.0, 1.5, 0.4]])
POINTS = np.array([[0.1, -1.2, 2.3], [-4.0, 9.0, -6.0], [6.0, -30.0, 14.0]])


def test_what_is_lengthened_is_shortened_again():
    with jax.enable_x64(True):
        np.testing.assert_allclose(shorten(lengthen(POINTS, TAILS), TAILS), POINTS, rtol=1e-12)


def test_slopes_are_those_of_the_map():
    with jax.enable_x64(True):
        of_one = jax.vmap(jax.jacfwd(lambda point: lengthen(point, TAILS)))(POINTS)
        slopes = np.diagonal(of_one, axis1=1, axis2=2)
        np.testing.assert_allclose(log_slopes(POINTS, TAILS), np.log(slopes), rtol=1e-12, atol=1e-14)
        turned = jax.vmap(jax.jacfwd(lambda point: log_slopes(point, TAILS)))(POINTS)
        np.testing.assert_allclose(turns(POINTS, TAILS), np.diagonal(turned, axis1=1, axis2=2), rtol=1e-10, atol=1e-14)


def test_a_gaussian_tail_becomes_that_of_an_exponential():
    """Far to the left θ = c − u l x² / 2: a probability exp(−x² / 2) is exp(−|θ − c| / (u l))."""
    tails = np.array([[0.0], [0.5], [2.0], [0.0]])
    far, further = lengthen(0.5 * np.array([[-300.0], [-400.0]]), tails)
    np.testing.assert_allclose((far - further) / (0.5 * 2.0), 0.5 * (400.0**2 - 300.0**2), rtol=0.01)


def test_without_tails_nothing_moves():
    np.testing.assert_array_equal(lengthen(POINTS, no_tails(3)), POINTS)
    np.testing.assert_array_equal(log_slopes(POINTS, no_tails(3)), 0.0)
