"""Every error that the library raises on purpose, read from its source: the message with `…` for values, and where it comes from."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "quenched"
KINDS = {"ValueError", "TypeError", "ImportError", "FitError", "DatasetError", "KeyError", "Misuse"}
_SHORT = 12  # characters of a message that say nothing by themselves


class Message(NamedTuple):
    """What is raised, what it says, and which room says it."""

    kind: str
    text: str
    room: str


def messages() -> list[Message]:
    """All of them, once each, in the order of their words."""
    found = {
        Message(kind, text, path.relative_to(SOURCE).parts[0].removesuffix(".py"))
        for path in SOURCE.rglob("*.py")
        for kind, text in _raised(ast.parse(path.read_text(encoding="utf-8")))
        if len(text.replace("…", "").strip()) > _SHORT
    }
    return sorted(found, key=lambda message: (message.room, message.text.lower()))


def table() -> str:
    """A table for each room, for the page on troubleshooting."""
    rooms: dict[str, list[Message]] = {}
    for message in messages():
        rooms.setdefault(message.room, []).append(message)
    parts = []
    for room, said in rooms.items():
        rows = [f"| {_cell(message.text)} | `{message.kind}` |" for message in said]
        parts.append(f"### From `{room}`\n\n| it says | kind |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts)


def _raised(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kind = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))
            if kind in KINDS and node.exc.args:
                yield kind, " ".join(_text(node.exc.args[0]).split())


def _text(node: ast.expr) -> str:
    """A message as it is written, with `…` for whatever is worked out when it is raised."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body)} (or) {_text(node.orelse)}"
    return "…"


def _cell(text: str) -> str:
    return (
        text.replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("`", "")
        .replace("[", "\\[")
    )
