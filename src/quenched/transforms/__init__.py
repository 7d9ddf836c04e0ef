"""Constrained parameters to the real line, with log-Jacobian."""

from quenched.transforms.space import Leaf, Parameters, Space, describe_space, leaf_name, leaf_names
from quenched.transforms.transform import Interval, Transform, interval, ordered, positive, real, simplex

__all__ = [
    "Interval",
    "Leaf",
    "Parameters",
    "Space",
    "Transform",
    "describe_space",
    "interval",
    "leaf_name",
    "leaf_names",
    "ordered",
    "positive",
    "real",
    "simplex",
]
