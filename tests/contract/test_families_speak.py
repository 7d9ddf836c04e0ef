"""Families say what a fit needs to know: nobody outside their room asks which one it is, by class or by name."""

import ast
from pathlib import Path

import pytest

import quenched.families
from quenched.families import Family, Member

SOURCE = Path(quenched.families.__file__).parents[1]
CONCRETE = {
    name
    for name in quenched.families.__all__
    if isinstance(kind := getattr(quenched.families, name), type) and issubclass(kind, (Family, Member))
} - {"Family", "Member"}
# What a person types is turned into a family by the commands; the paper's experiments call their methods by such names too.
READERS = {"cli/fit.py"}
FILES = [
    path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] not in ("families", "paper")
]


def names_in(node):
    return {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, (ast.Name, ast.Attribute))
    }


def questions(tree):
    """Places where a class of a family is asked after: isinstance, issubclass, `type(x) is`, `case Class():`; or its name."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = names_in(node.args[1]) & CONCRETE
        elif isinstance(node, ast.MatchClass):
            asked = names_in(node.cls) & CONCRETE
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            said = {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)}
            of_family = any("family" in ast.unparse(side) for side in sides)
            asked = {side for part in sides for side in names_in(part) & CONCRETE}
            asked |= {text for text in said if isinstance(text, str) and of_family and text != "auto"} - {"family"}
        else:
            continue
        for name in asked:
            yield f"line {node.lineno}: {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nobody_asks_which_family_it_is(path):
    if str(path.relative_to(SOURCE)) not in READERS:
        assert list(questions(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(a.family, LowRank)",
        "isinstance(member, (Member, families.SparseGaussian))",
        "type(member) is FullGaussian",
        "settings['family'] == 'warped'",
        "family.name in ('full', 'sparse')",
        "match family:\n    case Warped(): pass",
    ],
)
def test_such_a_question_would_be_seen(line):
    assert list(questions(ast.parse(line)))


@pytest.mark.parametrize("line", ["isinstance(family, Family)", "family == 'auto'", "family.bound is Bound.OF_TERMS"])
def test_and_others_would_not(line):
    assert not list(questions(ast.parse(line)))
