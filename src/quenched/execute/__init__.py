"""How a target's function is evaluated at the draws."""

from quenched.execute.executor import Evaluation, Executor
from quenched.execute.host import Host
from quenched.execute.lapack import compiled, in_small_calls
from quenched.execute.traced import Faces, Programs, Traced, bytes_of_a_point, points_that_fit, trace

__all__ = [
    "Evaluation",
    "Executor",
    "Faces",
    "Host",
    "Programs",
    "Traced",
    "bytes_of_a_point",
    "compiled",
    "in_small_calls",
    "points_that_fit",
    "trace",
]
