"""Whether what a file says of a fit can be so: types, lengths and finiteness, before a fit is made of it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from quenched.draws import TermDraws, kinds
from quenched.results.outcome import Round
from quenched.text import harmless
from quenched.transforms import Space

_COUNTS = ("n_draws", "n_evaluations", "n_objective_evaluations")
_AT_MOST = 2**53


def insist_sound(text: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Refuse texts of other types, and arrays that hold no numbers.

    Raises
    ------
    ValueError
        With the entry that is wrong.
    """
    for name, array in arrays.items():
        _insist(array.dtype.kind in "fiub", f"{name} has dtype {array.dtype}, and holds no numbers")
        _insist(
            not name.startswith(("posterior.", "hyper.")) or bool(np.isfinite(array).all()), f"{name} is not finite"
        )
    _settings(text["settings"])
    if text.get("many"):
        _many(text, arrays)
    else:
        _one(text, arrays)


def insist_leaves(text: Any) -> None:
    """Names and shapes of parameters."""
    for leaf in text:
        whole = all(
            isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= _AT_MOST for size in leaf["shape"]
        )
        _insist(isinstance(leaf["name"], str) and whole, "a leaf has no name, or no shape")
    names = [leaf["name"] for leaf in text]
    _insist(len(set(names)) == len(names), "two leaves have the same name")


def insist_moments(moments: Any, space: Space, many: int | None) -> None:
    """Arrays shaped like the parameters."""
    import jax

    wanted = [leaf.shape if many is None else (many, *leaf.shape) for leaf in space.leaves]
    for part in moments:
        _insist([np.shape(leaf) for leaf in jax.tree.leaves(part)] == wanted, "the moments have other shapes")


def _settings(settings: Any) -> None:
    _insist(isinstance(settings, dict), "there are no settings")
    texts = all(isinstance(settings[name], str) for name in ("draws", "family", "method"))
    _insist(texts and settings["draws"] in (*kinds, TermDraws.kind), "the settings name no draws, family and method")
    seeds = all(_is_whole(settings[name]) for name in ("seed", "draws_seed"))
    _insist(seeds and _is_number(settings["tolerance"]), "the settings have no seed, or no tolerance")
    groups = settings["groups"]
    right = groups is None or (
        isinstance(groups, list) and all(isinstance(g, list) and all(map(_is_whole, g)) for g in groups)
    )
    _insist(right, "the groups of the draws are none")
    _insist(all(isinstance(name, str) for name in settings), "a setting has no name")
    _insist(all(harmless(one) == one for one in _texts_in(settings)), "a setting has control characters")


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts_in(part)


def _one(text: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    numbers = text["numbers"]
    _insist(isinstance(numbers, dict) and all(map(_is_number, numbers.values())), "its numbers are none")
    _insist(all(_is_whole(numbers[name]) for name in _COUNTS), "its counts are none")
    _insist(isinstance(text["message"], str), "its message is none")
    _insist(_are_texts(text["remarks"]), "its remarks are none")
    _further(text.get("further"))
    rounds = text["history"]
    right = isinstance(rounds, list) and all(_are_numbers(entry, len(Round._fields)) for entry in rounds)
    _insist(right and all(_is_whole(entry[0]) and _is_whole(entry[4]) for entry in rounds), "its rounds are none")
    ratios = arrays["log_ratios"]
    _insist(ratios.ndim == 1 and ratios.dtype.kind == "f", "its log ratios are none")
    if any(name.startswith("collapsed.") for name in arrays):
        ratios, moves, n = (arrays[f"collapsed.{name}"] for name in ("log_ratios", "moves", "outer"))
        right = (
            ratios.ndim == 1 and ratios.dtype.kind == moves.dtype.kind == "f" and moves.ndim == 2 and len(moves) == 4
        )
        _insist(right and n.ndim == 0 and n.dtype.kind in "iu" and int(n) > 0, "its outer log ratios are none")
    _optima(text["optima"])


def _further(text: Any) -> None:
    if text is not None:
        one = lambda name, *rest: isinstance(name, str) and len(rest) == 4 and _are_numbers(list(rest[:2]), 2)
        right = _are_numbers(text["numbers"], 3) and all(one(*entry) for entry in text["departures"])
        right = right and isinstance(text.get("elsewhere", ""), str)
        _insist(right, "what lies further out is none")


def _many(text: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    n = len(text["status"])
    _insist(_is_number(text["seconds"]) and _are_texts(text["message"]), "its messages are none")
    rows = {name: array for name, array in arrays.items() if name.startswith("fits.")}
    lengths = {len(text["message"]), *(len(array) if array.ndim else 0 for array in rows.values())}
    _insist(lengths == {n}, "its rows are not as many as its fits")
    for name, array in rows.items():
        wanted = (n, array.shape[1], len(Round._fields)) if name == "fits.rounds" and array.ndim == 3 else (n,)
        _insist(array.shape == wanted, f"{name} has shape {array.shape}")
    counts = [rows[f"fits.{name}"] for name in _COUNTS]
    rounds = rows["fits.rounds"][~np.isnan(rows["fits.rounds"][..., 0])]  # others have had fewer
    counted = all(bool(((one >= 0) & (one <= _AT_MOST)).all()) for one in (*counts, rounds[:, [0, 4]]))
    _insist(counted, "its counts are none")
    if "log_ratios" in arrays:
        each, ratios = arrays["log_ratios.lengths"], arrays["log_ratios"]
        right = each.shape == (n,) and each.dtype.kind in "iu" and (each >= 0).all() and ratios.shape == (each.sum(),)
        _insist(bool(right), "its log ratios are none")
    for optima in text["optima"].values():
        _optima(optima)
    for index, (further, remarks) in text.get("seen", {}).items():
        _insist(index.isdecimal() and int(index) < n and _are_texts(remarks), "what was seen of its fits is none")
        _further(further)


def _optima(optima: Any) -> None:
    for bound, mean, n in optima:
        _insist(_are_numbers([bound, n], 2) and _is_whole(n) and _are_numbers(mean, len(mean)), "its optima are none")


def _is_number(value: Any) -> bool:
    """One that NumPy takes as such: whole numbers of any length are objects to it."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _AT_MOST
    return whole or isinstance(value, float)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_numbers(values: Any, n: int) -> bool:
    return isinstance(values, list) and len(values) == n and all(map(_is_number, values))


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _insist(right: bool, otherwise: str) -> None:
    if not right:
        raise ValueError(otherwise)
