"""The options of `fit`, checked before anything is computed."""

import difflib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from quenched.draws import Draws, make, smallest
from quenched.execute import out_of_memory, read_mesh
from quenched.families import Family, Full, LowRank, Member, Sparse, cholesky_or_nan, families, from_scale
from quenched.fitting.method import Joint, Method
from quenched.numbers import positive_number, real_array, whole_number
from quenched.targets import EntropyForm, Form, Target, Terms, in_files, kept_from_a_trace
from quenched.text import harmless, shown
from quenched.transforms import Space, leaf_name

_MOST_FULL = 2000  # parameters of a full covariance that was not asked for: beyond, it takes many minutes
_MOST_MET = 6000  # parameters of a sum of terms that all meet each other


def read_family(family: Any) -> Family:
    if isinstance(family, Family):
        return family
    if isinstance(family, str) and family in families:
        return families[family]
    raise ValueError(
        f"family={shown(family)} is not known; use 'auto', {', '.join(map(repr, families))}, quenched.LowRank(k) or "
        "quenched.Blocks(...)."
    )


def default_family(target: Target, start: Any, method: Any, draws: Any, executor: Any) -> Family:
    """The family of a fit that was not asked for one.

    Sparse for a sum of terms, full for any other density; of low rank where either would be too large, if nothing asked
    for stands against it.
    """
    plain = isinstance(method, Joint) and not isinstance(draws, Draws) and executor is None
    if not plain or (target.terms is not None and in_files(target.data)):
        return Full()
    leaves = jax.tree_util.tree_flatten_with_path(start)[0]
    try:
        sizes = {leaf_name(path): int(np.size(leaf)) for path, leaf in leaves}
    except Exception:  # of whatever it is: it is refused in words when it is read
        return Full()
    if target.terms is None:
        return Full() if sum(sizes.values()) <= _MOST_FULL else LowRank()
    return Sparse() if _largest_clique(target.terms, sizes) <= _MOST_MET else LowRank()


def why_low_rank(chosen: Family, dim: int) -> str:
    """A remark on a family that was not asked for; nothing on the usual ones."""
    if not chosen.directions(dim):
        return ""
    return (
        f"{dim} parameters are many for a full covariance, so this one is diagonal plus {chosen.directions(dim)} directions; "
        "family=... overrules it, and a sum of terms (quenched.sum_of) may be full at a lower price."
    )


def _largest_clique(terms: Terms, sizes: dict[str, int]) -> int:
    """Parameters that all meet each other in a term, by what is known without looking at rows."""
    together = lambda part: part.kind == "whole" or (part.kind == "dot")
    return max(sum(sizes.get(part.leaf, 0) for part in term.parts if together(part)) for term in terms.terms)


def insist_terms(target: Target, space: Space, method: Any, draws: Any, many: bool, executor: Any) -> None:
    """Refuse what a sparse precision cannot do."""
    if target.terms is None or (space.joint is not None and not target.on_real_line):
        raise ValueError("family='sparse': needs to know who sees whom; give a sum of terms, quenched.sum_of(...).")
    wrong = {
        "method": not isinstance(method, Joint) and method,
        "draws": isinstance(draws, Draws) and draws,
        "executor": executor,
    }
    for name, value in wrong.items():
        if value:
            raise ValueError(
                f"{name}={shown(value)}: has no meaning with family='sparse'; leave it out, or use family='full'."
            )
    if many:
        raise ValueError("family='sparse': fits one problem at a time; use fit, or family='full' or 'diagonal'.")


def read_posterior(posterior: Any, dim: int) -> tuple[Member, Family]:
    """A member from a fit, a posterior, or mean and covariance; and the family in which it can be judged."""
    given = getattr(posterior, "posterior", posterior)
    member = getattr(given, "member", given)
    if isinstance(member, Member):
        if np.ndim(member.mean) != 1:
            raise ValueError(f"posterior={shown(posterior)}: holds many; give one of them, fits[i].")
        if member.dim != dim:
            raise ValueError(
                f"posterior: it has {member.dim} coordinates, but the parameters have {dim} on the real line."
            )
        return member, member.family
    if not isinstance(posterior, (tuple, list)) or len(posterior) != 2:
        raise ValueError(f"posterior={shown(posterior)}: give (mean, covariance) on the real line, or a fit.")
    mean, covariance = (real_array("posterior", part) for part in posterior)
    if mean.shape != (dim,) or covariance.shape != (dim, dim):
        raise ValueError(
            f"posterior: the mean has shape {mean.shape} and the covariance {covariance.shape}; the parameters need "
            f"({dim},) and ({dim}, {dim}) on the real line."
        )
    factor = cholesky_or_nan(covariance)
    if not np.isfinite(factor).all() or not np.allclose(covariance, covariance.T, rtol=1e-8, atol=0.0):
        raise ValueError("posterior: the covariance is not symmetric and positive definite.")
    return from_scale(mean, factor), families["full"]


def read_method(method: Any) -> Method:
    if not isinstance(method, Method):
        raise ValueError(f"method={shown(method)} is not a method; use quenched.Joint() or quenched.Alternating().")
    return method


def read_executor(executor: Any, target: Target) -> Any:
    """An executor, for a target whose calls can be sent there."""
    if not target.on_host:
        raise ValueError(
            "executor: it evaluates functions on the host (quenched.from_value_and_grad, quenched.from_value); a log "
            "density in JAX is compiled, and runs on many devices with mesh=..."
        )
    return read_submit(executor)


def read_devices(mesh: Any, target: Target) -> Any:
    """A mesh, for a target that devices can evaluate."""
    if target.on_host:
        raise ValueError(
            "mesh: a function on the host runs on no device; give executor=... to call it in other processes."
        )
    return read_mesh(mesh)


def read_submit(executor: Any) -> Any:
    """Something that takes calls like an executor of `concurrent.futures`."""
    if not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor={shown(executor)}: it has no `submit`; give a concurrent.futures.Executor.")
    return executor.get_executor() if hasattr(executor, "get_executor") else executor  # a Dask client has one


def read_draws(
    draws: Any, family: Family, form: Form, sizes: tuple[int, ...], seed: int, default: int, *, spanning: bool = True
) -> Draws:
    """The first set of draws; where they must span the coordinates, sets with which the bound has no maximum are refused."""
    dim, groups = sum(sizes), family.groups(sizes)
    if draws is None or (isinstance(draws, (int, np.integer)) and not isinstance(draws, bool)):
        n = default if draws is None else whole_number("draws", draws, 1)
        least = smallest("matched", dim, groups)
        if n < least or n % 2:
            raise ValueError(
                f"draws={n}: matched draws come in pairs, and this family couples {least // 2} coordinates; "
                f"the smallest number that works is {max(least, n + n % 2)}."
            )
        return make("matched", n, dim, seed, groups)
    if not isinstance(draws, Draws):
        raise ValueError(f"draws={shown(draws)}: give a whole number or Draws such as quenched.matched(n, dim).")
    if draws.dim != dim:
        raise ValueError(f"draws have {draws.dim} coordinates, but the parameters have {dim} on the real line.")
    if spanning:
        _refuse_unbounded(draws, family, form, sizes)
    if not family.affine and draws.kind not in ("matched", "antithetic"):
        raise ValueError(
            f"draws are {draws.kind}: family={family.name!r} needs mirrored ones, for which its entropy is exact; use "
            "quenched.matched(n, dim)."
        )
    return draws


def first_draws(max_draws: Any, family: Family, sizes: tuple[int, ...], default: int) -> int:
    """How many matched draws to begin with: the default, or fewer where no more are allowed."""
    if max_draws is None:
        return default
    most, least = whole_number("max_draws", max_draws, 2), smallest("matched", sum(sizes), family.groups(sizes))
    if most < least:
        raise ValueError(
            f"max_draws={most}: this family couples {least // 2} coordinates and needs {least} matched draws; allow as "
            "many, or use family='diagonal'."
        )
    return min(default, most - most % 2)


def read_max_draws(max_draws: Any, coupled: int, first: int) -> int:
    return max(2048, 16 * coupled, first) if max_draws is None else whole_number("max_draws", max_draws, 2)


def read_tolerance(tolerance: Any, dim: int) -> float:
    return max(0.05, 0.0015 * dim) if tolerance is None else positive_number("tolerance", tolerance)


def _refuse_unbounded(draws: Draws, family: Family, form: Form, sizes: tuple[int, ...]) -> None:
    """Without a prior, the entropy grows for ever in a direction that no draw sees."""
    coupled = family.coupled_coordinates(sizes)
    if not isinstance(form, EntropyForm) or not unseen_directions(draws, family, sizes):
        return
    least = 2 * coupled if draws.kind in ("matched", "antithetic") else coupled + 1
    raise ValueError(
        f"draws: {draws.n} {draws.kind} draws do not span the {coupled} coordinates that this family couples, so "
        f"the bound has no maximum; use at least {least} draws, or family='diagonal'."
    )


def unseen_directions(draws: Draws, family: Family, sizes: tuple[int, ...]) -> bool:
    """Whether some coupled direction is not spanned by the draws (with an exact prior it stays at the prior)."""
    if draws.kind == "matched" and draws.groups in (None, family.groups(sizes)):
        return False  # by construction
    return not all(_spans(draws.points[:, list(group)]) for group in _groups(family, sizes))


def _groups(family: Family, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return family.groups(sizes) or (tuple(range(sum(sizes))),)


def _spans(points: np.ndarray) -> bool:
    centred = points - points.mean(axis=0)
    return len(points) > points.shape[1] and np.linalg.matrix_rank(centred) == points.shape[1]


def check_hyper(hyper: Any) -> None:
    """Finite floats."""
    if hyper is not None and not jax.tree.leaves(hyper):
        raise ValueError(f"hyper={shown(hyper)}: holds no hyperparameters; leave it out, or give finite floats.")
    for path, leaf in jax.tree_util.tree_flatten_with_path(hyper)[0]:
        array = np.asarray(leaf)
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            name = harmless(leaf_name(path)) if path else "hyper"
            raise ValueError(f"hyper: {name} = {shown(leaf)}; hyperparameters must be finite floats.")


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def with_hints(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The same function, which answers a misspelt option with the nearest one it has; too little memory, and what a trace has left behind, in our words."""
    known = [name for name, each in inspect.signature(function).parameters.items() if each.kind != each.VAR_KEYWORD]

    @wraps(function)
    def hinting(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else f"; the options are {', '.join(known)}."
                raise ValueError(f"{harmless(name)}: {function.__name__} has no such option{hint}")
        try:
            return function(*arguments, **options)
        except Exception as error:
            told = out_of_memory(error) or kept_from_a_trace(error)
            if told is None:
                raise
            for note in getattr(error, "__notes__", ()):
                told.add_note(note)
            raise told from error

    return hinting
