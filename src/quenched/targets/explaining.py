"""What goes wrong inside a person's own function, in words that name their line and the remedy.

Only what JAX says of its tracers and arrays is translated, shapes that do not go together among it, and a name that is missing
from what the function was given, or asked for as an attribute of it; every other exception belongs to the function, and passes
as it is.
"""

import ast
import linecache
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.precision import as_outside
from quenched.targets.captured import is_installed
from quenched.text import did_you_mean

_NOT_THEIRS = ("jax", "jaxlib", "numpy", "scipy", "quenched", "equinox")
_OTHERWISE = "or hand the gradient over yourself, with quenched.from_value_and_grad"


class UntraceableError(ValueError):
    """Something was asked of a number that JAX does not know yet: it is traced once, for all values."""


class MissingKeyError(ValueError, KeyError):
    """A key that neither parameters nor data have."""

    def __str__(self) -> str:  # a KeyError would show its text in quotation marks
        return self.args[0]


class ShapeError(ValueError, TypeError, IndexError):
    """Arrays that do not go together, or something that is no array; JAX calls it one or another of these."""


class Explanation(NamedTuple):
    """Errors of one kind, and what to say of them."""

    kinds: tuple[type[Exception], ...]
    says: str


_INDEX = (
    "lists and range() need to know the index, but JAX traces it; index a JAX array, by jnp.asarray(values)[index], or use "
    "jax.lax.fori_loop."
)
_RULES = (
    Explanation(
        (jax.errors.TracerBoolConversionError,),
        "Python's `if`, `while`, `and`, `or`, `not`, `min` and `max` need to know the numbers, but JAX traces the function "
        "once for all of them; use jnp.where(condition, yes, no), jnp.minimum, jnp.maximum, or jax.lax.cond.",
    ),
    Explanation(
        (jax.errors.TracerArrayConversionError,),
        "NumPy and SciPy cannot work with numbers that JAX traces; use the namesakes of their functions in jax.numpy and "
        f"jax.scipy (jax.scipy.stats, jax.scipy.special), index jnp.asarray(values) instead of a NumPy array, {_OTHERWISE}.",
    ),
    Explanation(
        (jax.errors.NonConcreteBooleanIndexError,),
        "picking entries by a condition would give an array whose size JAX cannot know; use jnp.where(condition, values, "
        "0.0), which keeps the size.",
    ),
    Explanation((jax.errors.TracerIntegerConversionError,), _INDEX),
    Explanation(
        (jax.errors.ConcretizationTypeError,),
        "float(), int(), .item() and the functions of `math` need to know the numbers, but JAX traces the function "
        f"once for all of them; leave the conversion out, use jax.numpy instead of math, {_OTHERWISE}.",
    ),
)
_ASSIGNED = (
    "a NumPy array cannot hold numbers that JAX traces; make it with jax.numpy, by jnp.array([...]), jnp.stack([...]) or "
    "array.at[index].set(value)."
)
_IN_PLACE = "JAX arrays are not changed in place; use {0} = {0}.at[index].set(value)."
_TORCH = "PyTorch cannot work with numbers that JAX traces; fit quenched.from_torch(log_density, start) instead."
# What JAX says of arrays whose shapes do not go together, of indices that an array has not, and of what is no array.
_SHAPES = re.compile(
    r"incompatible shapes|contracting dimension|cannot reshape|cannot concatenate|must have the same shape|Size of label"
    r"|inconsistent size for core dimension|must have ndim|Too many indices",
    re.IGNORECASE,
)
_NO_ARRAYS = re.compile(r"unsupported operand type|requires ndarray or scalar arguments|can't multiply sequence")
_TRACERS = tuple(kind for rule in _RULES for kind in rule.kinds)


def explained(error: Exception, name: str, *given: Any) -> Exception | None:
    """The error to raise instead of one that came out of a person's function; None to let it pass.

    Parameters
    ----------
    error
        As it was caught around the call.
    name
        What the function is called as an argument: "log_density".
    given
        What the function was given.
    """
    if isinstance(error, (UntraceableError, MissingKeyError, ShapeError)):
        return None  # it was already
    where = _innermost(error.__traceback__)
    says = _of_tracers(error)
    if says is not None:
        return UntraceableError(f"{name}: {_place(where)}{says}")
    if isinstance(error, (AttributeError, TypeError, ValueError)) and _of_no_tensor(error) and _uses_torch(where):
        return UntraceableError(f"{name}: {_place(where)}{_TORCH}")
    if isinstance(error, TypeError) and where is not None and (told := _of_an_array(error, name, where)) is not None:
        return told
    if isinstance(error, (TypeError, ValueError, IndexError)) and where is not None:
        return _of_shapes(error, name, where)
    if isinstance(error, KeyError) and error.args and where is not None:
        return _of_a_key(error.args[0], name, where, given)
    if isinstance(error, AttributeError) and isinstance(error.obj, Mapping) and error.name in error.obj:
        return AttributeError(
            f"{name}: {_place(where)}what it is given is asked by its names in brackets: [{error.name!r}]."
        )
    return None


def explaining(name: str, function: Callable[..., Any], /, *positional: Any, **keywords: Any) -> Any:
    """Call a person's function, which is called `name` as an argument, with what goes wrong inside in our words."""
    try:
        with as_outside():
            return function(*positional, **keywords)
    except Exception as error:
        told = explained(error, name, *positional, *keywords.values())
        if told is None:
            raise
        raise told from error


def kept_from_a_trace(error: Exception) -> UntraceableError | None:
    """What JAX says long after the function has returned, when it puts a program together, in our words."""
    if not isinstance(error, jax.errors.UnexpectedTracerError):
        return None
    return UntraceableError(
        "log_density: it uses a number that was kept (in an attribute, a global, a cache) while JAX traced it an earlier time, and "
        "that belongs to that trace; compute before the fit what is to be kept, or with NumPy."
    )


def insist_number(function: Callable[..., Any], value: Any) -> None:
    """Refuse what is no number and no array at all, as what a log density returns."""
    if value is None:
        raise ValueError(f"log_density returned None{_definition(function)}; is its `return` missing?")
    if not isinstance(value, (int, float, complex, np.generic)) and not hasattr(value, "shape"):
        parts = f" of {len(value)}" if isinstance(value, (tuple, list, dict)) else ""
        raise ValueError(
            f"log_density returned a {type(value).__name__}{parts}{_definition(function)}; it must return one number."
        )


def _of_tracers(error: Exception) -> str | None:
    if isinstance(error, _TRACERS):
        return next(rule.says for rule in _RULES if isinstance(error, rule.kinds))
    if isinstance(error, (TypeError, ValueError)) and isinstance(error.__cause__, _TRACERS):
        return _ASSIGNED  # NumPy's own words, because of JAX's
    return None


def _of_no_tensor(error: Exception) -> bool:
    """What PyTorch says of a number that is not its own."""
    return "Tracer" in str(error) or "must be a Tensor" in str(error)


def _uses_torch(where: TracebackType | None) -> bool:
    if where is None:
        return False
    own = where.tb_frame.f_globals
    used = [own[name] for name in where.tb_frame.f_code.co_names if name in own]
    return any(
        str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).startswith("torch") for value in used
    )


def _of_a_key(key: object, name: str, where: TracebackType, given: tuple) -> MissingKeyError | None:
    """Only where the mapping that was asked is one of those that were given: a copy, inside a function of JAX's."""
    text, mapping = _subscripted(where)
    if not isinstance(mapping, Mapping) or key in mapping:
        return None
    if not any(mapping is own or mapping.keys() == own.keys() for own in _mappings(given)):
        return None
    hint = did_you_mean(key, mapping)
    return MissingKeyError(
        f"{name}: {_place(where)}{text} has no {key!r}; it has {', '.join(map(repr, mapping))}{hint}"
    )


def _of_an_array(error: TypeError, name: str, where: TracebackType) -> Exception | None:
    """An array of JAX's that is asked by a name or changed in place, or of which one is to say how often, or where in a list."""
    expression = _expression(where)
    value = lambda part: _value(part, where.tb_frame)
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name) and expression.func.id == "range":
        traced = any(isinstance(value(argument), jax.Array) for argument in expression.args)
        return UntraceableError(f"{name}: {_place(where)}{_INDEX}") if traced else None
    if not isinstance(expression, ast.Subscript):
        return None
    owner, text = value(expression.value), ast.unparse(expression.value)
    if isinstance(owner, (list, tuple)) and isinstance(value(expression.slice), jax.Array):
        return UntraceableError(f"{name}: {_place(where)}{_INDEX}")
    if not isinstance(owner, jax.Array):
        return None
    if "item assignment" in str(error):
        return UntraceableError(f"{name}: {_place(where)}{_IN_PLACE.format(text)}")
    if isinstance(expression.slice, ast.Constant) and isinstance(expression.slice.value, str):
        return MissingKeyError(
            f"{name}: {_place(where)}{text} is an array of shape {owner.shape}, and has no {expression.slice.value!r}; index it by "
            "numbers, or give a dict of arrays."
        )
    return None


def _of_shapes(error: Exception, name: str, where: TracebackType) -> ShapeError | None:
    """Arrays that do not go together, with their shapes; or a dict, a list or a tuple that was taken for an array."""
    expression, said = _expression(where), str(error).partition("\n")[0].rstrip(".")
    if expression is None:  # as of `raise`: those words are the function's own
        return None
    named = [part for part in ast.walk(expression) if isinstance(part, (ast.Name, ast.Subscript))]
    parts = {ast.unparse(part): _value(part, where.tb_frame) for part in named}
    arrays = {text: value for text, value in parts.items() if isinstance(value, (jax.Array, np.ndarray))}
    others = {text: value for text, value in parts.items() if isinstance(value, (Mapping, list, tuple))}
    others = {text: value for text, value in others.items() if type(value).__name__ in said or "sequence" in said}
    if _NO_ARRAYS.search(said) and others:
        text, value = next(iter(others.items()))
        taken = f"by its names, {text}[{next(iter(value), '...')!r}]" if isinstance(value, Mapping) else f"as {text}[0]"
        return ShapeError(
            f"{name}: {_place(where)}{text} is a {type(value).__name__} of {len(value)}, with which JAX cannot reckon as with an "
            f"array; take what it holds {taken}, or give one array, such as np.array([...])."
        )
    if not _SHAPES.search(said):
        return None
    seen = " and ".join(f"{text} has shape {value.shape}" for text, value in arrays.items())
    return ShapeError(
        f"{name}: {_place(where)}{said}{f'; here {seen}' if seen else ''}. Start and data must have the shapes that the function "
        "expects: change them, or transpose, index or reshape there."
    )


def _mappings(tree: Any) -> Iterator[Mapping]:
    if isinstance(tree, Mapping):
        yield tree
        tree = tuple(tree.values())
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from _mappings(part)


def _innermost(traceback: TracebackType | None) -> TracebackType | None:
    """Where a person's own code was left, or else that of a package they use."""
    own = other = None
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__"))
        if not is_installed(module):
            own = traceback
        elif module.partition(".")[0] not in _NOT_THEIRS:
            other = traceback
        traceback = traceback.tb_next
    return own or other


def _place(where: TracebackType | None) -> str:
    if where is None:
        return ""
    code = where.tb_frame.f_code
    line = linecache.getline(code.co_filename, where.tb_lineno, where.tb_frame.f_globals).strip()
    shown = f", `{line}`" if line else ""
    return f"{_shortest(code.co_filename)}, line {where.tb_lineno}{shown}: "


def _definition(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return "" if code is None else f" ({_shortest(code.co_filename)}, line {code.co_firstlineno})"


def _shortest(path: str) -> str:
    """From here, where that is shorter."""
    try:
        return min(os.path.relpath(path), path, key=len) if os.path.isabs(path) else path
    except ValueError:  # on another drive
        return path


def _subscripted(where: TracebackType) -> tuple[str, Any]:
    """In `p["tau"]`, where that failed: the text `p`, and what it stands for; nothing where that cannot be told."""
    expression = _expression(where)
    if not isinstance(expression, ast.Subscript):
        return "", None
    return ast.unparse(expression.value), _value(expression.value, where.tb_frame)


def _expression(where: TracebackType) -> ast.expr | None:
    """The very expression that was being evaluated; None where that cannot be told."""
    try:
        return ast.parse(_evaluated(where), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _evaluated(where: TracebackType) -> str:
    """Its text."""
    code = where.tb_frame.f_code
    first, last, start, end = list(code.co_positions())[where.tb_lasti // 2]
    if first is None or last is None:
        return ""
    lines = [linecache.getline(code.co_filename, n, where.tb_frame.f_globals).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]  # columns are counted in bytes
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")


def _value(expression: ast.expr, frame: FrameType) -> Any:
    """What a name, or names and keys one after the other, stand for; nothing is called."""
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id))
    if isinstance(expression, ast.Subscript) and isinstance(expression.slice, ast.Constant):
        owner = _value(expression.value, frame)
        return owner.get(expression.slice.value) if isinstance(owner, Mapping) else None
    return None
