"""Sums of terms whose coordinates are skewed: the best of their kind on the draws, and no worse than the dense family."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from fitting.test_skewed_terms import START, count, coupled, raised
from quenched.draws import term_draws
from quenched.families import StretchedGaussian
from quenched.families.stretch import stretch
from quenched.projected import ProjectedBound, structure_of
from rows_seen import maps_of


def test_no_stretched_gaussian_is_better_on_the_same_draws():
    """The bound by dense projections of its own, and its slope in a mean, a dense factor and the rates: none is left."""
    fit = qd.fit(coupled(), START, family=qd.Sparse(warped=True), draws=64, progress=False)
    problem, draws = fit.origin.problem, term_draws(64, 0)
    with jax.enable_x64(True):
        bound = ProjectedBound(problem, draws, skewed=True)
        top = raised(bound, fit.posterior.member, fit.origin.hyper)
        member = top.posterior
        assert isinstance(member, StretchedGaussian)
        structure = structure_of(problem)

        def by_hand(mean, scale, rates):
            total = jnp.sum(jnp.log(jnp.diag(scale))) + 0.5 * problem.dim * (1.0 + jnp.log(2.0 * jnp.pi))
            covariance = scale @ scale.T
            for place, (term, reduced) in enumerate(zip(structure.local, structure.reductions_of_skewed, strict=True)):
                maps, back = maps_of(term, problem.dim), np.eye(term.size) if reduced.back is None else reduced.back
                forth = np.eye(term.size) if reduced.forth is None else reduced.forth
                z, weights = draws.points(len(forth), place)
                half = jnp.linalg.cholesky((forth @ maps) @ covariance @ (forth @ maps).swapaxes(1, 2))
                away = jnp.einsum("nij,nsj->nsi", half, z[np.arange(term.n) % len(z)])
                k = len(reduced.alone)
                sds = jnp.sqrt(jnp.sum(half[:, :k] ** 2, axis=2))[:, None]
                own = (forth[:k] @ maps) @ rates
                away = away.at[..., :k].set(sds * centred(away[..., :k] / sds, own[:, None], weights))
                points = ((forth @ maps) @ mean)[:, None] + away
                values = jax.vmap(jax.vmap(term.log_density, in_axes=(0, None)))(points @ back.T, term.held)
                total = total + jnp.sum(values @ weights)
            return total

        scale = np.linalg.cholesky(member.gaussian.covariance)
        slopes = jax.jit(jax.value_and_grad(by_hand, argnums=(0, 1, 2)))
        value, (of_mean, of_scale, of_rates) = slopes(member.mean, scale, member.skew)
    assert float(value) == pytest.approx(top.bound, abs=1e-9)
    assert np.abs(scale.T @ of_mean).max() < 1e-4
    assert np.abs(np.tril(scale.T @ of_scale)).max() < 1e-4
    assert np.abs(of_rates[2:]).max() < 1e-4
    assert np.abs(member.skew[2:]).min() > 0.01
    assert np.all(member.skew[:2] == 0.0)  # weights behind a design stay Gaussian


def centred(u, rate, weights):
    stretched, _ = stretch(u, rate)
    return stretched - jnp.einsum("s,nsk->nk", weights, stretched)[:, None]


def test_independent_numbers_are_what_the_dense_warped_family_makes_of_them():
    """There both families have a map for each number, and nothing else to gain."""
    target = qd.sum_of(qd.each(count, np.array([1.0, 2.0, 4.0]), sees={"u": qd.each_entry}))
    sparse, dense = (
        qd.fit(target, {"u": np.zeros(3)}, family=family, tolerance=0.002, progress=False, **precisely)
        for family, precisely in (
            (qd.Sparse(warped=True), {}),
            (qd.Warped(bend=False), {"draws": 512, "method": qd.Joint(gradient_tolerance=1e-4)}),
        )
    )
    assert sparse.bound > dense.check_bound - 3.0 * dense.check_error
    np.testing.assert_allclose(sparse.sd["u"], dense.sd["u"], rtol=0.01)
