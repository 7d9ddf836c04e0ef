"""Estimators of linear predictors: their posteriors are those of the log density, and scikit-learn can use them."""

import pickle
import warnings

import jax
import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import quenched as qd
from quenched.models import LinearRegression, LogisticRegression, PoissonRegression, RelevanceVectorClassifier
from quenched.models.linear_predictors import Categorical, LinearProblem, lay_out, raise_linear_bound


def features(n_items, n_weights, seed=0):
    return np.random.default_rng(seed).normal(size=(n_items, n_weights)) * 0.7 + 3.0


def observed(kind, X, seed=1):
    random = np.random.default_rng(seed)
    predictor = (X - 3.0) @ random.normal(size=X.shape[1]) + 0.3
    if kind is LinearRegression:
        return predictor + 0.5 * random.normal(size=len(X))
    if kind is PoissonRegression:
        return random.poisson(np.exp(0.4 * predictor)).astype(float)
    return (random.uniform(size=len(X)) < expit(predictor)).astype(int)


def three_classes(X, seed=2):
    random = np.random.default_rng(seed)
    scores = (X - 3.0) @ random.normal(size=(X.shape[1], 3)) * 1.5
    return np.argmax(scores + random.gumbel(size=scores.shape), axis=1)


KINDS = (LinearRegression, LogisticRegression, PoissonRegression)
CASES = {
    **{f"{kind.__name__}-{shape}": (kind, *shape) for kind in KINDS for shape in ((40, 3), (8, 12))},
    "three classes": ("three", 50, 3),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def fitted(request):
    kind, *shape = request.param
    X = features(*shape)
    y = three_classes(X) if kind == "three" else observed(kind, X)
    estimator = LogisticRegression(prior_precision=1.0) if kind == "three" else kind(prior_precision=0.8)
    if kind is LinearRegression:
        estimator.set_params(noise_precision=4.0)  # with more weights than rows there is no best one
    weights = np.random.default_rng(4).integers(1, 3, size=len(X)).astype(float)
    return estimator.fit(X, y, sample_weight=weights), X, y


def test_the_bound_is_that_of_the_log_density_written_out(fitted):
    """The estimator works in NumPy without draws; `fit_` has the joint density in JAX and fresh draws."""
    estimator, _, _ = fitted
    fit = estimator.fit_
    assert estimator.bound_ == pytest.approx(fit.check_bound, abs=4 * fit.check_error + 1e-3)
    assert fit.khat < 0.7


def test_the_posterior_is_the_best_gaussian(fitted):
    """At the best Gaussian the mean of (log p − log q) z is zero, and so is that of (log p − log q)(z² − 1)."""
    estimator, _, _ = fitted
    drift = estimator.fit_.drift
    assert drift.mean < 3 * drift.mean_error + 0.02
    assert drift.sd < 3 * drift.sd_error + 0.02


def test_predictions_integrate_over_the_posterior(fitted):
    estimator, X, _ = fitted
    new, samples = X[:5] + 0.5, estimator.fit_.sample(20_000, seed=3)
    predictors = np.einsum("nm,s...m->sn...", new, samples["coef"]) + samples["intercept"][:, None]
    if isinstance(estimator, LinearRegression):
        mean, sd = estimator.predict(new, return_std=True)
        wanted, spread = predictors.mean(0), np.sqrt(predictors.var(0) + 1 / estimator.noise_precision_)
        np.testing.assert_allclose(sd, spread, rtol=0.03)
    elif isinstance(estimator, PoissonRegression):
        mean, sd = estimator.predict(new, return_std=True)
        counts = np.random.default_rng(0).poisson(np.exp(predictors))
        wanted = np.exp(predictors).mean(0)
        np.testing.assert_allclose(mean, wanted, rtol=0.1)
        np.testing.assert_allclose(np.log(sd), np.log(counts.std(0)), atol=0.3)
        return
    else:
        mean = estimator.predict_proba(new)
        if len(estimator.classes_) == 2:
            wanted = np.stack([expit(-predictors), expit(predictors)], axis=-1).mean(0)
        else:
            wanted = softmax(predictors @ Categorical(np.zeros(1), 3, np.zeros((1, 2))).contrasts.T, axis=-1).mean(0)
        np.testing.assert_allclose(mean.sum(axis=1), 1.0)
    np.testing.assert_allclose(mean, wanted, atol=0.03)


def test_a_fit_can_be_sampled_and_predicts(fitted):
    estimator, X, _ = fitted
    fit = estimator.fit_
    np.testing.assert_allclose(fit.mean["coef"], estimator._posterior.coef.reshape(fit.mean["coef"].shape), atol=1e-9)
    assert fit.predict(7)["y"].shape == (7, len(X))
    assert fit.model.log_likelihood(fit.sample(5))["y"].shape == (5, len(X))
    assert estimator.fit_ is fit


def test_wide_and_tall_designs_agree():
    """More columns than rows: the rotated problem has the answer of the same problem with columns of zeros left out."""
    X, y = features(30, 4), observed(LogisticRegression, features(30, 4))
    tall = LogisticRegression(prior_precision=2.0).fit(X, y)
    wide = LogisticRegression(prior_precision=2.0).fit(np.column_stack([X, np.zeros((30, 40))]), y)
    assert wide.bound_ == pytest.approx(tall.bound_, abs=1e-6)
    np.testing.assert_allclose(wide.coef_[:, :4], tall.coef_, atol=1e-6)
    np.testing.assert_allclose(wide.coef_sd_[:, :4], tall.coef_sd_, atol=1e-6)
    np.testing.assert_allclose(wide.coef_sd_[:, 4:], 2.0**-0.5, atol=1e-9)
    new = np.column_stack([X, np.zeros((30, 39)), np.ones(30)])
    means, variances = wide._posterior.predictors(new)
    np.testing.assert_allclose(variances[:, 0, 0], tall._posterior.predictors(X)[1][:, 0, 0] + 0.5, atol=1e-6)
    np.testing.assert_allclose(means, tall._posterior.means(X), atol=1e-6)


def test_linear_regression_is_exact():
    X, y = features(60, 4), observed(LinearRegression, features(60, 4))
    ours = LinearRegression().fit(X, y)
    ridge = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=2e-2)
    # With a Gaussian prior of width T on the intercept of centred features; ours is flat, of the height of one of width τ.
    wide, tau = 300.0, 10 * y.std()
    centred = X - X.mean(axis=0)
    covariance = centred @ centred.T / ours.prior_precision_ + np.eye(60) / ours.noise_precision_ + wide**2
    exact = multivariate_normal(np.full(60, y.mean()), covariance).logpdf(y) + np.log(wide / tau)
    assert ours.bound_ == pytest.approx(exact, abs=1e-3)
    for factor in (0.8, 1.25):
        other = LinearRegression(prior_precision=ours.prior_precision_ * factor).fit(X, y)
        assert other.bound_ < ours.bound_
        other = LinearRegression(noise_precision=ours.noise_precision_ * factor).fit(X, y)
        assert other.bound_ < ours.bound_


@pytest.mark.parametrize("kind", [LogisticRegression, PoissonRegression])
@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_the_learned_prior_precision_is_the_best(kind, factor):
    X, y = features(80, 4), observed(kind, features(80, 4))
    learned = kind().fit(X, y)
    assert kind(prior_precision=learned.prior_precision_ * factor).fit(X, y).bound_ < learned.bound_ - 1e-4


def test_many_rows_end_where_few_steps_from_zero_end():
    """With many rows per weight the rounds begin near the mode, and may end early."""
    X, y = features(5_000, 6), observed(LogisticRegression, features(5_000, 6))
    quick, slow = LogisticRegression(tol=0.05).fit(X, y), LogisticRegression(tol=1e-6).fit(X, y)
    assert quick.n_iter_ < slow.n_iter_
    assert slow.bound_ - 2e-3 < quick.bound_ <= slow.bound_ + 1e-9
    np.testing.assert_allclose(quick.coef_, slow.coef_, atol=0.1 * slow.coef_sd_.min())


def test_frozen_points_of_many_classes_are_enough():
    """The bound agrees with that on twice as many other points."""
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    few = LogisticRegression().fit(X, y)
    many = raise_linear_bound(
        LinearProblem(lay_out(X, intercept=True), few.prior_precision_),
        Categorical(y, 3, qd.matched(2000, 2, seed=7).points),
    )
    assert few.bound_ == pytest.approx(many.last.bound, abs=0.1)
    assert few.score(X, y) > 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_are_the_same_rows(kind):
    X = np.where(features(60, 5) > 3.5, features(60, 5), 0.0)
    y = observed(kind, features(60, 5))
    dense, thin = kind().fit(X, y), kind().fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(thin.predict(sparse.coo_array(X)), dense.predict(X), rtol=1e-6)


@pytest.mark.parametrize("shape", [(90, 6), (12, 20)], ids=["tall", "wide"])
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_classes_of_sparse_rows_that_count_are_copies_and_are_pickled(form, shape):
    """Three classes: sparse with weights is dense with copies; rows that count zero times are none."""
    X, y = (
        np.where(features(*shape) > 3.3, features(*shape), 0.0),
        np.array(["a", "b", "c"])[three_classes(features(*shape))],
    )
    weights = np.random.default_rng(3).integers(0, 3, len(X))
    thin = LogisticRegression(prior_precision=1.0, draws=32).fit(form(X), y, sample_weight=weights)
    copies = LogisticRegression(prior_precision=1.0, draws=32).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert thin.bound_ == pytest.approx(copies.bound_, abs=1e-6)
    np.testing.assert_allclose(thin.coef_, copies.coef_, atol=1e-5)
    expected = copies.predict_proba(X)
    np.testing.assert_allclose(thin.predict_proba(form(X)), expected, atol=1e-5)
    again = pickle.loads(pickle.dumps(thin))
    np.testing.assert_array_equal(again.predict_proba(form(X)), thin.predict_proba(form(X)))
    np.testing.assert_array_equal(again.predict(form(X)), np.array(["a", "b", "c"])[np.argmax(expected, axis=1)])


def test_few_draws_for_many_weights_do_not_lead_the_bound_astray():
    """More weights than rows and few frozen points: it may not come to rest, but stays above what no weights at all would give."""
    X = features(12, 20)
    y, X = three_classes(X), np.where(X > 3.3, X, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = LogisticRegression(draws=64).fit(X, y)
    assert found.bound_ > -25.0


def test_units_of_features_do_not_spoil_the_numbers():
    """Columns of very different size, an intercept far from zero, and a column twice."""
    X, y = features(50, 3), observed(LogisticRegression, features(50, 3))
    scales = np.array([1e-6, 1.0, 1e5])
    odd = LogisticRegression(prior_precision=1e-20).fit(np.column_stack([X * scales + 1e3 * scales, X[:, 1]]), y)
    plain = LogisticRegression(prior_precision=1e-20).fit(np.column_stack([X, X[:, 1]]), y)
    new = features(5, 3, seed=9)
    moved = np.column_stack([new * scales + 1e3 * scales, new[:, 1]])
    np.testing.assert_allclose(
        odd.predict_proba(moved)[:, 1], plain.predict_proba(np.column_stack([new, new[:, 1]]))[:, 1], atol=1e-3
    )


def test_the_same_seed_gives_the_same_bits():
    X, y = load_iris(return_X_y=True)
    first, again, other = (LogisticRegression(random_state=seed, draws=64).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert first.bound_ == again.bound_ != other.bound_


def test_pipelines_grid_search_clones_and_pickles():
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler().set_output(transform="pandas"), LogisticRegression(draws=32)),
        {"logisticregression__prior_precision": [None, 1.0]},
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, y)
    best = search.best_estimator_[-1]
    assert list(best.feature_names_in_) == list(X.columns)
    assert isinstance(best.fit_.model.coords["feature"], list)
    again = pickle.loads(pickle.dumps(best))
    scaled = pandas.DataFrame(search.best_estimator_[0].transform(X), columns=X.columns)
    np.testing.assert_array_equal(again.predict_proba(scaled), best.predict_proba(scaled))
    with pytest.raises(ValueError, match="training rows are not pickled"):
        _ = again.fit_
    with pytest.raises(NotFittedError):
        _ = clone(best).fit_


def test_relevance_vectors_of_copies_and_of_kernels():
    X, y = load_iris(return_X_y=True)
    X, labels = StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]
    machine = RelevanceVectorClassifier(gamma=0.25).fit(X, labels)
    assert machine.score(X, labels) > 0.9
    assert machine.relevance_vectors_.shape == (machine.n_relevance_, 4)
    assert machine.n_relevance_ < 20
    twice = RelevanceVectorClassifier(gamma=0.25).fit(np.concatenate([X, X]), np.concatenate([labels, labels]))
    counted = RelevanceVectorClassifier(gamma=0.25).fit(X, labels, sample_weight=np.full(150, 2.0))
    np.testing.assert_allclose(twice.predict_proba(X), counted.predict_proba(X), atol=1e-6)
    # Integrated probabilities are never surer than those at the most probable weights, and much less so far away.
    kernel = machine._kernel(X)
    plain, own = machine._machine.predict_probability(kernel).max(axis=1), machine.predict_proba(X).max(axis=1)
    assert np.mean(own <= plain + 1e-9) > 0.95


@pytest.mark.parametrize("gamma", ["scale", 0.1, 10.0])
def test_relevance_vectors_of_points_that_are_easily_told_apart_are_not_all_lost(gamma):
    X = np.linspace(-2.0, 2.0, 30)[:, None]
    machine = RelevanceVectorClassifier(gamma=gamma).fit(X, X[:, 0] > 0)
    assert machine.score(X, X[:, 0] > 0) == 1.0
    assert 2 <= machine.n_relevance_ <= 5
    assert np.ptp(machine.predict_proba(X)[:, 1]) > 0.9


def test_probit_probabilities_with_deviations_match_monte_carlo():
    from quenched.models.multiclass_rvm import probit_probability

    scores, spread = np.array([[0.4, -0.3, 1.1], [3.0, 2.0, -1.0]]), np.array([[1.0, 2.0, 0.5], [3.0, 1.0, 1.5]])
    noise = np.random.default_rng(3).normal(size=(400_000, 1, 3))
    winners = np.argmax(scores + spread * noise, axis=2)
    shares = np.stack([np.mean(winners == c, axis=0) for c in range(3)], axis=1)
    np.testing.assert_allclose(probit_probability(scores, spread), shares, atol=4 * 0.5 / np.sqrt(400_000))


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [
        (LogisticRegression(prior_precision=-1.0), [0, 1, 0, 1], "prior_precision is -1.0"),
        (LogisticRegression(), [1, 1, 1, 1], "one class only"),
        (LogisticRegression(draws=7), [0, 1, 2, 1], "draws=7: with 3 classes an even number"),
        (LogisticRegression(max_iter=0), [0, 1, 0, 1], "max_iter=0"),
        (LogisticRegression(tol=0.0), [0, 1, 0, 1], "tol=0.0"),
        (PoissonRegression(), [0.0, -1.0, 2.0, 1.0], "-1 is negative"),
        (PoissonRegression(), [0.0, 0.0, 0.0, 0.0], "all counts are zero"),
        (LinearRegression(), [2.0, 2.0, 2.0, 2.0], "all targets are 2"),
        (LinearRegression(noise_precision=0.0), [1.0, 2.0, 2.0, 2.0], "noise_precision is 0.0"),
        (RelevanceVectorClassifier(kernel="precomputed"), [0, 1, 0, 1], "square"),
        (RelevanceVectorClassifier(gamma=-1.0), [0, 1, 0, 1], "gamma=-1.0"),
    ],
)
def test_misuse_is_refused_before_anything_is_computed(estimator, y, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(features(4, 2), np.array(y))


@pytest.mark.parametrize(
    "estimator", [LinearRegression(), LogisticRegression(), PoissonRegression(), RelevanceVectorClassifier()]
)
def test_numbers_whose_squares_are_none_are_refused(estimator):
    X, y = features(6, 2), np.array([0, 1, 0, 1, 1, 0])
    huge = X.copy()
    huge[2, 1] = 1e300
    for given in (huge, sparse.csr_array(huge)):
        with pytest.raises(ValueError, match=r"X: has an entry of 1e\+300.*larger unit"):
            estimator.fit(given, y)
    with pytest.raises(ValueError, match="X: has an entry of"):
        clone(estimator).fit(X, y).predict(huge)
    with pytest.raises(ValueError, match="y: has an entry of"):
        LinearRegression().fit(X, 1e200 * y)


def test_what_only_looks_as_if_it_named_an_argument_is_told_with_its_name():
    """JAX has an X in its name, and refuses to make its keys an array."""
    with pytest.raises(TypeError, match="X, y: JAX array with PRNGKey"):
        LinearRegression().fit(jax.random.split(jax.random.key(0), 4), np.arange(4.0))


def test_masks_are_not_forgotten():
    X, y = features(4, 2), np.arange(4.0)
    mask = np.arange(4) == 2
    for given, name in (((np.ma.masked_array(X, X > 0), y), "X"), ((X, np.ma.masked_array(y, mask)), "y")):
        with pytest.raises(ValueError, match=f"{name}: has masked values"):
            LinearRegression().fit(*given)
    with pytest.raises(ValueError, match=r"sample_weight = .* has masked values"):
        LinearRegression().fit(X, y, sample_weight=np.ma.masked_array(np.ones(4), mask))


def test_an_ascent_that_does_not_end_well_says_so():
    X, y = features(60, 4), observed(LogisticRegression, features(60, 4))
    with pytest.warns(ConvergenceWarning, match="still rises after 1 rounds"):
        LogisticRegression(max_iter=1).fit(X, y)
    balanced = np.column_stack([np.tile([1.0, 1.0, -1.0, -1.0], 10)])
    with pytest.warns(ConvergenceWarning, match="ran to its limit"):
        LogisticRegression().fit(balanced, np.tile([0, 1], 20))
