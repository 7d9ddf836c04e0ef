"""The kinds of transforms by name, for files: a new one needs its line here, and fields that JSON can hold."""

import dataclasses
from typing import Any

from quenched.transforms.bounded import Above, Below, Interval, Positive
from quenched.transforms.correlation import CorrelationCholesky
from quenched.transforms.joint import Foreign
from quenched.transforms.transform import Real, Transform
from quenched.transforms.vectors import Ordered, Simplex

transform_kinds: dict[str, type[Transform]] = {
    kind.__name__: kind
    for kind in (Real, Positive, Above, Below, Interval, Ordered, Simplex, CorrelationCholesky, Foreign)
}


def write_transform(transform: Transform) -> dict[str, Any]:
    """What `read_transform` reads: the kind and its fields, as JSON."""
    return {"kind": type(transform).__name__, **dataclasses.asdict(transform)}


def read_transform(text: dict[str, Any]) -> Transform:
    """The transform that was written.

    Raises
    ------
    ValueError
        When its kind is not known.
    """
    fields = {name: value for name, value in text.items() if name != "kind"}
    if text["kind"] not in transform_kinds:
        raise ValueError(f"{text['kind']!r} is not a kind of transform; known are {', '.join(transform_kinds)}.")
    return transform_kinds[text["kind"]](**fields)
