"""A page for each room of the library: what it is for, its door, its files and whom it may use; all read from the code."""

import ast
import functools
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "quenched"


class Module(NamedTuple):
    """A file: its docstring, its lines, and whom it imports."""

    path: Path
    docstring: str
    lines: int
    imports: frozenset[str]


class Room(NamedTuple):
    """A folder with one door, or the files beside the folders."""

    name: str
    door: Module | None
    modules: tuple[Module, ...]


@functools.cache
def rooms() -> tuple[Room, ...]:
    """Every room, and last the files that stand alone."""
    folders = sorted(folder for folder in SOURCE.iterdir() if (folder / "__init__.py").exists())
    found = [_room(folder) for folder in folders]
    alone = tuple(_module(path) for path in sorted(SOURCE.glob("*.py")) if path.stem != "__init__")
    return (*found, Room("files", None, alone))


def index() -> str:
    """The list of rooms in the order of the layers."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][
        0
    ]["layers"]
    known = {room.name: room for room in rooms()}
    rows = []
    for layer in layers:
        names = [name.strip() for name in layer.replace("|", ":").split(":")]
        folders = [name for name in names if name in known and name != "files"]
        shown = ", ".join(f"[{name}]({name}.md)" for name in folders)
        files = [name for name in names if name not in folders]
        beside = ", ".join(f"`{name}.py`" for name in files)
        rows.append(
            "| " + ", ".join(part for part in (shown, f"[files](files.md): {beside}" if files else "") if part) + " |"
        )
    return (
        "# Rooms\n\nThe library is a house of rooms, each a folder with one door, its `__init__.py`. Imports point down this list "
        "only; rooms on one line do not import each other, but for the exceptions in `pyproject.toml`. These pages are made from "
        "the docstrings; `CONTRIBUTING.md` has the rules of the house.\n\n| from the top |\n|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def page(room: Room) -> str:
    """What a contributor wants to know of a room before opening a file."""
    parts = [f"# {room.name}"]
    if room.door is not None:
        parts.append(room.door.docstring or "")
        names = _exported(room.door.path)
        if names:
            parts.append("**Its door.** " + ", ".join(f"`{name}`" for name in names))
    uses = sorted({name for module in room.modules for name in module.imports} - {room.name})
    if uses:
        parts.append("**It uses** " + ", ".join(f"`{name}`" for name in uses) + ".")
    used = sorted(
        other.name
        for other in rooms()
        if other.name != room.name and any(room.name in m.imports for m in other.modules)
    )
    if used and room.door is not None:
        parts.append("**It is used by** " + ", ".join(f"`{name}`" for name in used) + ".")
    rows = [
        f"| `{_shown(module.path, room)}` | {module.lines} | {_first(module.docstring)} |" for module in room.modules
    ]
    parts.append("| file | lines | what it holds |\n|---|---|---|\n" + "\n".join(rows))
    tests = ROOT / "tests" / room.name
    if tests.is_dir():
        files = ", ".join(f"`{path.name}`" for path in sorted(tests.rglob("test_*.py")))
        parts.append(f"**Its tests**, in `tests/{room.name}/`: {files}. The laws in `tests/laws/` hold for all rooms.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _room(folder: Path) -> Room:
    files = [path for path in sorted(folder.rglob("*.py")) if path != folder / "__init__.py"]
    return Room(folder.name, _module(folder / "__init__.py"), tuple(_module(path) for path in files))


def _module(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("quenched."):
            found.add(node.module.split(".")[1])
    return Module(path, ast.get_docstring(tree) or "", len(text.splitlines()), frozenset(found))


def _exported(door: Path) -> list[str]:
    for node in ast.parse(door.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _shown(path: Path, room: Room) -> str:
    return str(path.relative_to(SOURCE if room.door is None else SOURCE / room.name))


def _first(docstring: str) -> str:
    """Its first paragraph, in one line of a table."""
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")
