"""Programs that live as long as a module can be let go: none is made by `jax.jit` itself."""

import ast
from pathlib import Path

import pytest

import quenched

SOURCES = sorted(Path(quenched.__file__).parent.rglob("*.py"))


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
