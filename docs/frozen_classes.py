"""What the reference would not find out by itself: that subclasses of `Frozen` and `Tree` are dataclasses, since they have no
decorator that says so; that parameters which share a description have a type each; and what a private name stands for where it is
a default.
"""

import re
from collections.abc import Iterator
from typing import Any

import griffe

BASES = {"quenched.frozen.Frozen", "quenched.frozen.Tree"}


class _Dataclass(griffe.ExprName):
    """The name of the decorator, whatever the module in which it stands has imported."""

    @property
    def canonical_path(self) -> str:
        return "dataclasses.dataclass"


class FrozenClasses(griffe.Extension):
    """Every class below one of the bases gets the decorator, and so the signature of a dataclass."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        if pkg.path == "quenched":
            for found in _classes(pkg):
                if any(parent.path in BASES for parent in found.mro()):
                    found.decorators.append(griffe.Decorator(_Dataclass("dataclass"), lineno=None, endlineno=None))
            for function in _functions(pkg):
                _say_defaults(function)
                if function.docstring is not None:
                    function.docstring.value = _one_each(function.docstring.value)


def _say_defaults(function: griffe.Function) -> None:
    """`most=40` instead of `most=_MOST`."""
    for parameter in function.parameters:
        named = str(parameter.default)
        constant = function.module.members.get(named) if named.startswith("_") else None
        if constant is not None and constant.is_attribute and constant.value is not None:  # pyright: ignore
            parameter.default = constant.value  # pyright: ignore


def _one_each(text: str) -> str:
    """`a, b` with one description as `a` and `b` with the same: griffe gives all of them the type of the first."""
    head, mark, parameters = text.partition("Parameters\n----------\n")
    if not mark:
        return text
    inside, rest = re.match(r"((?:(?!\n\w+\n---).)*)(.*)", parameters, re.DOTALL).groups()  # pyright: ignore
    several = re.compile(r"^(\w+(?:, \w+)+)\n((?:[ ]+.*\n?|\n(?=[ ]))+)", re.MULTILINE)
    return head + mark + several.sub(_repeated, inside) + rest


def _repeated(found: re.Match) -> str:
    said = found[2] if found[2].endswith("\n") else found[2] + "\n"
    return "".join(f"{name}\n{said}" for name in found[1].split(", ")).rstrip("\n") + (
        "\n" if found[2].endswith("\n") else ""
    )


def _functions(owner: griffe.Module | griffe.Class) -> Iterator[griffe.Function]:
    for member in owner.members.values():
        if member.is_alias:
            continue
        if member.is_function:
            yield member  # pyright: ignore
        elif member.is_class or member.is_module:
            yield from _functions(member)  # pyright: ignore


def _classes(owner: griffe.Module | griffe.Class):
    for member in owner.members.values():
        if not member.is_alias and (member.is_class or member.is_module):
            if member.is_class:
                yield member
            yield from _classes(member)  # ty: ignore
