"""Each room has one door, its `__init__.py`: nobody reaches past another room's, and nobody inside imports the root."""

import ast
from pathlib import Path

import pytest

import quenched

SOURCE = Path(quenched.__file__).parent
MODULES = {
    ".".join(("quenched", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}
ROOMS = {name for name, path in MODULES.items() if path.name == "__init__.py"} - {"quenched", "quenched.paper"}


def imports(path):
    """Modules that a file imports; a submodule that is imported as a name counts, unless the door has that name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in MODULES and alias.name not in offered(node.module) else node.module


def offered(module):
    """Names that a door imports from behind it."""
    nodes = ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))) if module in MODULES else ()
    return {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def room(module):
    """The innermost room that a module stands in; the root, if it is a room of its own."""
    return max((name for name in ROOMS if module == name or module.startswith(f"{name}.")), key=len, default="quenched")


@pytest.mark.parametrize("name", [name for name in MODULES if name != "quenched"])
def test_nobody_reaches_past_a_door_or_imports_the_root(name):
    for imported in imports(MODULES[name]):
        if imported in MODULES:
            assert imported != "quenched"
            behind = room(imported)
            assert imported == behind or behind == "quenched" or f"{name}.".startswith(f"{behind}."), imported
