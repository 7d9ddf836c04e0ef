"""How a target's function is evaluated at the draws."""

from quenched.execute.executor import Evaluation, Executor
from quenched.execute.host import Host
from quenched.execute.traced import Programs, Traced, bytes_of_a_point, points_that_fit, trace

__all__ = ["Evaluation", "Executor", "Host", "Programs", "Traced", "bytes_of_a_point", "points_that_fit", "trace"]
