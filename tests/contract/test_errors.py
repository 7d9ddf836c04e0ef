"""Bad input: each a message that says what is wrong, where, and what to do. Misuse is a `ValueError`."""

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from quenched.diagnostics import resample


def normal(w):
    return -0.5 * jnp.sum(w**2)


def with_data(w, data):
    return -0.5 * jnp.sum((data["y"] - data["x"] @ w) ** 2) - 0.5 * jnp.sum(w**2)


def fit(log_density=normal, start=None, **options):
    return qd.fit(log_density, np.zeros(2) if start is None else start, progress=False, **options)


GOOD = {"x": np.ones((4, 2)), "y": np.ones(4)}


# The start.


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({}, r"start: \{\} holds no parameters; give an array or a pytree"),
        ([], r"start: \[\] holds no parameters"),
        ({"a": np.zeros(0)}, "every leaf has size 0; there is nothing to infer"),
        ({"a": True}, "start: a has dtype bool"),
        ({"a": [1.0, True]}, "start: a.1 has dtype bool"),
        (np.zeros(2, complex), "parameters has dtype complex128; parameters must be arrays of real numbers"),
        ({"a": "one"}, "start: a has dtype <U3"),
        ({"a": object()}, "start: a has dtype object"),
        ({"a": np.array([0.0, np.nan])}, "start: a = .*nan.* is not finite; give a finite starting value"),
        ({"a": np.inf}, "start: a = inf is not finite"),
    ],
)
def test_bad_starts(start, message):
    with pytest.raises(ValueError, match=message):
        fit(start=start)


def test_a_fit_as_a_start_of_what_cannot_go_on_from_it():
    with pytest.raises(ValueError, match=r"start: is a fit.*give its mean, start=fit\.mean"):
        qd.laplace(normal, fit())


@pytest.mark.parametrize("ends", [(np.ma.masked, 1.0), (0.0, np.ma.masked), (np.ma.array([0.0], mask=True), 1.0)])
def test_ends_of_an_interval_that_are_masked(ends):
    with pytest.raises(ValueError, match=r"interval.*both ends must be finite numbers"):
        qd.interval(*ends)


def test_true_values_that_are_no_numbers():
    simulate = lambda random: (np.where(random.random() < 0.1, np.nan, 0.0), random.normal(size=3))
    with pytest.raises(ValueError, match=r"simulate: its parameters.*NaN"):
        qd.calibrate(simulate, lambda w, y: -0.5 * jnp.sum((y - w) ** 2), 0.0, n=40)


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        ({"rate": qd.positive}, "start: rate = -1.0 is outside its support.*greater than 0"),
        ({"rate": qd.interval(0.0, 1.0)}, "start: rate = -1.0 is outside its support.*between 0.0 and 1.0"),
        ({"scale": qd.positive}, r"no parameter is called 'scale'; start has \['rate', 'w'\]"),
        ({"rate": "positive"}, "transforms: rate = 'positive' is not a transform; use positive, above"),
    ],
)
def test_starts_and_transforms_that_do_not_agree(transforms, message):
    with pytest.raises(ValueError, match=message):
        fit(lambda p: -(p["rate"] ** 2), {"rate": -1.0, "w": 0.0}, transforms=transforms)


# What the log density returns.


@pytest.mark.parametrize(
    ("log_density", "message"),
    [
        (lambda w: -0.5 * w**2, r"log_density returned an array of shape \(2,\); it must return one number: sum over"),
        (lambda w: jnp.zeros((3, 2)), r"returned an array of shape \(3, 2\)"),
        (lambda w: jnp.sum(w > 0), "log_density returned dtype int.*; it must return a real number"),
        (lambda w: jnp.sum(w) * 1j, "log_density returned dtype complex128"),
        (lambda w: w[0] > 0, "log_density returned dtype bool"),
    ],
)
def test_log_densities_that_return_no_real_number(log_density, message):
    with pytest.raises(ValueError, match=message):
        fit(log_density)


def test_a_log_density_that_cannot_be_called():
    with pytest.raises(ValueError, match=r"log_density=3.0 is not callable; give a function.*quenched.regression"):
        fit(3.0)
    with pytest.raises(ValueError, match=r"fun=3.0 is not callable; give fun\(parameters\) -> \(value, gradient\)"):
        qd.from_value_and_grad(3.0)


def test_shapes_that_do_not_fit_are_reported_by_jax_itself():
    with pytest.raises(TypeError, match=r"dot_general|matmul"):
        fit(with_data, np.zeros(3), data=GOOD)


@pytest.mark.parametrize(
    ("log_density", "options", "message"),
    [
        (normal, {"data": GOOD}, r"it is called as log_density\(parameters, data\), but takes \(w\): too many"),
        (normal, {"hyper": 1.0}, r"it is called as log_density\(parameters, hyper\), but takes \(w\)"),
        (with_data, {}, r"it is called as log_density\(parameters\), but takes \(w, data\): missing .*'data'"),
    ],
)
def test_log_densities_of_other_arguments(log_density, options, message):
    with pytest.raises(ValueError, match=message):
        fit(log_density, **options)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda w: -0.5 * float(w @ w), r"fun returned float; it must return \(value, gradient\)"),
        (lambda w: (-0.5 * w**2, -w), r"fun returned a value of shape \(2,\); it must return one number"),
        (
            lambda w: (0.0, np.zeros(3)),
            r"fun returned a gradient of shapes \(\(3,\),\); the parameters have \(\(2,\),\)",
        ),
        (lambda w: (0.0, {"w": w}), "fun returned a gradient with structure .*shaped like the parameters"),
    ],
)
def test_host_functions_that_return_something_else(function, message):
    with pytest.raises(ValueError, match=message):
        fit(qd.from_value_and_grad(function))


# Data.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {**GOOD, "y": np.array([1.0, np.nan, 2.0, np.nan])},
            r"data: y has 2 NaN, the first at index \(1,\); remove or",
        ),
        (np.array([[1.0, 2.0], [np.nan, 0.0]]), r"data: data has 1 NaN, the first at index \(1, 0\)"),
        ({**GOOD, "y": np.array(["a", "b"])}, "data: y has dtype <U1; give arrays of numbers"),
        ({**GOOD, "y": 1j}, "data: y has dtype complex128"),
    ],
)
def test_bad_data(data, message):
    with pytest.raises(ValueError, match=message):
        fit(with_data, data=data)


def test_bad_regressions():
    x, y = np.ones((4, 2)), np.ones(4)
    line = lambda w, x: x @ w
    with pytest.raises(ValueError, match="y: is empty; there is nothing to fit"):
        qd.regression(line, x[:0], y[:0])
    with pytest.raises(ValueError, match=r"has 1 NaN, the first at index"):
        fit(qd.regression(line, x, np.array([1.0, np.nan, 1.0, 1.0])))
    with pytest.raises(
        ValueError, match=r"f\(parameters, X\) returned shape \(4,\); it must return the shape of y, \(4, 1\)"
    ):
        fit(qd.regression(line, x, y[:, None]))
    with pytest.raises(ValueError, match=r"f: f\(parameters, X\) failed with:.*it must return the shape of y"):
        fit(qd.regression(lambda w, x: x @ w[:1], x, y))
    with pytest.raises(
        ValueError, match=r"f: .*test_errors.py, line \d+, `.*w is an array of shape \(2,\), and has no 'missing'"
    ):
        fit(qd.regression(lambda w, x: x @ w["missing"], x, y))
    for name in ("prior_precision", "noise_precision"):
        for bad in (0.0, -1.0, np.nan):
            with pytest.raises(ValueError, match=f"{name}={bad}: a precision must be a positive number"):
                qd.regression(line, x, y, **{name: bad})


def test_bad_priors():
    with pytest.raises(ValueError, match=r"prior_precision=-1.0: a precision must be a positive number"):
        qd.with_gaussian_prior(normal, prior_precision=-1.0)
    with pytest.raises(ValueError, match="give either it or prior_mean and prior_covariance, not both"):
        qd.with_gaussian_prior(normal, prior_precision=1.0, prior_mean=np.zeros(2))
    with pytest.raises(ValueError, match=r"prior_mean has shape \(3,\) and prior_covariance \(2, 2\).*need \(2,\)"):
        fit(qd.with_gaussian_prior(normal, prior_mean=np.zeros(3)))
    with pytest.raises(ValueError, match=r"prior_covariance \(3, 3\)"):
        fit(qd.with_gaussian_prior(normal, prior_covariance=np.eye(3)))
    with pytest.raises(ValueError, match="prior_covariance: is not positive definite"):
        fit(qd.with_gaussian_prior(normal, prior_covariance=np.diag([1.0, -1.0])))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (
            {"prior_covariance": [[1.0, 0.9], [0.0, 1.0]]},
            r"prior_covariance: is not symmetric; its entries at \(0, 1\) and \(1, 0\) are 0.9 and 0, 0.9 apart",
        ),
        ({"prior_covariance": np.ones(2)}, r"prior_covariance has shape \(2,\); a square matrix is needed"),
        ({"prior_covariance": 1j * np.eye(2)}, "prior_covariance: is complex"),
        ({"prior_covariance": [["a", "b"], ["b", "a"]]}, "prior_covariance: has dtype <U1; give real numbers"),
        ({"prior_covariance": np.diag([1.0, np.inf])}, r"prior_covariance: has 1 infinite.*index \(1, 1\)"),
        ({"prior_mean": [0.0, 1j]}, "prior_mean: is complex, and its imaginary part would be lost"),
        ({"prior_mean": [np.nan, np.nan]}, r"prior_mean: has 2 NaN, the first at index \(0,\)"),
        ({"prior_mean": [0.0, -np.inf]}, r"prior_mean: has 1 infinite values, the first at index \(1,\)"),
        ({"prior_precision": 1j}, r"prior_precision=1j: a precision must be a positive number"),
    ],
)
def test_priors_are_refused_where_they_are_given(prior, message):
    with pytest.raises(ValueError, match=message):
        qd.with_gaussian_prior(normal, **prior)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda x, y: qd.with_gaussian_prior(3),
            r"log_likelihood=3 is not callable; give log_likelihood\(parameters\)",
        ),
        (lambda x, y: qd.regression(3, x, y), r"f=3 is not callable; give f\(parameters, X\)"),
        (lambda x, y: qd.from_value_and_grad(3), r"fun=3 is not callable; give fun\(parameters\)"),
        (lambda x, y: qd.regression(len, x, y + 1j), "y: is complex, and its imaginary part would be lost"),
        (lambda x, y: qd.regression(len, x, y / [1, 0, 1]), r"y: has 1 infinite values, the first at index \(1,\)"),
        (lambda x, y: qd.regression(len, x, ["a"]), "y: has dtype <U1; give real numbers"),
        (lambda x, y: qd.regression(len, {"a": x + 1j}, y), r"X\['a'\]: is complex"),
        (lambda x, y: qd.regression(len, [x, x / 0], y), r"X\[1\]: has 3 infinite values, the first at index \(0,\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_targets_are_refused_where_they_are_made(make, message):
    with pytest.raises(ValueError, match=message):
        make(np.ones(3), np.ones(3))


@pytest.mark.parametrize(
    ("hyper", "message"),
    [
        ({"h": True}, "hyper: h = True; hyperparameters must be finite floats"),
        ({"h": np.nan}, "hyper: h = nan"),
        (np.inf, "hyper: hyper = inf"),
        ({"h": "big"}, "hyper: h = 'big'"),
    ],
)
def test_bad_hyperparameters(hyper, message):
    with pytest.raises(ValueError, match=message):
        fit(lambda w, hyper: normal(w), hyper=hyper)


def test_host_functions_have_no_hyperparameters():
    with pytest.raises(ValueError, match="hyper: a host function gives no gradient for hyperparameters"):
        fit(qd.from_value_and_grad(lambda w: (0.0, w)), hyper={"h": 1.0})


# Draws.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 2}, "draws=2: .*couples 2 coordinates; the smallest number that works is 4"),
        ({"draws": 3}, "the smallest number that works is 4"),
        ({"draws": 7}, "draws=7: matched draws come in pairs.*the smallest number that works is 8"),
        ({"draws": 1, "family": "diagonal"}, "draws=1: .*couples 1 coordinates; the smallest number that works is 2"),
        ({"draws": 2, "family": qd.Blocks([2])}, "the smallest number that works is 4"),
        ({"draws": "many"}, "draws='many': give a whole number or Draws such as quenched.matched"),
        ({"draws": True}, "draws=True: give a whole number"),
        ({"draws": 8.0}, "draws=8.0: give a whole number"),
        ({"draws": qd.matched(12, 3)}, "draws have 3 coordinates, but the parameters have 2 on the real line"),
        ({"draws": qd.iid(2, 2)}, "2 iid draws do not span the 2 coordinates.*no maximum; use at least 3 draws"),
        ({"draws": qd.antithetic(2, 2)}, "do not span.*use at least 4 draws, or family='diagonal'"),
    ],
)
def test_bad_draws(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)


@pytest.mark.parametrize("kind", [qd.iid, qd.antithetic, qd.sobol, qd.matched])
def test_the_number_of_draws_that_is_named_works(kind):
    """What the message asks for is enough."""
    least = {qd.iid: 3, qd.antithetic: 4, qd.sobol: 3, qd.matched: 4}[kind]
    assert np.isfinite(fit(lambda w: normal(w) - jnp.sum(w**4), draws=kind(least, 2, seed=1)).bound)


# Options.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"famly": "full"}, "famly: fit has no such option; did you mean family?"),
        ({"max_draw": 10}, "max_draw: fit has no such option; did you mean max_draws?"),
        ({"zzz": 1}, "zzz: fit has no such option; the options are .*family.*seed"),
        (
            {"family": "fulll"},
            "family='fulll' is not known; use 'auto', 'full', 'diagonal', 'warped', 'sparse', quenched.LowRank",
        ),
        ({"family": 3}, "family=3 is not known"),
        ({"start": {1: 0.0, "a": 0.0}}, "start=.*its keys cannot be sorted"),
        ({"family": qd.Blocks([1, 2])}, r"Blocks\(sizes=\[1, 2\]\) covers 3 coordinates, but the parameters have 2"),
        ({"method": "joint"}, r"method='joint' is not a method; use quenched.Joint\(\) or quenched.Alternating\(\)"),
        ({"seed": -1}, "seed=-1: a whole number of at least 0"),
        ({"seed": 1.5}, "seed=1.5: a whole number"),
        ({"starts": 0}, "starts=0: a whole number of at least 1"),
        ({"check": 1}, "check=1: a whole number of at least 2"),
        ({"max_draws": 1}, "max_draws=1: a whole number of at least 2"),
        ({"max_draws": 3}, "max_draws=3: this family couples 2 coordinates and needs 4 matched draws; allow as many"),
        ({"memory": 0}, "memory=0: a whole number of at least 1"),
        ({"tolerance": 0.0}, "tolerance=0.0: a positive number is needed"),
        ({"tolerance": "small"}, "tolerance='small': a positive number"),
        ({"max_seconds": -1.0}, "max_seconds=-1.0: a positive number"),
        ({"max_seconds": np.nan}, "max_seconds=nan: a positive number"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)


def test_what_is_asked_of_a_fit_is_read_too():
    with pytest.raises(ValueError, match=r"replicate: diagnose has no such option; did you mean replicates\?"):
        fit().diagnose(replicate=3)
    with pytest.raises(ValueError, match=r"fit='text': give a fit, as quenched\.fit returns it"):
        resample("text", 3)


@pytest.mark.parametrize("sizes", [[], [0, 2], [-1, 3], [1.5, 0.5]])
def test_bad_blocks(sizes):
    with pytest.raises(ValueError, match=r"Blocks\(sizes=.*give positive whole numbers, one per block"):
        qd.Blocks(sizes)


# Numbers that go wrong: `FitError`, with the partial result, naming the parameter.


def test_minus_infinity_at_the_start_names_the_parameter():
    def log_density(p):
        inside = jnp.all(p["scale"] > 0)
        return jnp.where(inside, -jnp.sum(p["w"] ** 2) - jnp.sum(p["scale"]), -jnp.inf)

    start = {"w": np.zeros(2), "scale": np.array([1.0, -0.5])}
    with pytest.raises(
        qd.FitError, match=r"the log density is -inf at the start; it becomes finite when scale\[1\] = -0.5 is moved"
    ) as caught:
        fit(log_density, start)
    assert "give the parameter a transform (positive, interval(a, b), ...)" in str(caught.value)
    assert caught.value.fit.status == "not_finite"


def test_nan_everywhere_blames_nobody():
    with pytest.raises(qd.FitError, match=r"the log density is nan at the start. Start inside the support"):
        fit(lambda w: jnp.nan * jnp.sum(w))


def test_an_infinite_gradient_at_the_start_names_the_parameter():
    log_density = lambda p: jnp.sqrt(p["tau"]) - p["tau"] - p["w"] ** 2
    with pytest.raises(
        qd.FitError, match=r"the log density is -?0, but its gradient is not finite in tau = 0. Look for a square root"
    ):
        fit(log_density, {"tau": 0.0, "w": 0.0})


@pytest.mark.parametrize("method", [qd.Joint(), qd.Alternating()], ids=["joint", "alternating"])
def test_a_gradient_that_is_not_finite_at_one_draw_names_the_parameter(method):
    """The value is fine there: the branch of `where` that is not taken spoils the gradient."""

    def log_density(p):
        safe = jnp.where(p["b"] < 0.5, 0.0 * jnp.sqrt(jnp.maximum(0.5 - p["b"], 0.0)), 0.0)
        return -0.5 * (p["a"] ** 2 + p["b"] ** 2) + safe

    with pytest.raises(qd.FitError, match=r"The gradient is not finite in b at a draw.*branch of a `where`") as caught:
        fit(log_density, {"a": 0.0, "b": 0.0}, method=method)
    assert caught.value.fit.status == "no_ascent"
    assert np.isfinite(caught.value.fit.bound)


def test_a_log_density_that_is_finite_at_the_start_alone_names_a_draw():
    log_density = lambda p: jnp.where(p["b"] == 0.0, -0.5 * p["a"] ** 2, jnp.nan)
    with pytest.raises(qd.FitError, match=r"draws: the log density is nan at a draw close to the start, where b = "):
        fit(log_density, {"a": 0.0, "b": 0.0})


# Results and files.


def test_points_of_the_wrong_shape():
    posterior = problems.fitted("poisson").posterior
    for shape in ((3,), (4, 3), (2, 2, 2), ()):
        with pytest.raises(ValueError, match=r"w has shape .*; give \(2,\) or \(n, 2\)"):
            posterior.log_density(np.zeros(shape))


def test_a_missing_file(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"nothing.npz': there is no such file; save a fit there first with fit.save"
    ):
        qd.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("damage", ["cut short", "overwritten", "text", "other arrays", "no json", "empty", "a folder"])
def test_a_damaged_file(damage, tmp_path):
    path = problems.fitted("poisson").save(tmp_path / "fit.npz")
    content = bytearray(path.read_bytes())
    if damage == "cut short":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "overwritten":
        middle = len(content) // 2
        content[middle : middle + 64] = b"x" * 64
        path.write_bytes(content)
    elif damage == "text":
        path.write_text("a log of something else")
    elif damage == "other arrays":
        np.savez(path, weights=np.zeros(3))
    elif damage == "no json":
        np.savez(path, **{"fit.json": np.array("{")})
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        path.mkdir()
    with pytest.raises(ValueError, match=r"fit.npz': is not a saved fit, or is damaged"):
        qd.load(path)


def test_a_file_of_another_format(tmp_path):
    path = tmp_path / "fit.npz"
    np.savez(path, **{"fit.json": np.array('{"format": 99}')})
    with pytest.raises(ValueError, match="has format 99; this version reads format"):
        qd.load(path)


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 5}', "3"])
def test_a_file_that_is_json_but_no_fit(text, tmp_path):
    path = tmp_path / "fit.npz"
    np.savez(path, **{"fit.json": np.array(text)})
    with pytest.raises(ValueError, match="is not a saved fit, or is damaged"):
        qd.load(path)


def test_a_pickle_is_never_opened(tmp_path):
    """A file is data, not a program."""
    path = tmp_path / "fit.npz"
    np.savez(path, **{"fit.json": np.array([print], dtype=object)}, allow_pickle=True)
    with pytest.raises(ValueError, match="is not a saved fit, or is damaged"):
        qd.load(path)


NAME = "a\x1b[31m\u202e\n"


@pytest.mark.parametrize(
    "options",
    [
        {"data": {NAME: np.array([np.nan])}},
        {"data": {NAME: np.array(["x"])}},
        {"hyper": {NAME: np.nan}},
        {"transforms": {NAME: 3}},
        {NAME: 1},
    ],
)
def test_names_in_messages_are_harmless(options):
    with pytest.raises(ValueError, match=r"a\\x1b\[31m\\u202e\\n") as told:
        qd.fit(lambda w, data=None, hyper=None: -0.5 * w**2, 0.0, progress=False, **options)
    assert "\x1b" not in str(told.value)
