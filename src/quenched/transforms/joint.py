"""Parameters that another package takes to natural units, all at once.

A front end knows a map from the real line that is not ours: a support may depend on other parameters, and the map may be
code that JAX cannot trace. Leaves whose map is one of our transforms are known by it; the others are `Foreign`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from quenched.transforms.transform import Transform


class Foreign(Transform):
    """A map that only the package of the model knows."""

    axes: ClassVar[int] = 1
    on_line: tuple[int, ...]  # shape on the real line

    def __post_init__(self):
        object.__setattr__(self, "on_line", tuple(self.on_line))

    def to_natural(self, real):
        raise ValueError(_UNKNOWN)

    def to_real(self, natural):
        raise ValueError(_UNKNOWN)

    def log_jacobian(self, real):
        raise ValueError(_UNKNOWN)

    def describe(self):
        return "in the support that its model gives it"

    def real_shape(self, natural_shape):
        return self.on_line


_UNKNOWN = (
    "fit: it was loaded without its model, and only the model knows the support of its parameters; give it back with "
    "fit = fit.attach(model), where model is what was fitted (quenched.from_stan(...), ...)."
)


@dataclass(frozen=True, eq=False)
class JointTransform:
    """Between the real line and natural units, for all parameters together; given to `fit` as `transforms`.

    Attributes
    ----------
    to_natural
        From the parameters on the real line, a dict of arrays by name, to those in natural units, of the same names; on
        the host, of many rows at a time, which are the leading axis of every array.
    to_real
        The way back, in NumPy.
    known
        Our own transforms of those parameters that have one.
    on_host
        `to_natural` is NumPy code: JAX cannot trace it.
    """

    to_natural: Callable[[dict[str, Any]], dict[str, Any]]
    to_real: Callable[[dict[str, Any]], dict[str, Any]]
    known: Mapping[str, Transform] = field(default_factory=dict)
    on_host: bool = False
