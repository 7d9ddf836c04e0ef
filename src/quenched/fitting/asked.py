"""What a fit was asked for, from options as a user gives them to a run: everything is read before anything is computed."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.draws import Draws, TermDraws, term_draws
from quenched.execute import Elsewhere, Execution, Here, InBlocks, Pool, Sharded, agreed, writes
from quenched.families import Bound, Family
from quenched.files import read_path_to_write
from quenched.fitting import options
from quenched.fitting.linearised import ByValues
from quenched.fitting.method import Joint
from quenched.fitting.progress import Watcher
from quenched.fitting.run import Run
from quenched.fitting.settings import Settings
from quenched.numbers import check_data, positive_number, seed_number, whole_number
from quenched.objective import Batch, Rows, make_batch, make_problem
from quenched.precision import in_double
from quenched.projected import structure_of
from quenched.results import Fit, FitError, Status, insist_writable
from quenched.targets import Form, Model, check_terms, in_files, numbers_of_rows, rows_between
from quenched.threads import quiet_blas
from quenched.transforms import Space

_JOINT = Joint()
_MORE_IF_CROWDED = 8  # times the first draws of a sum of terms: 32 were followed for 300 rounds and then given up
_MORE_FOR_FOLLOWERS = 4  # times the draws, for fits that would follow those: to polish these costs as much, and is lost


@dataclass(frozen=True)
class Asked:
    """The options of a fit as a user gives them; `run` reads them."""

    family: Any = "full"
    draws: Any = None
    method: Any = _JOINT
    seed: Any = 0
    max_draws: Any = None
    tolerance: Any = None
    starts: Any = 1
    check: Any = None
    memory: Any = None
    checkpoint: Any = None
    executor: Any = None
    mesh: Any = None
    grows: bool = True
    polishes: bool = True  # a fit that is resumed
    called: str | None = None  # what the settings call the method

    def run(
        self,
        model: Model,
        space: Space,
        points: np.ndarray,
        watch: Watcher,
        *,
        rows: Rows | None = None,
        resumed: Any = None,
    ) -> Run:
        """A run of these options: everything is read before anything is computed."""
        if model.target.terms is not None:
            check_terms(model.target.terms, model.target.data, space, model.data, model.hyper)
        family, method = options.read_family(self.family), options.read_method(self.method)
        if family.bound is Bound.OF_TERMS:
            return self._run_of_terms(family, model, space, points, watch, rows, resumed)
        if not model.target.gives_gradient and isinstance(method, Joint):
            method = ByValues(method)
        seed, memory = seed_number("seed", self.seed), self._memory()
        coupled = family.coupled_coordinates(space.sizes)
        first = self._first_draws(family, model.target.make_form(space.dim), space.sizes, seed, resumed)
        most = options.read_max_draws(self.max_draws, coupled, first.n if resumed is None else 2 * first.n)
        within = lambda most: (
            _within_memory(most, first.n, space.dim, coupled, memory) if self.draws is None and self.grows else first.n
        )
        limits = within(most), within(most if self.max_draws is not None else _MORE_FOR_FOLLOWERS * most)
        settings = self._settings(family, method, first, space, limits)
        if rows is None:
            left = None if memory is None else memory - _working_bytes(first.n, space.dim, coupled)
            execution = self._execution(model, left)
            batch = Batch(make_problem(model.target, space, model.data, model.hyper, execution, model), None, 1)
            return Run(settings, batch, points[None], watch, polishes=self.polishes and resumed is not None)
        n = len(jax.tree.leaves(rows.own)[0])
        batch = make_batch(model.target, space, rows, model.hyper, n, Here(memory), model)
        return Run(settings, batch, points if points.ndim == 2 else np.repeat(points[None], n, axis=0), watch)

    def _run_of_terms(
        self,
        family: Family,
        model: Model,
        space: Space,
        points: np.ndarray,
        watch: Watcher,
        rows: Rows | None,
        resumed: Any,
    ) -> Run:
        """A run of a sum of terms with a sparse precision."""
        devices = self.executor if self.mesh is None else self.mesh
        options.insist_terms(model.target, space, self.method, self.draws, rows is not None, devices)
        seed = seed_number("seed", self.seed)
        problem = make_problem(model.target, space, model.data, model.hyper, Here(self._memory()), model)
        structure = structure_of(problem)
        family = family.within(structure.pattern)
        default = family.first_draws(space.sizes) * (_MORE_IF_CROWDED if structure.crowded else 1)
        first = term_draws(default if self.draws is None else self.draws, seed)
        if resumed is not None and resumed.settings["draws"] == TermDraws.kind and self.draws is None:
            first = first.grow(max(first.n, resumed.n_draws))
        grows = self.draws is None and self.grows
        most = options.read_max_draws(self.max_draws, 1, first.n) if grows else first.n
        settings = self._settings(family, self.method, first, space, (most, most), "VariationalNewton")
        polishes = self.polishes and resumed is not None
        return Run(settings, Batch(problem, None, 1), points[None], watch, polishes=polishes)

    def _memory(self) -> int | None:
        return None if self.memory is None else whole_number("memory", self.memory, 1, None)

    def _first_draws(self, family: Family, form: Form, sizes: tuple[int, ...], seed: int, resumed: Any) -> Draws:
        """The first set; a warning, where it leaves directions at the prior."""
        coupled, default = family.coupled_coordinates(sizes), family.first_draws(sizes)
        if resumed is not None:
            least = 2 * coupled if family.affine else default
            default = max(least, resumed.n_draws + resumed.n_draws % 2)
        if self.draws is None:
            default = options.first_draws(self.max_draws, family, sizes, default)
        spanning = self.grows or family.affine  # draws that only judge a bent posterior need not see every direction
        first = options.read_draws(self.draws, family, form, sizes, seed, default, spanning=spanning)
        if spanning and options.unseen_directions(first, family, sizes):
            warnings.warn(
                f"draws: {first.n} draws do not span the {coupled} coupled coordinates; the posterior stays at the "
                "prior in the directions that no draw sees.",
                stacklevel=5,
            )
        return first

    def _settings(
        self, family: Family, method: Any, draws: Any, space: Space, limits: tuple[int, int], called: str | None = None
    ) -> Settings:
        """What all runs read alike; `limits` are those of draws, for posteriors that follow the target and for others."""
        return Settings(
            family=family,
            method=method,
            draws=draws,
            seed=seed_number("seed", self.seed),
            tolerance=options.read_tolerance(self.tolerance, space.dim),
            max_draws=limits[0],
            most_draws=limits[1],
            starts=whole_number("starts", self.starts, 1),
            n_check=None if self.check is None else whole_number("check", self.check, 2),
            checkpoint=None if self.checkpoint is None or not writes(self.mesh) else self._checkpoint(space),
            called=self.called or called,
        )

    def _checkpoint(self, space: Space) -> Path:
        """Where to write, found out before anything is computed."""
        insist_writable(space)
        return read_path_to_write("checkpoint", self.checkpoint)

    def _execution(self, model: Model, memory: float | None) -> Execution:
        """Where the target is evaluated."""
        if self.mesh is not None:
            return Sharded(options.read_devices(self.mesh, model.target), memory)
        if model.target.terms is not None and in_files(model.target.data):
            between = partial(rows_between, model.target.terms)
            return InBlocks(max(numbers_of_rows(model.target.terms)), between, memory)
        if self.executor is None:
            return Here(memory)
        return Elsewhere(Pool(options.read_executor(self.executor, model.target)))


@contextmanager
def ready(model: Model, progress: bool, max_seconds: Any, *, many: bool = False, mesh: Any = None) -> Iterator[Watcher]:
    """The scope of a fit: double precision, quiet BLAS, a watch; with the inputs checked."""
    if max_seconds is not None:
        max_seconds = positive_number("max_seconds", max_seconds)
    if not many:
        check_data(model.target.handed(model.data))
    options.check_hyper(model.hyper)
    on_host = model.target.on_host
    if on_host and model.hyper is not None:
        raise ValueError("hyper: a host function gives no gradient for hyperparameters; write it in JAX.")
    agree = bool if mesh is None else agreed
    progress = progress if mesh is None or writes(mesh) else False
    with in_double(), quiet_blas(on_host), Watcher(progress, max_seconds, agree) as watch:
        yield watch


def told(fit: Fit, throw: bool) -> Fit:
    """The fit; raised, if its numbers went wrong and that is wanted."""
    if throw and fit.status in (Status.NOT_FINITE, Status.NO_ASCENT):
        raise FitError(" ".join((fit.message, *fit.all_remarks)), fit)
    return fit


def _within_memory(most: int, first: int, dim: int, coupled: int, memory: int | None) -> int:
    """Draws up to which a fit may grow: halved until they take no more than half of the memory."""
    while memory is not None and most > first and _working_bytes(most, dim, coupled) > memory / 2:
        most //= 2
    return most


def _working_bytes(n_draws: int, dim: int, coupled: int) -> int:
    """Memory of a fit besides the target's: draws, check draws and their images; the optimiser's vectors."""
    return 8 * (8 * n_draws * dim + 30 * (2 * dim + dim * (coupled - 1) // 2))
