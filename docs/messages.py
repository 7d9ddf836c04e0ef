"""Every error that the library raises on purpose, read from its source: the message with `…` for values, and where it comes from."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "quenched"
KINDS = {
    *("ValueError", "TypeError", "KeyError", "IndexError", "ImportError", "FileNotFoundError", "RuntimeError"),
    *("FitError", "DatasetError", "Misuse", "CallFailed", "LostProcess", "MemoryError"),
}
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
    meant = _meant(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kind = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))
            if kind in KINDS and node.exc.args:
                said = node.exc.args[0]
                for one in meant.get(_name(said), [said]):
                    yield kind, _once(" ".join(_text(one).split()))


def _meant(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """What a name of a module may stand for: what is assigned to it, handed over as it, or returned by the function."""
    found: dict[str, list[ast.expr]] = {}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for name, function in functions.items():
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        found.setdefault(name, []).extend(returned)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.Call) and _name(node) in functions:
            for parameter, given in zip(functions[_name(node)].args.args, node.args, strict=False):
                found.setdefault(parameter.arg, []).append(given)
    return found


def _name(node: ast.expr) -> str:
    """Of a variable, or of the function that is called."""
    return getattr(node.func if isinstance(node, ast.Call) else node, "id", "")


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


def _once(text: str) -> str:
    """One `…` for values that stand side by side, and no full stop after it: most of them end with one."""
    return re.sub(r"…\.(?!\w)", "…", re.sub(r"…(?:[\s,.]*…)+", "…", text))


def _cell(text: str) -> str:
    return (
        text.replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("`", "")
        .replace("[", "\\[")
    )
