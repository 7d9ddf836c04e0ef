"""Text from elsewhere, made fit to be shown: a name must not move a terminal's cursor or end a line of a table."""

import unicodedata


def harmless(text: str) -> str:
    """The same text, with control characters, also those that turn the direction of writing, as escapes."""
    return "".join(_escaped(letter) if unicodedata.category(letter) in _CONTROLS else letter for letter in text)


_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
