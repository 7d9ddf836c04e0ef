"""Sums of terms with a sparse precision: the best of all Gaussians on their draws, and what a fit says of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from scipy import optimize

import quenched as qd
from quenched.draws import term_draws
from quenched.families import SparseGaussian, make_pattern
from quenched.posterior import Posterior
from quenched.projected import structure_of
from quenched.trust import moves_of_means
from rows_seen import maps_of

RANDOM = np.random.default_rng([3, 5])
PEOPLE, ITEMS = 25, 8
PERSON, ITEM = (part.ravel() for part in np.meshgrid(np.arange(PEOPLE), np.arange(ITEMS), indexing="ij"))
ANSWER = (RANDOM.random(PEOPLE * ITEMS) < 0.6).astype(float)
START = {"ability": np.zeros(PEOPLE), "difficulty": np.zeros(ITEMS), "slope": np.ones(ITEMS), "log_sd": 0.0}
TRANSFORMS = {"slope": qd.positive}


def answers(seen, row):
    score = seen["slope"] * (seen["ability"] - seen["difficulty"])
    return row * score - jnp.logaddexp(0.0, score)


def ability(seen):
    return norm.logpdf(seen["ability"], 0.0, jnp.exp(seen["log_sd"]))


def items(seen):
    return norm.logpdf(seen["difficulty"]) + norm.logpdf(jnp.log(seen["slope"]), 0.0, 0.5) - jnp.log(seen["slope"])


def item_response():
    return qd.sum_of(
        qd.each(answers, ANSWER, sees={"ability": PERSON, "difficulty": ITEM, "slope": ITEM}),
        qd.each(ability, sees={"ability": qd.each_entry, "log_sd": qd.whole}),
        qd.each(items, sees={"difficulty": qd.each_entry, "slope": qd.each_entry}),
        qd.each(lambda seen: norm.logpdf(seen["log_sd"], -0.5, 0.5), sees={"log_sd": qd.whole}),
    )


@pytest.fixture(scope="module")
def fit():
    first = qd.fit(item_response(), START, transforms=TRANSFORMS, draws=32, tolerance=0.01, progress=False)
    return qd.fit(item_response(), first, progress=False, draws=32)  # polished


def test_the_precision_is_sparse_and_the_fit_says_so(fit):
    assert fit.converged
    assert fit.settings["family"] == "sparse"
    precision = fit.posterior.member.precision.toarray()
    inside = slice(0, PEOPLE)  # people meet in no term
    assert np.count_nonzero(precision[inside, inside]) == PEOPLE
    np.testing.assert_allclose(np.linalg.inv(precision), fit.covariance, atol=1e-10)
    np.testing.assert_allclose(fit.posterior.variance(), np.diag(fit.covariance), rtol=1e-10)


def test_no_dense_gaussian_is_better_on_the_same_draws(fit):
    """The bound by dense projections of its own, and its slope in a mean and a dense factor: none is left."""
    with jax.enable_x64(True):
        problem = fit.origin.problem
        structure, draws = structure_of(problem), term_draws(32, 0)

        def bound(mean, scale):
            total = jnp.sum(jnp.log(jnp.diag(scale))) + 0.5 * problem.dim * (1.0 + jnp.log(2.0 * jnp.pi))
            for place, (term, reduced, size) in enumerate(
                zip(structure.local, structure.reductions, structure.sizes, strict=True)
            ):
                maps, (z, weights) = maps_of(term, problem.dim), draws.points(size, place)
                maps = maps if reduced.forth is None else reduced.forth @ maps
                back = np.eye(size) if reduced.forth is None else reduced.back
                half = jnp.linalg.cholesky(maps @ (scale @ scale.T) @ maps.swapaxes(1, 2))
                sets = structure.dealing[place] % len(z)
                points = (maps @ mean)[:, None] + jnp.einsum("nij,nsj->nsi", half, z[sets])
                values = jax.vmap(jax.vmap(term.log_density, in_axes=(0, None)))(points @ back.T, term.held)
                total = total + jnp.sum(values @ weights)
            return total

        scale = np.linalg.cholesky(fit.covariance)
        value, (of_mean, of_scale) = jax.jit(jax.value_and_grad(bound, argnums=(0, 1)))(fit.posterior.mean, scale)
    assert float(value) == pytest.approx(fit.bound, abs=1e-8)
    assert np.abs(scale.T @ of_mean).max() < 1e-3
    assert np.abs(np.tril(scale.T @ of_scale)).max() < 1e-3


def test_the_check_knows_nothing_of_projections_and_agrees(fit):
    assert abs(fit.gap) < 0.5
    assert fit.shortfall < 0.5
    assert "draws" in fit.verdict


def test_a_sparse_fit_is_asked_as_any_other(fit, tmp_path):
    points = fit.posterior.sample(5, seed=1)
    dense = np.linalg.inv(fit.covariance)
    away = points - fit.posterior.mean
    by_hand = -0.5 * np.einsum("ni,ij,nj->n", away, dense, away) + 0.5 * np.linalg.slogdet(dense)[1]
    by_hand -= 0.5 * len(dense) * np.log(2.0 * np.pi)
    np.testing.assert_allclose(fit.posterior.log_density(points), by_hand, rtol=1e-8)
    mean, covariance = fit.posterior.marginal(["log_sd", "slope[2]"])
    places = fit.posterior.places(["log_sd", "slope[2]"])
    np.testing.assert_allclose(covariance, fit.covariance[np.ix_(places, places)], atol=1e-12)
    np.testing.assert_allclose(mean, fit.posterior.mean[places])
    with pytest.raises(ValueError, match="did you mean 'slope'"):
        fit.posterior.marginal("slop")
    natural = np.exp(fit.posterior.sample(20_000, seed=2)[:, fit.posterior.places("slope")])
    np.testing.assert_allclose(fit.mean["slope"], natural.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(fit.sd["slope"], natural.std(axis=0), rtol=0.05)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    for kept in ("mean", "values"):
        np.testing.assert_array_equal(getattr(loaded.posterior.member, kept), getattr(fit.posterior.member, kept))
    np.testing.assert_array_equal(loaded.posterior.variance(), fit.posterior.variance())
    assert loaded.attach(item_response()).origin is not None


def test_a_covariance_that_cannot_be_held_is_refused_in_our_words():
    dim = 40_000
    pattern = make_pattern(dim, np.zeros(0, int), np.zeros(0, int))
    values = np.zeros(pattern.size)
    values[pattern.diagonal] = 4.0
    posterior = Posterior(SparseGaussian(np.zeros(dim), values, pattern))
    assert posterior.marginal([3, 7]).sd == pytest.approx([0.5, 0.5])
    for ask in (lambda: posterior.marginal(range(dim)), lambda: posterior.covariance):
        with pytest.raises(ValueError, match=r"ask for .*posterior\.variance\(\)"):
            ask()


def test_a_diagnosis_has_the_errors_of_the_draws_and_the_response(fit):
    diagnosis = fit.diagnose(replicates=2, samples=200, progress=False)
    assert diagnosis.optimisation_error < 1e-4
    errors = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(diagnosis.mean_error)])
    assert 0.0 < errors.max() < 0.2
    response = diagnosis.linear_response.of(["ability[3]"])
    assert 0.8 < response.sd[0] / fit.posterior.marginal("ability[3]").sd[0] < 1.3
    between = diagnosis.linear_response.of(lambda p: p["ability"][3] - p["ability"][4])
    covariance = diagnosis.linear_response.of(["ability[3]", "ability[4]"]).covariance
    assert between.sd == pytest.approx(np.sqrt(covariance.trace() - 2.0 * covariance[0, 1]), rel=5e-3)
    assert between.mean == pytest.approx(fit.mean["ability"][3] - fit.mean["ability"][4])
    with pytest.raises(ValueError, match="give a function of the parameters, a name, or several names"):
        diagnosis.linear_response.of([3])
    assert "ability[" in str(fit.summary())  # those that other draws move most


def squares(seen, row, *, hyper):
    return norm.logpdf(row, seen["w"] + seen["u"], jnp.exp(hyper))


def unit(seen):
    return norm.logpdf(seen["u"]) + 0.0 * 1.0


def wide(seen):
    return norm.logpdf(seen["w"], 0.0, 2.0)


def test_gaussian_models_are_exact_with_the_fewest_draws_and_hyperparameters_are_raised():
    random = np.random.default_rng(9)
    design, group = random.standard_normal((60, 3)), np.repeat(np.arange(12), 5)
    y = design @ np.array([1.0, -0.5, 0.2]) + random.standard_normal(12)[group] + 0.5 * random.standard_normal(60)
    target = qd.sum_of(
        qd.each(squares, y, sees={"w": qd.dot(design), "u": group}),
        qd.each(unit, sees={"u": qd.each_entry}),
        qd.each(wide, sees={"w": qd.each_entry}),
    )
    start = {"w": np.zeros(3), "u": np.zeros(12)}
    fit = qd.fit(target, start, hyper=np.asarray(0.3), draws=8, tolerance=1e-6, progress=False)

    def evidence(log_sd):
        covariance = 4.0 * design @ design.T + (group[:, None] == group) + np.exp(2.0 * log_sd) * np.eye(60)
        return -0.5 * (60 * np.log(2.0 * np.pi) + np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))

    grid = np.linspace(-2.0, 1.0, 3001)
    best = grid[np.argmax([evidence(value) for value in grid])]
    assert float(fit.hyper) == pytest.approx(best, abs=2e-3)
    assert fit.bound == pytest.approx(evidence(float(fit.hyper)), abs=1e-6)
    assert fit.check_bound == pytest.approx(fit.bound, abs=1e-6)
    noise = np.exp(2.0 * float(fit.hyper))
    whole = np.concatenate([np.eye(12)[group], design], axis=1)
    precision = whole.T @ whole / noise + np.diag([1.0] * 12 + [0.25] * 3)
    np.testing.assert_allclose(fit.posterior.member.precision.toarray(), precision, rtol=1e-4, atol=1e-8)


def around(seen, row, *, hyper):
    return norm.logpdf(row, hyper["centre"] + seen["u"], jnp.exp(hyper["log_noise"]))


def spread(seen, *, hyper):
    return norm.logpdf(seen["u"], 0.0, jnp.exp(hyper["log_sd"]))


def test_hyperparameters_that_go_with_the_posterior_take_few_rounds():
    """A centre that the effects follow, and the sds of both: by steps on each alone it takes hundreds of rounds."""
    random, group = np.random.default_rng([1, 4]), np.repeat(np.arange(6), 40)
    y = 3.0 + 0.5 * random.standard_normal(6)[group] + random.standard_normal(240)

    def lost(numbers):
        centre, log_sd, log_noise = numbers
        noise, means = np.exp(2.0 * log_noise), y.reshape(6, 40).mean(axis=1)
        between = np.exp(2.0 * log_sd) + noise / 40
        within = np.sum((y.reshape(6, 40) - means[:, None]) ** 2)
        normal = 240 * np.log(2.0 * np.pi) + 6 * np.log(40 * between) + 234 * np.log(noise)
        return 0.5 * (normal + within / noise + np.sum((means - centre) ** 2) / between)

    target = qd.sum_of(qd.each(around, y, sees={"u": group}), qd.each(spread, sees={"u": qd.each_entry}))
    hyper = {"centre": np.asarray(0.0), "log_sd": np.asarray(0.0), "log_noise": np.asarray(0.5)}
    fit = qd.fit(target, {"u": np.zeros(6)}, hyper=hyper, draws=16, progress=False)
    assert fit.bound == pytest.approx(-optimize.minimize(lost, [3.0, -2.0, 0.0]).fun, abs=2e-4)
    assert fit.n_objective_evaluations < 40


def logistic(seen, row):
    score = seen["a"] - seen["b"]
    return row * score - jnp.logaddexp(0.0, score)


def unit_priors(seen):
    return norm.logpdf(seen["a"])


def pairs(order, relabelled, *priors):
    return qd.sum_of(
        qd.each(logistic, ANSWER[order], sees={"a": relabelled[PERSON[order]], "b": ITEM[order]}),
        *(qd.each(unit_priors, sees={"a": qd.each_entry}) for _ in priors),
    )


def test_a_sum_that_is_flat_somewhere_is_not_fitted():
    start, every = {"a": np.zeros(PEOPLE), "b": np.zeros(ITEMS)}, np.arange(len(ANSWER))
    with pytest.raises(qd.FitError, match=r"run away|prior"):
        qd.fit(pairs(every, np.arange(PEOPLE)), start, progress=False)


def test_a_row_without_a_finite_log_density_is_named():
    rows = qd.each(
        lambda seen, y: norm.logpdf(y, seen["a"]), np.array([0.0, 1.0, np.inf, 2.0]), sees={"a": qd.each_entry}
    )
    with pytest.raises(qd.FitError, match=r"-inf in row 2 of the 4 that see a\)"):
        qd.fit(qd.sum_of(rows), {"a": np.zeros(4)}, progress=False)


def test_parameters_along_which_a_sum_does_not_fall_off_are_named():
    halves = qd.each(lambda seen: -jnp.logaddexp(0.0, seen["a"]), sees={"a": qd.each_entry})
    fit = qd.fit(qd.sum_of(halves), {"a": np.zeros(2)}, progress=False, throw=False)
    assert "does not fall off as a[0] falls, or a[1] falls without end" in fit.message
    design, labels = np.column_stack([np.ones(10), np.arange(10.0)]), (np.arange(10) > 4) * 1.0
    separable = qd.each(
        lambda seen, y: y * seen["w"] - jnp.logaddexp(0.0, seen["w"]), labels, sees={"w": qd.dot(design)}
    )
    fit = qd.fit(qd.sum_of(separable), {"w": np.zeros(2)}, progress=False, throw=False)
    assert "does not fall off as w[0] falls, w[1] grows together without end" in fit.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draws": 9}, "come in pairs"),
        ({"draws": qd.matched(66, 33)}, "has no meaning with family='sparse'"),
        ({"method": qd.Alternating()}, "has no meaning with family='sparse'"),
    ],
)
def test_what_a_sparse_fit_cannot_do_is_said(options, words):
    start = {"a": np.zeros(PEOPLE), "b": np.zeros(ITEMS)}
    with pytest.raises(ValueError, match=words):
        qd.fit(pairs(np.arange(200), np.arange(PEOPLE), 1), start, family="sparse", progress=False, **options)
    with pytest.raises(ValueError, match="give a sum of terms"):
        qd.fit(lambda w: -0.5 * w @ w, np.zeros(3), family="sparse", progress=False)


def test_a_design_with_as_many_weights_as_rows_begins_with_more_draws():
    """There the errors of a row have few others to average out with."""
    design, labels = np.random.default_rng(4).standard_normal((10, 3)), np.eye(3)[np.arange(10) % 3]
    rows = qd.each(lambda seen, row: row @ seen["w"] - jax.nn.logsumexp(seen["w"]), labels, sees={"w": qd.dot(design)})
    prior = qd.each(lambda seen: jnp.sum(norm.logpdf(seen["w"])), sees={"w": qd.each_entry})
    fit = qd.fit(qd.sum_of(rows, prior), {"w": np.zeros((3, 3))}, progress=False)
    assert fit.converged
    assert fit.n_draws >= 256
    assert abs(fit.gap) < 0.05


def test_one_draw_says_how_far_values_would_move_each_mean(fit):
    n, z = len(fit.log_ratios), fit.check_draws
    moves = moves_of_means(fit.posterior, fit.log_ratios, [z[:100], z[100:]])
    along = (fit.posterior.transform(z) - fit.posterior.mean) / np.sqrt(fit.posterior.variance())
    np.testing.assert_allclose(moves, (fit.log_ratios - fit.log_ratios.mean()) @ along / n, atol=1e-10)
    name = fit.space.coordinate_names().index(fit.drift.mean_name)
    np.testing.assert_allclose(abs(moves[name]), fit.drift.mean)
    beyond = fit.log_ratios.copy()
    beyond[3] = -np.inf
    assert np.isfinite(moves_of_means(fit.posterior, beyond, [z])).all()
