"""Every error that the library raises on purpose, and every sentence that a fit, a diagnosis or a warning may say: read from
its source, with `…` for values, and where it comes from.
"""

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
_FEW_WORDS = 4  # that make a sentence
_OF_THEIR_OWN = ("paper", "cli", "report")  # rooms that write pages and print by themselves, and are no part of a fit


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


def sentences() -> list[tuple[str, str]]:
    """What is said without being raised, whole sentences only: the room, and the text."""
    known = {message.text for message in messages()}
    found = {
        (path.relative_to(SOURCE).parts[0].removesuffix(".py"), text)
        for path in SOURCE.rglob("*.py")
        for text in _said(ast.parse(path.read_text(encoding="utf-8")))
        if text not in known
    }
    return sorted((room, text) for room, text in found if room not in _OF_THEIR_OWN)


def reasons(path: str, kind: str, place: int) -> dict[str, str]:
    """Of a table in the source, such as the rules of a verdict: what each entry says, by its name."""
    room = [ast.parse(one.read_text(encoding="utf-8")) for one in (SOURCE / path).parent.glob("*.py")]
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    meant = {name: ways for one in (*room, tree) for name, ways in _meant(one).items()}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node) == kind:
            says, (name, *_) = node.args[place], node.args
            body = says.body if isinstance(says, ast.Lambda) else says
            found[_text(meant.get(_name(name), [name])[0])] = _ways(body, meant)
    return found


def _ways(body: ast.expr, meant: dict[str, list[ast.expr]]) -> str:
    """What it may say: its own words, those of the function that it calls, or of one whose answer a field of that name holds."""
    names = [_name(body), *(node.attr for node in ast.walk(body) if isinstance(node, ast.Attribute))]
    several = ([body], *(meant[name] for name in names if name in meant))
    texts = ([_once(" ".join(_text(way).split())) for way in ways] for ways in several)
    spoken = next((said for said in texts if any(text.strip("…") for text in said)), ["…"])
    return " (or) ".join(text for text in dict.fromkeys(spoken) if text)


def table() -> str:
    """A table for each room, for the page on troubleshooting."""
    rows = [(message.room, _cell(message.text), f"`{message.kind}`") for message in messages()]
    return _by_room(rows, "| it says | kind |\n|---|---|")


def table_of_sentences() -> str:
    """The same of what is not raised."""
    return _by_room([(room, _cell(text)) for room, text in sentences()], "| it says |\n|---|")


def _by_room(rows: list[tuple[str, ...]], heading: str) -> str:
    rooms: dict[str, list[str]] = {}
    for room, *cells in rows:
        rooms.setdefault(room, []).append(f"| {' | '.join(cells)} |")
    return "\n\n".join(f"### From `{room}`\n\n{heading}\n" + "\n".join(lines) for room, lines in rooms.items())


def _said(tree: ast.Module) -> Iterator[str]:
    """Texts that end as sentences do, but for docstrings and what is raised."""
    lines = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    left_out = {id(line.value) for line in lines if isinstance(line.value, ast.Constant)}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) or id(node) in left_out:
            continue
        text = " ".join(_text(node).split()) if isinstance(node, ast.expr) else "…"
        if not text.replace("…", "").strip():
            waiting.extend(ast.iter_child_nodes(node))
        elif text.endswith(".") and len(text.split()) >= _FEW_WORDS and text[0] not in ";(":  # which go on with another
            yield _once(text)


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
        return " (or) ".join(filter(None, (_text(node.body), _text(node.orelse))))
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
