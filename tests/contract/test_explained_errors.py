"""What JAX cannot trace in a person's own function: named with their line, in our words; their own errors stay theirs."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.special
import scipy.stats

import quenched as qd
from quenched.targets import call

START = {"mu": 0.5, "weights": np.ones(2)}
TABLE = [0.0, 1.0, 2.0]


def branch(p):
    if p["mu"] > 0:
        return -(p["mu"] ** 2)
    return p["mu"]


def of_numpy(p):
    return -np.sum(np.log(np.exp(p["weights"])))


def of_scipy(p):
    return scipy.stats.norm.logpdf(p["mu"])


def of_scipy_special(p):
    return scipy.special.gammaln(p["mu"])


def into_numpy(p):
    both = np.zeros(2)
    both[0] = p["mu"]
    return both.sum()


def to_float(p):
    return -(float(p["mu"]) ** 2)


def of_math(p):
    return math.log(p["mu"])


def by_index(p):
    return TABLE[p["mu"].astype(int)]


def by_mask(p):
    return jnp.sum(p["weights"][p["weights"] > 0])


def inside_another(p):
    return jax.jit(branch)(p)


def sorted_by_python(p):
    return max(p["mu"], 0.0)


def so_often(p):
    return -sum(p["mu"] ** 2 for _ in range(p["mu"]))


def by_fraction(p):
    return TABLE[p["mu"]]


def changed_in_place(p):
    pair = jnp.zeros(2)
    pair[0] = p["mu"]
    return pair.sum()


def of_one_tuple(p, data):
    return -jnp.sum((data - p["mu"]) ** 2)


def of_a_dict(p):
    return -jnp.sum((p * 2.0) ** 2)


def of_two_lengths(p, data):
    return -jnp.sum((data["x"] @ p["weights"] - data["y"]) ** 2)


def of_other_columns(p, data):
    return -jnp.sum(jnp.dot(data["y"], p["weights"]) ** 2)


def of_too_many_indices(p):
    return -(p["mu"][0] ** 2)


MISSHAPEN = {
    of_one_tuple: ("data is a tuple of 2", "take what it holds as data[0], or give one array", TypeError),
    of_a_dict: ("p is a dict of 2", "by its names, p['mu']", TypeError),
    of_two_lengths: ("(4,), (3,)", "data['y'] has shape (3,) and data['x'] has shape (4, 2)", TypeError),
    of_other_columns: ("(3,) and (2,)", "data['y'] has shape (3,) and p['weights'] has shape (2,)", TypeError),
    of_too_many_indices: ("array is 0-dimensional", "p['mu'] has shape ()", IndexError),
}

UNTRACEABLE = {
    branch: ('if p["mu"] > 0:', "use jnp.where", jax.errors.TracerBoolConversionError),
    inside_another: ('if p["mu"] > 0:', "use jnp.where", jax.errors.TracerBoolConversionError),
    sorted_by_python: ('return max(p["mu"], 0.0)', "jnp.maximum", jax.errors.TracerBoolConversionError),
    of_numpy: ('return -np.sum(np.log(np.exp(p["weights"])))', "jax.numpy", jax.errors.TracerArrayConversionError),
    of_scipy: ('return scipy.stats.norm.logpdf(p["mu"])', "jax.scipy.stats", jax.errors.TracerArrayConversionError),
    of_scipy_special: ('return scipy.special.gammaln(p["mu"])', "jax.scipy", jax.errors.TracerArrayConversionError),
    into_numpy: ('both[0] = p["mu"]', "array.at[index].set(value)", ValueError),
    to_float: ('return -(float(p["mu"]) ** 2)', "from_value_and_grad", jax.errors.ConcretizationTypeError),
    of_math: ('return math.log(p["mu"])', "use jax.numpy instead of math", jax.errors.ConcretizationTypeError),
    by_index: (
        'return TABLE[p["mu"].astype(int)]',
        "jnp.asarray(values)[index]",
        jax.errors.TracerIntegerConversionError,
    ),
    so_often: ('for _ in range(p["mu"])', "jax.lax.fori_loop", TypeError),
    by_fraction: ('return TABLE[p["mu"]]', "jnp.asarray(values)[index]", TypeError),
    changed_in_place: ('pair[0] = p["mu"]', "pair = pair.at[index].set(value)", TypeError),
    by_mask: ('p["weights"][p["weights"] > 0]', "jnp.where", jax.errors.NonConcreteBooleanIndexError),
}


def number_of(line):
    """In this file."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, text in enumerate(file, 1) if line in text)


@pytest.mark.parametrize("function", MISSHAPEN, ids=lambda function: function.__name__)
def test_shapes_that_do_not_go_together_are_shown_with_the_line(function):
    wrong, remedy, cause = MISSHAPEN[function]
    data = (1, 2.5) if function is of_one_tuple else {"x": np.ones((4, 2)), "y": np.ones(3)}
    takes_data = function.__code__.co_argcount == 2
    with pytest.raises(ValueError, match=r"^log_density: ") as caught:
        qd.fit(function, START, data=data if takes_data else None, progress=False)
    message = str(caught.value)
    assert f"test_explained_errors.py, line {function.__code__.co_firstlineno + 1}, `" in message
    assert wrong in message
    assert remedy in message
    assert isinstance(caught.value.__cause__, cause)
    assert isinstance(caught.value, cause)  # who catches what JAX raises still does


@pytest.mark.parametrize("said", ["cannot reshape this table", "unsupported operand type(s) for tuple"])
def test_their_own_errors_stay_theirs_whatever_the_words(said):
    theirs = TypeError(said)

    def failing(p, data):
        raise theirs

    with pytest.raises(TypeError) as caught:
        qd.fit(failing, START, data=(1, 2.5), progress=False)
    assert caught.value is theirs


@pytest.mark.parametrize("function", UNTRACEABLE, ids=lambda function: function.__name__)
def test_what_cannot_be_traced_is_explained(function):
    line, remedy, cause = UNTRACEABLE[function]
    with pytest.raises(ValueError, match=r"^log_density: ") as caught:
        qd.fit(function, START, progress=False)
    message = str(caught.value)
    assert f"test_explained_errors.py, line {number_of(line)}, `" in message
    assert line in message
    assert remedy in message
    assert isinstance(caught.value.__cause__, cause)


def by_a_name(w):
    return -jnp.sum(w["slope"] ** 2)


def test_an_array_that_is_asked_by_a_name_is_told_what_it_is():
    with pytest.raises(KeyError, match=r"w is an array of shape \(3,\), and has no 'slope'; .* give a dict of arrays"):
        qd.fit(by_a_name, np.zeros(3), progress=False)


def test_a_type_error_of_their_own_is_theirs():
    with pytest.raises(TypeError, match=r"^no such table"):
        qd.fit(lambda p: exec('raise TypeError("no such table")'), START, progress=False)


def forgotten(p):
    -(p["mu"] ** 2)


RETURNED = {
    "nothing": (forgotten, r"returned None \(.*test_explained_errors.py, line \d+\); is its `return` missing\?"),
    "nothing, in part": (partial(lambda a, p: None, 1), r"returned None \(.*line \d+\)"),
    "tuple": (lambda p: (p["mu"], 1.0), r"returned a tuple of 2 \(.*\); it must return one number"),
    "list": (lambda p: [p["mu"]], "returned a list of 1"),
    "dict": (lambda p: {"a": p["mu"]}, "returned a dict of 1"),
    "str": (lambda p: "much", r"returned a str \("),
}


@pytest.mark.parametrize("kind", RETURNED)
def test_what_is_no_number_is_named(kind):
    function, message = RETURNED[kind]
    with pytest.raises(ValueError, match=f"log_density {message}"):
        qd.fit(function, START, progress=False)


# Keys.


def misspelt(p):
    return -(p["nu"] ** 2)


def nested(p, data):
    return -(p["mu"] ** 2) * data["school"]["effekt"]


def over_lines(p):
    é = p  # columns are counted in bytes
    return (0.0 if é is None else 1.0) * -(
        é[
            "weight"
        ].sum()
    )  # fmt: skip


def test_the_keys_that_there_are_are_named():
    with pytest.raises(KeyError) as caught:
        qd.fit(misspelt, START, progress=False)
    assert isinstance(caught.value, ValueError)
    line = 'return -(p["nu"] ** 2)'
    message = f"line {number_of(line)}, `{line}`: p has no 'nu'; it has 'mu', 'weights'."
    assert message in str(caught.value)
    with pytest.raises(ValueError, match=r"data\['school'\] has no 'effekt'; it has 'effect'; did you mean 'effect'\?"):
        qd.fit(nested, START, data={"school": {"effect": 1.0}}, progress=False)
    with pytest.raises(ValueError, match="é has no 'weight'; it has 'mu', 'weights'; did you mean 'weights'"):
        qd.fit(over_lines, START, progress=False)
    with pytest.raises(ValueError, match="q has no 'nu'; it has 'mu', 'weights'"):
        qd.fit(lambda p: jax.jit(lambda q: q["nu"])(p), START, progress=False)


def test_a_column_that_is_asked_for_as_an_attribute_is_told_the_brackets():
    columns = pd.DataFrame({"y": [1.0, 2.0], "x": [0, 1]})
    with pytest.raises(AttributeError, match=r"`qd.fit\(lambda p, data: .*in brackets: \['y'\]") as caught:
        qd.fit(lambda p, data: -jnp.sum((data.y - p["mu"]) ** 2), START, data=columns, progress=False)
    assert isinstance(caught.value.__cause__, AttributeError)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        qd.fit(lambda p, data: data.absent, START, data=columns, progress=False)


def test_the_keys_of_a_host_function_too():
    with pytest.raises(ValueError, match="p has no 'nu'; it has 'mu', 'weights'"):
        qd.fit(qd.from_value_and_grad(lambda p: (p["nu"], p)), START, progress=False)


SETTINGS = {"depth": 1}


def own_dict(p):
    return p["mu"] * SETTINGS["width"]


def own_key_error(p):
    raise KeyError("mu")


def own_value_error(p):
    raise ValueError("weights must not be 1")


def division(p):
    return p["mu"] / 0 * (1 // 0)


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (own_dict, KeyError, "'width'"),
        (own_key_error, KeyError, "'mu'"),
        (own_value_error, ValueError, "weights must not be 1"),
        (division, ZeroDivisionError, None),
    ],
)
def test_a_persons_own_errors_stay_as_they_are(function, kind, text):
    with pytest.raises(kind) as caught:
        qd.fit(function, START, progress=False)
    assert type(caught.value) is kind
    assert caught.value.__cause__ is None
    assert text is None or str(caught.value) == text


# Regressions.


def test_the_function_of_a_regression_is_explained_too():
    def line(p, X):
        return p["slope"] * X["x"] if p["slope"] > 0 else X["x"]

    X = {"x": np.arange(3.0)}
    with pytest.raises(ValueError, match=r"^f: .*line \d+, `return p\[.*use jnp.where"):
        qd.fit(qd.regression(line, X, np.ones(3)), {"slope": 1.0}, progress=False)
    with pytest.raises(ValueError, match=r"^f: .*X has no 'z'; it has 'x'"):
        qd.fit(qd.regression(lambda p, X: p["slope"] * X["z"], X, np.ones(3)), {"slope": 1.0}, progress=False)
    with pytest.raises(ValueError, match=r"f\(parameters, X\) returned NoneType; it must return the shape of y"):
        qd.fit(qd.regression(lambda p, X: None, X, np.ones(3)), {"slope": 1.0}, progress=False)


def test_a_function_without_a_line_of_its_own():
    """Of C, or made where there is no source: the words remain."""
    made: dict = {}
    exec("def f(p):\n    return 1.0 if p > 0 else 0.0", made)
    with pytest.raises(ValueError, match=r"log_density: <string>, line 2: Python's `if`"):
        jax.jit(lambda w: call(made["f"], w, None, None))(1.0)
    with pytest.raises(ValueError, match=r"log_density: NumPy and SciPy cannot"):
        jax.jit(lambda w: call(np.linalg.norm, w, None, None))(1.0)


class Unshowable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("target", [qd.from_value_and_grad, qd.from_value, lambda function: function])
def test_an_exception_that_cannot_be_shown_stays_the_users(target):
    def function(w):
        raise Unshowable

    with pytest.raises(Unshowable):
        qd.fit(target(function), np.zeros(2), progress=False)
