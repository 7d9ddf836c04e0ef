"""What a user may import is there, is documented, and is all there is."""

import inspect

import pytest

import quenched as qd
from doctests import BEYOND, INSIDE, documented, example_of
from quenched.posterior import Posterior

CONTRACT = {
    "Alternating",
    "Blocks",
    "Calibration",
    "Draws",
    "Fit",
    "FitError",
    "Fits",
    "Joint",
    "LowRank",
    "Model",
    "Sparse",
    "Status",
    "Streaming",
    "Warped",
    "above",
    "antithetic",
    "assess",
    "below",
    "calibrate",
    "correlation_cholesky",
    "dot",
    "each",
    "each_entry",
    "fit",
    "fit_many",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "from_torch",
    "from_value",
    "from_value_and_grad",
    "iid",
    "interval",
    "keep_programs",
    "laplace",
    "load",
    "matched",
    "nested",
    "ordered",
    "positive",
    "real",
    "regression",
    "simplex",
    "sobol",
    "sum_of",
    "whole",
    "with_gaussian_prior",
}
CLASSES = [getattr(qd, name) for name in qd.__all__ if inspect.isclass(getattr(qd, name))] + [Posterior]
FUNCTIONS = [name for name in qd.__all__ if inspect.isfunction(getattr(qd, name))]


def test_the_contract_is_what_is_public():
    assert set(qd.__all__) == CONTRACT
    assert len(qd.__all__) == len(CONTRACT)


def test_nothing_else_is_at_the_root():
    """Besides the contract only rooms, which are modules, and names that are nobody's business."""
    visible = {name for name, value in vars(qd).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert visible <= CONTRACT


def test_the_version_is_a_version():
    assert all(part.isdigit() for part in qd.__version__.split(".")[:2])


@pytest.mark.parametrize("name", qd.__all__)
def test_every_public_name_is_documented(name):
    thing = getattr(qd, name)
    text = inspect.getdoc(thing)
    assert text
    assert text[0].isupper() or text[0] in "`0123456789x" or text.startswith(("lower", "log"))
    assert text.split("\nExamples\n")[0].rstrip().endswith((".", "`", ")", "Fit"))


@pytest.mark.parametrize("name", [*qd.__all__, *BEYOND])
def test_every_public_name_has_an_example(name):
    """`tests/long/test_docstrings.py` runs them."""
    assert example_of(name).examples


@pytest.mark.parametrize("name", ["Fit", "Fits"])
def test_every_method_of_a_result_is_shown(name):
    """In an example of its class, or of a function that does the same."""
    shown = "".join(part.source for one in [*qd.__all__, *BEYOND] for part in example_of(one).examples)
    methods = [method for method, value in vars(getattr(qd, name)).items() if inspect.isfunction(value)]
    unseen = [method for method in methods if not method.startswith("_") and f".{method}(" not in shown]
    assert unseen == (["natural"] if name == "Fit" else [])  # vectors of the real line, for other rooms


def test_what_needs_no_example_is_offered_all_the_same():
    for name in INSIDE:
        assert inspect.getdoc(documented(name))


def public_members(cls):
    """Methods and properties that the library itself defines."""
    for owner in cls.__mro__:
        if not owner.__module__.startswith("quenched"):
            continue
        for name, value in vars(owner).items():
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            value = getattr(value, "fget", None) or getattr(value, "func", None) or value
            if not name.startswith("_") and inspect.isfunction(value):
                yield name


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_method_is_documented(cls):
    undocumented = [name for name in public_members(cls) if not inspect.getdoc(getattr(cls, name))]
    assert undocumented == []


WITH_PARAMETERS = [name for name in FUNCTIONS if "Parameters\n" in inspect.getdoc(getattr(qd, name))]


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_every_parameter_is_explained(name):
    function = getattr(qd, name)
    explained = inspect.getdoc(function).split("Parameters\n")[1]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            assert parameter.name in explained, parameter.name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_has_a_type(name):
    signature = inspect.signature(getattr(qd, name))
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, parameter.name
    assert signature.return_annotation is not signature.empty


def test_the_large_functions_explain_their_parameters():
    assert {"fit", "regression", "with_gaussian_prior"} <= set(WITH_PARAMETERS)


def test_the_result_has_the_fields_of_the_contract():
    fields = {
        *("mean", "sd", "covariance", "bound", "check_bound", "check_error", "gap", "status", "converged", "verdict"),
        *("n_draws", "n_evaluations", "n_rounds", "seconds", "history", "hyper", "posterior", "summary", "plot"),
        *("to_arviz", "save", "sample"),
    }
    known = {*dir(qd.Fit), *qd.Fit.__dataclass_fields__}
    assert fields <= known


def test_a_fit_cannot_be_changed():
    fit = qd.fit(lambda w: -0.5 * w**2, 0.0, progress=False)
    with pytest.raises(AttributeError):
        fit.bound = 0.0


def test_what_a_fit_holds_is_numpy_in_double_precision():
    import jax
    import numpy as np

    fit = qd.fit(lambda p: -0.5 * (p["a"] ** 2 + (p["b"] ** 2).sum()), {"a": 0.0, "b": np.zeros(2)}, progress=False)
    for leaf in jax.tree.leaves((fit.mean, fit.sd, fit.covariance, fit.posterior.scale, fit.sample(3))):
        assert isinstance(leaf, (np.ndarray, np.float64))
        assert leaf.dtype == np.float64
    assert fit.mean["b"].shape == (2,)
    assert fit.posterior.sample(4, seed=1).shape == (4, 3)
    np.testing.assert_array_equal(fit.posterior.sample(4, seed=1), fit.posterior.sample(4, seed=1))
    assert np.shape(fit.posterior.log_density(np.zeros(3))) == ()
    assert fit.posterior.log_density(np.zeros((5, 3))).shape == (5,)
    assert [row["name"] for row in fit.summary()] == ["a", "b[0]", "b[1]"]
    assert "bound" in str(fit)
    assert "parameter" in str(fit)
