"""Text from elsewhere, made fit to be shown: a name must not move a terminal's cursor or end a line of a table."""

import difflib
import unicodedata
from collections.abc import Iterable


def harmless(text: str) -> str:
    """The same text, with control characters, also those that turn the direction of writing, as escapes."""
    return "".join(_escaped(letter) if unicodedata.category(letter) in _CONTROLS else letter for letter in text)


def harmless_lines(text: str) -> str:
    """The same of a text of several lines, which it keeps."""
    return "\n".join(map(harmless, text.split("\n")))


def dotted(path: tuple) -> str:
    """The way to a leaf of a pytree as a name, `a.b`; empty for the tree itself."""
    from jax.tree_util import keystr  # not with this module: whoever only prints needs no JAX

    return harmless(keystr(path, simple=True, separator="."))


def shown(value: object, most: int = 200) -> str:
    """A value as messages show it: on one line, harmless, not for ever, and whatever it is."""
    try:
        text = repr(value)
    except Exception:  # of the user's own class, or of a number with thousands of digits
        text = f"<{type(value).__name__}>"
    text = harmless(" ".join(text.split()))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """How a sentence ends that says that there is no such name: with the nearest, if one is near."""
    near = difflib.get_close_matches(str(name), list(map(str, known)), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."


def given_text(name: str, value: object) -> str:
    """A word or a sentence to be shown."""
    if not isinstance(value, str):
        raise ValueError(f"{name}={shown(value)}: give a text.")
    return harmless(value)


_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
