"""Constrained parameters to the real line, with log-Jacobian."""

from quenched.transforms.bounded import Interval, above, below, interval, positive
from quenched.transforms.correlation import correlation_cholesky
from quenched.transforms.joint import Foreign, JointTransform
from quenched.transforms.registry import read_transform, transform_kinds, write_transform
from quenched.transforms.space import (
    Leaf,
    Parameters,
    Space,
    describe_space,
    leaf_name,
    lists_as_arrays,
    real_names,
)
from quenched.transforms.transform import Transform, real
from quenched.transforms.vectors import ordered, simplex

__all__ = [
    "Foreign",
    "Interval",
    "JointTransform",
    "Leaf",
    "Parameters",
    "Space",
    "Transform",
    "above",
    "below",
    "correlation_cholesky",
    "describe_space",
    "interval",
    "leaf_name",
    "lists_as_arrays",
    "ordered",
    "positive",
    "read_transform",
    "real",
    "real_names",
    "simplex",
    "transform_kinds",
    "write_transform",
]
