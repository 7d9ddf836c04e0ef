"""What a user can put right, told without a traceback of ours."""

import os
import traceback
from pathlib import Path


class Misuse(Exception):
    """The message says what is wrong and what to do."""


def blame(error: BaseException, path: Path) -> str | None:
    """Where an error arose in the user's file, with the line; None if it did not pass through that file."""
    if isinstance(error, SyntaxError) and _is(error.filename, path):
        shown = f"\n\n    {error.text.strip()}" if error.text else ""
        return f"{path}, line {error.lineno}: {type(error).__name__}: {error.msg}{shown}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is(frame.filename, path)]
    if not frames:
        return None
    last = frames[-1]
    inside = "" if last.name == "<module>" else f", in {last.name}"
    shown = f"\n\n    {last.line}" if last.line else ""
    return f"{path}, line {last.lineno}{inside}: {_first_paragraph(error)}{shown}"


def _is(filename: str | None, path: Path) -> bool:
    return filename is not None and os.path.abspath(filename) == os.path.abspath(path)


def _first_paragraph(error: BaseException) -> str:
    """JAX explains itself over several paragraphs; the first says what happened."""
    text = str(error).strip().split("\n\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
