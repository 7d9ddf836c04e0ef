"""Project, then draw: the bound of a sum of terms with frozen points in the few numbers that each term sees."""

from quenched.projected.bound import Expected, FreeChanges, ProjectedBound, bound_at, structure_of
from quenched.projected.collapsed import Collapsed, collapse

__all__ = [
    "Collapsed",
    "Expected",
    "FreeChanges",
    "ProjectedBound",
    "bound_at",
    "collapse",
    "structure_of",
]
