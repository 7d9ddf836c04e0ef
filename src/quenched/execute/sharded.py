"""Draws and rows sharded over a JAX mesh: one process with many devices, or many processes of `jax.distributed`.

Every device evaluates the target at its own draws (`jax.shard_map` over the axis "draws"); rows of data lie on the axis "rows",
and XLA sums over them wherever the target does. What comes back is the sum over draws of the gradient, the same bits on every
device: one all-reduce per evaluation. Whoever drives the fit sees NumPy arrays, and takes the same decisions on every host.
"""

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from quenched.compiling import compiled, in_small_calls
from quenched.execute.effort import Effort, effort
from quenched.execute.execution import SMALL_CHUNK, Execution
from quenched.execute.executor import Evaluation
from quenched.execute.lost import with_others
from quenched.execute.traced import Programs, Traced, points_that_fit
from quenched.text import shown

DRAWS, ROWS = "draws", "rows"
_agreeing: dict[Any, float] = {}


@dataclass(frozen=True)
class Sharded(Execution):
    """On the devices of a mesh with axes among "draws" and "rows", whose types are all automatic."""

    mesh: Mesh
    memory: float | None = None

    def executor(self, work, n_draws):
        assert work.programs is not None  # a function on the host has no devices
        shards = self.mesh.shape.get(DRAWS, 1)
        most = sys.maxsize
        if self.memory is not None:
            most = max(points_that_fit(work.bytes_of_a_point // self.mesh.shape.get(ROWS, 1), self.memory), 1) * shards
        few = min(n_draws, max(SMALL_CHUNK, 8 * shards)) if work.dim <= 2 * SMALL_CHUNK else n_draws
        own = effort(work.bytes_of_a_point)
        return ShardedExecutor(work.programs, self.mesh, -(-few // shards) * shards, most, own)

    def placed(self, data):
        return place_rows(data, self.mesh)

    def describe(self):
        return {"mesh": dict(self.mesh.shape), "processes": jax.process_count()}


class Sharding(NamedTuple):
    """Programs of a function over one mesh."""

    evaluate: Any  # to be traced within larger programs
    values: Any
    evaluate_alone: Any
    values_alone: Any
    longest: dict[Any, float]  # seconds that each kind of program has taken


@lru_cache(maxsize=32)
def sharding(programs: Programs, mesh: Mesh) -> Sharding:
    """The programs of a function with draws over a mesh; what is not summed over draws comes back from all of them."""
    inside, everywhere = programs.inside, NamedSharding(mesh, PartitionSpec())
    if DRAWS not in mesh.shape:
        evaluate, values = inside.evaluate, inside.values
    else:
        own, all_of_it = PartitionSpec(DRAWS), PartitionSpec()

        def of_own_draws(points, counts, data, free):
            found = in_small_calls(inside.evaluate)(points, counts, data, free)
            return found._replace(free_gradient=jax.lax.psum(found.free_gradient, DRAWS))

        # Of a user's function nothing is known, so that nothing can be checked. Rows stay with XLA.
        over = {"mesh": mesh, "axis_names": {DRAWS}, "check_vma": False}
        evaluate = jax.shard_map(
            of_own_draws, in_specs=(own, own, all_of_it, all_of_it), out_specs=Evaluation(own, own, all_of_it), **over
        )
        values = jax.shard_map(
            in_small_calls(inside.values), in_specs=(own, all_of_it, all_of_it), out_specs=own, **over
        )
    alone = lambda function: compiled(function, out_shardings=everywhere)
    return Sharding(evaluate, values, alone(evaluate), alone(values), {})


class ShardedExecutor(Traced):
    """Runs a traced function on all devices of a mesh."""

    mirrors = False  # the two halves of mirrored draws would lie on different devices

    def __init__(self, programs: Programs, mesh: Mesh, chunk: int, most: int, effort: Effort):
        super().__init__(programs, chunk, most, effort)
        self.mesh, self.sharding = mesh, sharding(programs, mesh)
        self.traced, self.traced_values = self.sharding.evaluate, self.sharding.values
        self.shards, self.here = mesh.shape.get(DRAWS, 1), False

    def put(self, chunks, *, once=False):
        """The draws of every chunk over the devices."""
        return self._spread(chunks, None)

    def _spread(self, array: Any, *axes: None) -> jax.Array:
        spec = PartitionSpec(*axes, DRAWS) if DRAWS in self.mesh.shape else PartitionSpec()
        return on_mesh(np.asarray(array), NamedSharding(self.mesh, spec))

    def run(self, program, *kind):
        """What a program answers, as NumPy arrays; with other processes, before long or not at all."""
        with with_others(self.sharding.longest, kind):
            return jax.tree.map(_whole, program())

    def evaluate(self, points, counts, data, free):
        inputs = self._spread(points), self._spread(counts), data, np.asarray(free)
        return self.run(lambda: self.sharding.evaluate_alone(*inputs), "evaluate", len(points))

    def values(self, points, data, free):
        points = np.asarray(points)
        n, shards = len(points), self.shards
        filled = self._spread(np.concatenate([points, np.repeat(points[:1], -n % shards, axis=0)]))
        return self.run(lambda: self.sharding.values_alone(filled, data, np.asarray(free)), "values", n)[:n]

    def second_order(self, point, spread, data, free):
        expand = super().second_order
        value, gradient, hessian = self.run(lambda: expand(point, spread, data, free), "second order", len(point))
        return float(value), gradient, hessian


def _whole(leaf: Any) -> np.ndarray:
    """An answer, of which other processes may have parts."""
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable or leaf.is_fully_replicated:
        return np.asarray(leaf)
    from jax.experimental.multihost_utils import process_allgather

    return np.asarray(process_allgather(leaf, tiled=True))


def place_rows(data: Any, mesh: Mesh) -> Any:
    """Data over the devices: arrays as long as the longest along the axis "rows", all others everywhere.

    Arrays that already lie on several devices stay as they are: a host that has only its own rows makes one with
    `jax.make_array_from_process_local_data`.

    Raises
    ------
    ValueError
        When the rows cannot be divided among the devices.
    """
    leaves = jax.tree.leaves(data)
    longest = max((leaf.shape[0] for leaf in leaves if np.ndim(leaf)), default=0)
    shards = mesh.shape.get(ROWS, 1)
    if longest % shards:
        raise ValueError(
            f"mesh: {longest} rows cannot be divided among {shards} shards; leave out {longest % shards} of them, add rows "
            'that weigh nothing, or take a mesh without the axis "rows".'
        )

    def place(leaf):
        if isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1:
            return leaf
        # Rows of other lengths (of another kind of term) too, where they can be divided.
        long = ROWS in mesh.shape and np.ndim(leaf) and leaf.shape[0] % shards == 0 and leaf.shape[0] >= longest // 16
        return on_mesh(np.asarray(leaf), NamedSharding(mesh, PartitionSpec(ROWS) if long else PartitionSpec()))

    return jax.tree.map(place, data)


def on_mesh(array: np.ndarray, sharding: NamedSharding) -> jax.Array:
    """An array that every process has, of which every device takes its own part."""
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def read_mesh(mesh: Any) -> Mesh:
    """A mesh whose axes are "draws" and "rows", with automatic types; one axis of another name is taken for draws.

    `jax.make_mesh` makes explicit axes by default, under which not every density can be traced.

    Raises
    ------
    ValueError
        When it is no mesh, or has other axes.
    """
    if not isinstance(mesh, Mesh):
        raise ValueError(f"mesh={shown(mesh)}: give a jax.sharding.Mesh, such as jax.make_mesh((8,), ('draws',)).")
    names: tuple[Any, ...] = tuple(mesh.axis_names)
    names = (DRAWS,) if len(names) == 1 and names != (ROWS,) else names
    if not set(names) <= {DRAWS, ROWS}:
        raise ValueError(f"mesh: its axes are {mesh.axis_names}; name them 'draws' and 'rows', or have one alone.")
    return Mesh(mesh.devices, names, axis_types=(AxisType.Auto,) * len(names))


def writes(mesh: Mesh | None) -> bool:
    """Whether this process writes files and shows progress: of several, the first alone."""
    return mesh is None or jax.process_index() == 0


def agreed(decision: bool) -> bool:
    """What the first process has decided."""
    if jax.process_count() == 1:
        return decision
    from jax.experimental.multihost_utils import broadcast_one_to_all

    with with_others(_agreeing, "agree"):
        return bool(broadcast_one_to_all(np.asarray(decision)))
