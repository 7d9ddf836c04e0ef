"""Log densities that nobody should have to fit, and how a fit of each must end: right, in doubt, or failed, in words that name why.

All are branches of one function of two parameters, chosen by the data, so that a family is compiled once for all of them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd
from quenched.trust import Trust


class Density(NamedTuple):
    """One of them.

    `ending` is "right" (converged, and the moments are these), "doubt" (not all of it is to be trusted) or "failed" (not
    converged). `words` are in what is said, all of them; `mean` and `sd` are the exact ones.
    `otherwise` has another ending and other words for some families.
    """

    function: Callable[[Any], Any]
    ending: str
    words: tuple[str, ...] = ()
    start: tuple[float, float] = (0.0, 0.0)
    mean: float = 0.0
    sd: float = 1.0
    otherwise: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType({})


def _normal(w, mean=0.0, sd=1.0):
    return -0.5 * jnp.sum(((w - mean) / sd) ** 2)


def _two_modes(w, apart):
    return jnp.logaddexp(_normal(w, 0.5 * apart), _normal(w, -0.5 * apart))


ENDLESS = ("does not fall off",)
DIAGONAL = {"diagonal": ("doubt", ("k-hat",))}  # which is proper along a direction that is not
WARPED = {"warped": ("doubt", ("not finite",))}
DENSITIES: dict[str, Density] = {
    # Improper, flat, unbounded.
    "flat": Density(lambda w: 0.0 * w[0], "failed", ENDLESS),
    "linear": Density(lambda w: w[0] - 0.5 * w[1] ** 2, "failed", ("parameters[0]", *ENDLESS)),
    "plane": Density(lambda w: jnp.sum(w), "failed", ENDLESS),
    "upside down": Density(lambda w: 0.5 * jnp.sum(w**2), "failed", ENDLESS, (1.0, 1.0)),
    "flat on one side": Density(lambda w: jnp.sum(jax.nn.log_sigmoid(w)), "failed", ENDLESS),
    "flat along a direction": Density(lambda w: -0.5 * (w[0] - w[1]) ** 2, "failed", ENDLESS, otherwise=DIAGONAL),
    "slowly falling": Density(lambda w: -0.45 * jnp.sum(jnp.log1p(w**2)), "failed", ENDLESS),
    "infinite at a point": Density(
        lambda w: -0.99 * jnp.log(jnp.sum(w**2)) + _normal(w), "failed", ("no ascent",), (1.0, 1.0)
    ),
    # Not smooth.
    "step": Density(lambda w: _normal(w) + jnp.where(w[0] > 0.3, 3.0, 0.0), "doubt", ("parameters[0]",)),
    "cliff": Density(lambda w: _normal(w) + jnp.where(w[0] > 0.3, 30.0, 0.0), "doubt", ()),
    "gradient stopped": Density(
        lambda w: _normal(w) + jax.lax.stop_gradient(w[0]),
        "doubt",
        ("contradict",),
        otherwise={"warped": ("doubt", ())},
    ),
    "kink": Density(lambda w: -jnp.sum(jnp.abs(w)), "doubt", ("k-hat",)),
    "rough": Density(lambda w: _normal(w) + jnp.sum(jnp.sin(1e3 * w)), "doubt"),
    # Not finite.
    "support ends": Density(
        lambda w: jnp.where(w[0] > 0.0, -w[0], -jnp.inf) - 0.5 * w[1] ** 2,
        "failed",
        ("parameters[0]", "minus infinity", "transform"),
        (1.0, 1.0),
    ),
    "box": Density(lambda w: jnp.where(jnp.max(jnp.abs(w)) < 1.0, 0.0, -jnp.inf), "failed", ("support", "transform")),
    "edge in the tail": Density(
        lambda w: jnp.where(jnp.abs(w[0]) < 3.0, _normal(w), -jnp.inf), "doubt", ("parameters[0]", "minus infinity")
    ),
    "nan at some draws": Density(
        lambda w: jnp.sum(2.0 * jnp.log(w + 2.0) - (w + 2.0)), "failed", ("not finite", "logarithm"), otherwise=WARPED
    ),
    "nan in the tail": Density(
        lambda w: _normal(w) + 0.0 * jnp.log(w[0] + 3.3), "doubt", ("parameters[0]", "not finite", "logarithm")
    ),
    "infinite in the tail": Density(
        lambda w: jnp.where(w[0] > 3.6, jnp.inf, _normal(w)), "doubt", ("parameters[0]", "infinite", "division")
    ),
    "nan everywhere": Density(lambda w: jnp.nan * w[0], "failed", ("nan at the start",)),
    "nan gradient": Density(lambda w: -jnp.sum(jnp.sqrt(w**2)), "failed", ("gradient", "square root")),
    "infinite in a region": Density(
        lambda w: jnp.where(jnp.abs(w[0]) < 0.1, jnp.inf, _normal(w)), "failed", ("infinite", "division"), (1.0, 1.0)
    ),
    # Far from Gaussian.
    "Cauchy": Density(lambda w: -jnp.sum(jnp.log1p(w**2)), "doubt", ("k-hat",)),
    "tails of two degrees": Density(lambda w: -1.5 * jnp.sum(jnp.log1p(w**2 / 2.0)), "doubt", ("k-hat",)),
    "barely proper": Density(lambda w: -0.55 * jnp.sum(jnp.log1p(w**2)), "doubt", ("further out", "k-hat")),
    "funnel": Density(
        lambda w: -0.5 * w[0] ** 2 / 9.0 - 0.5 * w[1] ** 2 * jnp.exp(-w[0]) - 0.5 * w[0],
        "doubt",
        ("Trust neither",),  # for its weights, or for its mouth, which a ray meets again
        otherwise={"warped": ("doubt", ("k-hat",))},
    ),
    "ring": Density(lambda w: -50.0 * (jnp.sqrt(jnp.sum(w**2) + 1e-9) - 3.0) ** 2, "doubt", (), (3.0, 0.0)),
    "two modes, from between": Density(lambda w: _two_modes(w, 6.0), "doubt"),
    # One of two modes far apart is all that anybody can see from there; the other is twenty sds away.
    "two modes, from one": Density(lambda w: _two_modes(w, 20.0), "right", (), (10.0, 10.0), 10.0),
    # Large and small numbers.
    "offset of 1e12": Density(lambda w: 1e12 + _normal(w, 1.0), "right", (), (0.0, 0.0), 1.0),
    "offset of 1e15": Density(lambda w: 1e15 + _normal(w, 1.0), "doubt", ("rounding", "constant")),
    "offset of -1e17": Density(lambda w: -1e17 + jnp.sum(2.0 * w - jnp.exp(w)), "doubt", ("rounding", "constant")),
    "scale of 1e-150": Density(lambda w: _normal(w, 1e-150, 1e-150), "right", (), (0.0, 0.0), 1e-150, 1e-150),
    "scale of 1e-150, from afar": Density(
        lambda w: _normal(w, 1e-150, 1e-150), "right", (), (1.0, 1.0), 1e-150, 1e-150
    ),
    "scale of 1e150": Density(lambda w: _normal(w, 1e150, 1e150), "right", (), (0.0, 0.0), 1e150, 1e150),
    "location of 1e12": Density(lambda w: _normal(w, 1e12), "right", (), (1e12, 1e12), 1e12, 1.0),
    "location of 1e16": Density(lambda w: _normal(w, 1e16), "any", ("64 bits",), (1e16, 1e16)),
    "huge slope": Density(lambda w: -1e100 * jnp.sum(jnp.abs(w)), "doubt", (), (1.0, 1.0)),
}
NAMES = list(DENSITIES)


def log_density(w, which):
    return jax.lax.switch(which, [density.function for density in DENSITIES.values()], w)


def options(name: str) -> dict[str, Any]:
    return {"data": np.int32(NAMES.index(name)), "throw": False, "progress": False}


def start(name: str) -> np.ndarray:
    return np.array(DENSITIES[name].start)


def fit(name: str, **others: Any) -> qd.Fit:
    return qd.fit(log_density, start(name), **options(name), **others)


def complaint(name: str, found: qd.Fit) -> str:
    """What is wrong with how a fit of it has ended; empty where nothing is."""
    density, said = DENSITIES[name], found.verdict
    ending, words = density.otherwise.get(found.settings["family"], (density.ending, density.words))
    if ending == "failed" and found.converged:
        return f"{name}: converged: {said}"
    if ending == "doubt" and found.answer.trust is Trust.BOTH:
        return f"{name}: is trusted: {said}"
    if ending == "right":
        if not found.converged:
            return f"{name}: {found.status}: {said}"
        away = np.max(np.abs(found.mean - density.mean)) / density.sd
        ratio = found.sd / density.sd
        if away > 0.02 or np.max(np.abs(ratio - 1.0)) > 0.02:
            return f"{name}: mean {found.mean}, sd {found.sd}: {said}"
    missing = [word for word in words if word not in said]
    return f"{name}: does not say {missing}: {found.status}: {said}" if missing else ""
