"""How a target's function is evaluated at the draws."""

from quenched.execute.address_space import take_what_linear_algebra_needs
from quenched.execute.blocks import InBlocks
from quenched.execute.deadline import GRACE, Expired, until
from quenched.execute.effort import Effort, Program, effort
from quenched.execute.execution import Elsewhere, Execution, Here, Work
from quenched.execute.executor import Evaluation, Executor
from quenched.execute.footprint import bytes_held
from quenched.execute.host import Host, HostFunction
from quenched.execute.kept import folder_of_programs, keep_programs
from quenched.execute.living import Identified, Living
from quenched.execute.lost import LostProcess
from quenched.execute.memory import out_of_memory
from quenched.execute.mesh_devices import exchanged, on_devices
from quenched.execute.pool import CallFailed, Pool, pickled
from quenched.execute.sharded import Sharded, agreed, read_mesh, writes
from quenched.execute.traced import Programs, Traceable, trace
from quenched.execute.waiting import StuckProgram, Wait

__all__ = [
    "GRACE",
    "CallFailed",
    "Effort",
    "Elsewhere",
    "Evaluation",
    "Execution",
    "Executor",
    "Expired",
    "Here",
    "Host",
    "HostFunction",
    "Identified",
    "InBlocks",
    "Living",
    "LostProcess",
    "Pool",
    "Program",
    "Programs",
    "Sharded",
    "StuckProgram",
    "Traceable",
    "Wait",
    "Work",
    "agreed",
    "bytes_held",
    "effort",
    "exchanged",
    "folder_of_programs",
    "keep_programs",
    "on_devices",
    "out_of_memory",
    "pickled",
    "read_mesh",
    "take_what_linear_algebra_needs",
    "trace",
    "until",
    "writes",
]
