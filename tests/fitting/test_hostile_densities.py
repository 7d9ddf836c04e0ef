"""Log densities that nobody should have to fit end right, in doubt, or failed in words that name why; all of them in tests/long too,
with other families and other ways to fit.
"""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import hostile_densities
import quenched as qd
from hostile_densities import NAMES, complaint, log_density, options, start

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of arithmetic with such numbers


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_ends_as_it_must(name):
    assert complaint(name, hostile_densities.fit(name)) == ""


@pytest.mark.parametrize("name", ["linear", "nan in the tail", "offset of -1e17", "scale of 1e150"])
def test_a_warped_fit_ends_as_it_must(name):
    assert complaint(name, hostile_densities.fit(name, family="warped")) == ""


@pytest.mark.parametrize("name", ["plane", "upside down"])
def test_algorithm_one_ends_as_it_must(name):
    """On the plane its gradient becomes so large that its square is none."""
    assert complaint(name, hostile_densities.fit(name, method=qd.Alternating(), draws=32)) == ""


@pytest.mark.parametrize("name", ["support ends", "nan at some draws", "linear"])
def test_the_error_names_the_trouble(name):
    """Not only the verdict of a fit that nobody has."""
    given = {**options(name), "throw": True}
    with pytest.raises(qd.FitError) as caught:
        qd.fit(log_density, start(name), **given)
    for word in hostile_densities.DENSITIES[name].words:
        assert word in str(caught.value)


def test_what_several_starts_can_see_is_said():
    """A mode twenty sds away draws none of them; one that is six away does."""
    far = hostile_densities.fit("two modes, from one", starts=4)
    assert "All 4 starts" in far.verdict
    assert "not seen" in far.verdict


# Functions on the host.


def normal(w):
    sizes = 1.0 + np.arange(w.shape[-1])
    return -0.5 * float(np.sum((w - 1.0) ** 2 / sizes)), -(w - 1.0) / sizes


def skewed(w):
    return float(np.sum(50.0 * w - np.exp(3.0 * w))), 50.0 - 3.0 * np.exp(3.0 * w)


def pointed(w):
    return -float(np.sum(np.abs(w))), -np.sign(w)


def with_gradient(function, change, offset=0.0):
    return lambda w: (function(w)[0] + offset, change(function(w)[1]))


WRONG = {
    "half": (with_gradient(normal, lambda g: 0.5 * g), "0.5 times"),
    "half, of a large value": (with_gradient(normal, lambda g: 0.5 * g, 1e9), "0.5 times"),
    "double, skewed": (with_gradient(skewed, lambda g: 2.0 * g), "2 times"),
    "half, with a kink": (with_gradient(pointed, lambda g: 0.5 * g), "0.5 times"),
    "of minus the log density": (with_gradient(normal, lambda g: -g), "sign"),
    "in another order": (with_gradient(normal, lambda g: g[::-1]), "another order"),
    "without one entry": (with_gradient(normal, lambda g: g * [1.0, 0.0, 1.0]), r"parameters\[1\] 0 times"),
    "zero": (with_gradient(normal, lambda g: 0.0 * g), "0 times"),
    "of single precision": (
        lambda w: (np.float32(normal(w)[0]), np.float32(0.5) * normal(w)[1].astype(np.float32)),
        "0.5 times",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_gradient_that_is_not_the_value_s_own_is_refused_before_the_fit(name):
    function, said = WRONG[name]
    calls = []
    counted = lambda w: calls.append(0) or function(w)
    with pytest.raises(ValueError, match=said):
        qd.fit(qd.from_value_and_grad(counted), np.zeros(3), progress=False)
    assert len(calls) < 40


def test_a_wrong_gradient_is_refused_by_every_way_to_fit():
    batched = qd.from_value_and_grad(lambda w: (-0.5 * np.sum(w**2, axis=1), -0.5 * w), batched=True)
    with pytest.raises(ValueError, match=r"0\.5 times"):
        qd.fit(batched, np.zeros(3), progress=False)
    wrong = qd.from_value_and_grad(WRONG["half"][0])
    with pytest.raises(ValueError, match=r"0\.5 times"):
        qd.laplace(wrong, np.zeros(3), progress=False)
    with_data = qd.from_value_and_grad(lambda w, y: (-0.5 * float(np.sum((w - y) ** 2)), -0.5 * (w - y)))
    with pytest.raises(ValueError, match=r"0\.5 times"):
        qd.fit_many(with_data, np.zeros(3), np.ones((2, 3)), progress=False)


RIGHT = {
    "a kink at the start": pointed,
    "a value that hides all differences": with_gradient(normal, lambda g: 0.5 * g, 1e17),
    "single precision": lambda w: (np.float32(1e3) + np.float32(normal(w)[0]), normal(w)[1].astype(np.float32)),
    "single precision inside": lambda w: (float(np.float32(1e4) + np.float32(normal(w)[0])) + 0.1, normal(w)[1]),
    "far from quadratic": lambda w: (-float(np.sum((1e3 * (w - 1.0)) ** 4)), -4e3 * (1e3 * (w - 1.0)) ** 3),
    "tiny": lambda w: (-0.5 * float(np.sum((w / 1e-150) ** 2)), -w / 1e-150 / 1e-150),
    "large": lambda w: (-0.5 * float(np.sum((w / 1e150) ** 2)), -w / 1e150 / 1e150),
    "a little noise": lambda w: (normal(w)[0] + 1e-6 * np.random.default_rng().uniform(), normal(w)[1]),
    "an end beside the start": lambda w: (normal(w)[0] if w[0] > -1e-3 else -np.inf, normal(w)[1]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_said_of_a_gradient_that_is_right_or_cannot_be_known(name):
    from quenched.fitting.promises import examine
    from quenched.objective import make_problem
    from quenched.transforms import describe_space

    space, point = describe_space(np.zeros(3), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = make_problem(qd.from_value_and_grad(RIGHT[name]), space, None, None)
        assert examine(problem, point) <= 22


def test_a_function_that_draws_at_random_is_named():
    random = np.random.default_rng(0)
    noisy = lambda w: normal(w)[0] + 0.1 * random.standard_normal()
    with pytest.raises(ValueError, match=r"at the same parameters.* seed"):
        qd.fit(qd.from_value(noisy), np.zeros(3), progress=False)
    with pytest.raises(ValueError, match=r"at the same parameters.* seed"):
        qd.fit(qd.from_value_and_grad(lambda w: (noisy(w), normal(w)[1])), np.zeros(3), progress=False)
    with pytest.raises(ValueError, match="two different gradients"):
        qd.fit(
            qd.from_value_and_grad(lambda w: (normal(w)[0], normal(w)[1] + 0.1 * random.standard_normal(3))),
            np.zeros(3),
            progress=False,
        )


def test_a_derivative_that_is_stopped_in_jax_is_named_too():
    found = qd.fit(lambda w: -0.5 * jnp.sum(w**2) + jnp.round(w[0]), np.zeros(2), progress=False)
    assert "contradict each other" in found.verdict


def test_a_wrong_gradient_of_a_later_problem_is_its_own():
    """The first of many is tried before anything is fitted; what others get wrong spoils none but themselves."""
    function = lambda w, data: (-0.5 * float(np.sum((w - data) ** 2)), (data - w) * (2.0 if data[0] == 3.0 else 1.0))
    data = np.array([[1.0], [3.0], [4.0]])
    with pytest.warns(UserWarning, match="1 of 3 fits failed"):
        fits = qd.fit_many(qd.from_value_and_grad(function), np.zeros(1), data, draws=4, progress=False)
    assert fits.failed.tolist() == [False, True, False]
    assert "not that of its value" in fits.message[1]
    with pytest.raises(ValueError, match="not that of its value"):
        qd.fit_many(qd.from_value_and_grad(function), np.zeros(1), data[1:], draws=4, progress=False)


def test_a_mean_that_no_draw_can_tell_is_named():
    """Log-normal with an sd of 5 in its logarithm: the mean is 3e5 times the median."""
    log_normal = lambda x: -0.5 * (jnp.log(x) / 5.0) ** 2 - jnp.log(x)
    found = qd.fit(log_normal, 1.0, transforms=qd.positive, progress=False)
    assert "The median is 1." in found.verdict
