"""Whether a sum of terms is the log density that it is said to be: by the second derivatives of both.

At a few random points the Hessian of the plain log density is compared with that of the sum, by products with random vectors:
two products find any difference, whatever the number of parameters, and two more name the pair of parameters behind it.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from quenched.compiling import compiled
from quenched.draws import Purpose, generator
from quenched.fitting import ready
from quenched.objective import Problem, make_problem
from quenched.targets import Target, check_terms, read_model
from quenched.transforms import describe_space

_POINTS = 3
_SAME = 1e-6  # of the largest second derivative that was met
_ZERO = 1e-12  # the same, where the sum has an exact zero


def check_structure(
    target: Target,
    log_density: Callable[..., Any],
    start: Any,
    *,
    data: Any = None,
    transforms: Any = None,
    hyper: Any = None,
    seed: int = 0,
) -> None:
    """Make sure that a sum of terms is a plain log density, up to a constant: that no two parameters meet unsaid.

    Parameters
    ----------
    target
        Made by `sum_of`.
    log_density
        The same density written out, `log_density(parameters[, data][, hyper])`.
    start, transforms, hyper
        As in `fit`; points are tried around the start.
    data
        As `fit` would be given it with the plain log density; terms that ask for `data` are given it too.
    seed
        Of the points.

    Raises
    ------
    ValueError
        When they differ, naming the parameters where they do.

    Examples
    --------
    >>> from quenched.diagnostics import check_structure
    >>> own = qd.each(lambda seen: -0.5 * seen["w"] ** 2, sees={"w": qd.each_entry})
    >>> check_structure(qd.sum_of(own), lambda p: -0.5 * jnp.sum(p["w"] ** 2), {"w": np.zeros(3)})
    >>> try:
    ...     check_structure(qd.sum_of(own), lambda p: -0.5 * jnp.sum(p["w"]) ** 2, {"w": np.zeros(3)})
    ... except ValueError as error:
    ...     print("meet in no term" in str(error))
    True
    """
    if getattr(target, "terms", None) is None:
        raise ValueError("target: has no structure that could be wrong; give a sum of terms, quenched.sum_of(...).")
    asks = {name for term in target.terms.terms for name in term.asks}
    model = read_model(log_density, start, data=data, hyper=hyper)
    with ready(model, False, None):
        space, point = describe_space(start, transforms)
        own = (model.data if "data" in asks else None, model.hyper if "hyper" in asks else None)
        check_terms(target.terms, target.data, space, *own)
        summed = make_problem(target, space, *own)
        plain = make_problem(model.target, space, model.data, model.hyper)
        of_plain, of_sum = _Slopes(plain), _Slopes(summed)
        random, names = generator(seed, Purpose.PROBES), space.coordinate_names()
        for _ in range(_POINTS):
            at, probe = point + random.standard_normal(space.dim), random.choice([-1.0, 1.0], space.dim)
            _compare(of_plain, of_sum, at, probe, names)


class _Slopes:
    """Gradient and Hessian products of a problem, in one program."""

    def __init__(self, problem: Problem):
        gradient = jax.grad(lambda vector: problem.function(vector, problem.data, problem.hyper.free))
        self._both = compiled(lambda at, vector: jax.jvp(gradient, (at,), (vector,)))

    def __call__(self, at: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, product = self._both(at, vector)
        return np.asarray(gradient), np.asarray(product)


def _compare(plain: _Slopes, summed: _Slopes, at: np.ndarray, probe: np.ndarray, names: list[str]) -> None:
    (slope, seen), (own_slope, own) = plain(at, probe), summed(at, probe)
    away, missing = np.abs(seen - own), np.abs(slope - own_slope)
    size = max(float(np.abs(seen).max()), np.finfo(float).tiny)
    if not np.isfinite(away).all():
        raise ValueError("log_density: its second derivatives are not finite near the start; start elsewhere.")
    differ, lean = away.max() > _SAME * size, missing.max() > _SAME * max(size, float(np.abs(slope).max()))
    for guilty, differences in ((differ, away), (lean, missing)):
        if guilty:
            _name_pair(plain, summed, at, int(np.argmax(differences)), size, names)
    one = int(np.argmax(away if differ else missing))
    if differ:
        told = _told(names, one, one, *_columns(plain, summed, at, one))
        raise ValueError(f"sees: the terms are not those of log_density: {told}.")
    if lean:
        raise ValueError(
            f"sees: the terms are not those of log_density: their slope in {names[one]} differs by "
            f"{slope[one] - own_slope[one]:.4g}."
        )


def _name_pair(plain: _Slopes, summed: _Slopes, at: np.ndarray, one: int, size: float, names: list[str]) -> None:
    """Refuse what one parameter does with another: first with those that it never meets, where zero is exact."""
    of_plain, of_sum = _columns(plain, summed, at, one)
    others = np.arange(len(at)) != one
    unsaid = np.where(others & (of_sum == 0.0), np.abs(of_plain), 0.0)
    unlike = np.where(others, np.abs(of_plain - of_sum), 0.0)
    for differences, least, words in (
        (unsaid, _ZERO, "meet in no term"),
        (unlike, _SAME, "do not meet as they should"),
    ):
        other = int(np.argmax(differences))
        if differences[other] > least * size:
            raise ValueError(
                f"sees: {names[one]} and {names[other]} {words}: {_told(names, one, other, of_plain, of_sum)}; let a term "
                "see both, as log_density does."
            )


def _columns(plain: _Slopes, summed: _Slopes, at: np.ndarray, one: int) -> tuple[np.ndarray, np.ndarray]:
    """The second derivatives of both with one parameter."""
    unit = np.zeros(len(at))
    unit[one] = 1.0
    return plain(at, unit)[1], summed(at, unit)[1]


def _told(names: list[str], one: int, other: int, of_plain: np.ndarray, of_sum: np.ndarray) -> str:
    """One second derivative, with as many digits as tell two apart."""
    pair = f"∂²/∂{names[one]}∂{names[other]}"
    return f"{pair} is {of_plain[other]:.8g} in log_density and {of_sum[other]:.8g} in the sum"
