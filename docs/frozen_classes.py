"""Tells the reference that subclasses of `Frozen` and `Tree` are dataclasses: they have no decorator that says so."""

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


def _classes(owner: griffe.Module | griffe.Class):
    for member in owner.members.values():
        if not member.is_alias and (member.is_class or member.is_module):
            if member.is_class:
                yield member
            yield from _classes(member)  # ty: ignore
