"""Cauchy PPCA: exact where it can be, robust where it should be, and the same whatever else is in the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import quenched as qd
from quenched.models import PPCA, CauchyPPCA, cauchy, likelihood, loadings
from quenched.models.likelihood import cut_columns, cut_rows, log_likelihood
from quenched.models.noise import noises
from quenched.models.projection import project
from quenched.models.reweighting import Parameters, infer, recentred, sweep


@pytest.fixture(scope="module")
def model(rows):
    return CauchyPPCA(2).fit(rows.wild)


def distance(model, new, truth):
    return np.linalg.norm(model.inverse_transform(model.transform(new)) - truth) / np.linalg.norm(truth)


def test_gaussian_noise_agrees_with_the_closed_form(rows, monkeypatch):
    """From a random start, so that the gradient has to find the way."""
    random = np.random.default_rng(0)
    guess = Parameters(random.standard_normal((16, 2)), np.zeros(16), 1.0)

    def poor_start(noise, data, n_components):
        return sweep(noise, data, guess, infer(noise, data, guess, n_sweeps=1), 1)

    monkeypatch.setattr(loadings, "first_guess", poor_start)
    ours = CauchyPPCA(2, noise="gaussian", tol=1e-4, max_iter=1000).fit(rows.clean)
    exact = PPCA(2).fit(rows.clean)
    assert ours.n_iter_ > 10
    assert ours.bound_ == pytest.approx(exact.log_likelihood_, abs=1e-4)
    np.testing.assert_allclose(ours.components_, exact.components_, atol=0.02)
    np.testing.assert_allclose(ours.mean_, exact.mean_, atol=0.02)
    assert ours.noise_scale_ == pytest.approx(np.sqrt(exact.noise_variance_), rel=1e-4)
    np.testing.assert_allclose(ours.transform(rows.new_clean), exact.transform(rows.new_clean), atol=0.01)
    np.testing.assert_allclose(ours.score_samples(rows.new_clean), exact.score_samples(rows.new_clean), atol=0.02)


@pytest.mark.parametrize("noise", [name for name in noises if name != "gaussian"])
def test_wild_entries_disturb_it_less_than_ppca(rows, noise):
    ours = CauchyPPCA(2, noise=noise).fit(rows.wild)
    assert ours.fit_.converged
    ordinary = PPCA(2).fit(rows.wild)
    assert distance(ours, rows.new_wild, rows.new_clean) < 0.5 * distance(ordinary, rows.new_wild, rows.new_clean)


def test_a_noise_of_ones_own_is_one_line(rows, model):
    own = CauchyPPCA(2, noise=lambda r: -jnp.log1p(r**2) - jnp.log(jnp.pi)).fit(rows.wild)
    assert own.bound_ == pytest.approx(model.bound_, abs=1e-6)
    np.testing.assert_allclose(own.components_, model.components_, atol=1e-5)


def test_the_bound_of_the_rows_is_that_of_the_fit(rows, model):
    """Loadings are turned after the fit and rows fitted again, on draws of their own; little may change."""
    assert model.score_samples(rows.wild).sum() == pytest.approx(model.bound_, abs=4.0)
    assert abs(model.fit_.gap) < 2.0


def test_scores_are_bounds_on_the_evidence_and_nearly_tight(rows):
    model = CauchyPPCA(1, draws=64).fit(rows.wild)
    loading, offset, scale = model.components_[0], model.mean_, model.noise_scale_
    for row, bound, mean in zip(
        rows.new_wild[:5], model.score_samples(rows.new_wild[:5]), model.transform(rows.new_wild[:5])[:, 0], strict=True
    ):
        log_joint = lambda x, row=row: (
            norm.logpdf(x) - np.sum(np.log(np.pi * scale * (1.0 + ((row - offset - loading * x) / scale) ** 2)))
        )
        top = log_joint(mean)
        ratio = lambda x, top=top, log_joint=log_joint: np.exp(log_joint(x) - top)
        area = quad(ratio, mean - 3.0, mean + 3.0, points=[mean], limit=500)[0]
        evidence = top + np.log(area)
        assert bound < evidence + 0.05
        assert bound > evidence - 1.0


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_of_two_modes_the_better_one_is_found(side):
    """Five entries agree on one point and four on another, nearer the prior mean but less probable.

    An ascent that begins at the prior mean without the spread of the prior ends at the wrong one.
    """
    row = side * np.array([2.0, 2.02, 1.98, 2.01, 1.99, -1.5, -1.49, -1.51, -1.5])
    found = project(cauchy, row[None], Parameters(np.ones((9, 1)), np.zeros(9), 0.1), qd.matched(16, 1))
    grid = np.linspace(-4.0, 4.0, 801)
    log_joint = -np.sum(np.log1p(((row - grid[:, None]) / 0.1) ** 2), axis=1) - 0.5 * grid**2
    assert found.means[0, 0] == pytest.approx(grid[np.argmax(log_joint)], abs=0.05)


def test_a_row_does_not_depend_on_its_company(rows, model):
    many = np.concatenate([rows.new_wild] * 5)  # more than are projected at a time
    alone = model.transform(rows.new_wild[3:4])
    np.testing.assert_allclose(model.transform(many)[[3, 3 + 4 * 16]], np.repeat(alone, 2, axis=0), atol=1e-7)


def test_units_of_the_data_do_not_matter(rows, model):
    moved = CauchyPPCA(2).fit(1e4 * rows.wild - 7.0)
    np.testing.assert_allclose(moved.components_, 1e4 * model.components_, rtol=1e-3, atol=1.0)
    assert moved.noise_scale_ == pytest.approx(1e4 * model.noise_scale_, rel=1e-4)
    assert moved.bound_ == pytest.approx(model.bound_ - rows.wild.size * np.log(1e4), abs=1e-2)


def test_components_are_orthogonal_and_ordered(model):
    inner = model.components_ @ model.components_.T
    assert abs(inner[0, 1]) < 1e-8 * inner[0, 0]
    assert inner[0, 0] > inner[1, 1]


def test_the_same_seed_gives_the_same_bits(rows, model):
    again, other = CauchyPPCA(2).fit(rows.wild), CauchyPPCA(2, random_state=1).fit(rows.wild)
    np.testing.assert_array_equal(again.components_, model.components_)
    assert other.bound_ != model.bound_


def test_the_method_of_the_paper(rows, model):
    draws = qd.iid(32, 2 * len(rows.wild), seed=0)
    paper = CauchyPPCA(2, draws=draws, method=qd.Alternating(max_rounds=4))
    with pytest.warns(ConvergenceWarning, match="limit of evaluations or rounds"):
        paper.fit(rows.wild)
    assert paper.fit_.settings["draws"] == "iid"
    assert paper.fit_.settings["method"] == "Alternating"
    np.testing.assert_allclose(np.abs(paper.components_), np.abs(model.components_), atol=0.5)


def test_chunks_of_columns_change_nothing(rows, monkeypatch):
    with jax.enable_x64(True):
        random = np.random.default_rng(1)
        latent, table = random.standard_normal((40, 2)), random.standard_normal((16, 3))
        expected = np.sum(cauchy((rows.wild - latent @ table[:, :2].T - table[:, 2]) / 0.7)) - rows.wild.size * np.log(
            0.7
        )
        for chunk, step in ((2**14, 16), (200, 5), (1, 1)):
            monkeypatch.setattr(likelihood, "_CHUNK", chunk)
            monkeypatch.setattr(likelihood, "_WIDTH_STEP", step)
            columns = cut_columns(rows.wild)
            coefficients = cut_rows(table, columns.count.shape[1])
            found = log_likelihood(cauchy, latent, coefficients, np.log(0.7), columns)
            assert float(found) == pytest.approx(float(expected), rel=1e-12)


def test_memory_is_bounded_by_chunks():
    """The gradient at full resolution needs less memory than one array of all residuals at all draws."""
    n_rows, n_columns, n_draws = 32, 8064, 16
    with jax.enable_x64(True):
        columns = cut_columns(np.zeros((n_rows, n_columns)))
        shape = lambda *sizes: jax.ShapeDtypeStruct(sizes, np.float64)

        def mean(latents, coefficients, log_scale, columns):
            one = lambda latent: log_likelihood(cauchy, latent, coefficients, log_scale, columns)
            return jnp.mean(jax.vmap(one)(latents))

        coefficients = shape(*columns.count.shape, 3)
        program = jax.jit(jax.grad(mean, argnums=(0, 1, 2)))
        compiled = program.lower(shape(n_draws, n_rows, 2), coefficients, shape(), columns).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 8 * n_rows * n_columns * n_draws


def test_best_units_keep_the_reconstruction(rows):
    random = np.random.default_rng(2)
    parameters = Parameters(random.standard_normal((16, 2)), random.standard_normal(16), 1.0)
    before = infer(cauchy, rows.wild, parameters, n_sweeps=3)
    moved, after = recentred(parameters, before)
    np.testing.assert_allclose(
        after.means @ moved.loadings.T + moved.offset, before.means @ parameters.loadings.T + parameters.offset
    )
    second_moment = after.means.T @ after.means / 40 + after.covariances.mean(axis=0)
    np.testing.assert_allclose(second_moment, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(after.means.mean(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 16}, "determine at most 15"),
        ({"n_components": 0}, "n_components=0"),
        ({"draws": 2}, "at least 4"),
        ({"draws": 7}, "even number"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"noise": "cauchi"}, "noise='cauchi'"),
        ({"method": "paper"}, "method='paper'"),
    ],
)
def test_misuse_is_refused_before_anything_is_computed(rows, options, message):
    with pytest.raises(ValueError, match=message):
        CauchyPPCA(**options).fit(rows.wild)


def test_data_that_cannot_be_fitted(rows):
    with pytest.raises(ValueError, match="all rows are equal"):
        CauchyPPCA(2).fit(np.ones((10, 5)))
    with pytest.raises(ValueError, match="NaN"):
        CauchyPPCA(2).fit(np.where(rows.wild > 30, np.nan, rows.wild))
    with pytest.raises(ValueError, match="determine at most 1"):
        CauchyPPCA(2).fit(rows.wild[:3])


def test_an_ascent_cut_short_says_so(rows):
    with pytest.warns(ConvergenceWarning, match="limit of evaluations"):
        CauchyPPCA(2, max_iter=2).fit(rows.wild)


def test_names_of_the_latent_variables(model):
    assert model.get_feature_names_out().tolist() == ["cauchyppca0", "cauchyppca1"]
