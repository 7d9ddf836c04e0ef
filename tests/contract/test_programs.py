"""Programs are made in one place: those of a module can be let go, and none calls LAPACK so that it could wait for itself."""

import ast
from pathlib import Path

import pytest

import quenched

SOURCES = sorted(Path(quenched.__file__).parent.rglob("*.py"))

PARTS = {"traced.py"}  # which makes parts of programs that are made elsewhere


def lasting(tree: ast.AST) -> list[int]:
    """Lines in which `jax.jit` is used outside the bodies of functions."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr == "jit":
            found.append(node.lineno)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                found += lasting(ast.Expression(decorator))
        elif not isinstance(node, ast.Lambda):
            found += lasting(node)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_program_of_a_module_can_be_let_go(path):
    assert lasting(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_program_is_made_past_the_room_for_it(path):
    if path.parent.name == "compiling" or path.name in PARTS:
        return
    used = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)]
    assert not [node.lineno for node in used if node.attr == "jit"]
