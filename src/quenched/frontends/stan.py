"""Stan programs, through BridgeStan or PyStan: value and gradient on the host, supports by Stan itself."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from quenched.draws import Purpose, generator
from quenched.frontends.recognising import transforms_of
from quenched.frontends.stan_models import StanProgram, build, read_program, split
from quenched.targets import Model, Target

_TRIES = 100  # first points, as Stan's own samplers
_RADIUS = 2.0  # around zero, likewise
_STEP = 0.7  # by which a coordinate is moved to see which parameters answer

Arrays = dict[str, np.ndarray]


def from_stan(model: Any) -> Model:
    """A Stan program with its data.

    `fit(from_stan(model))` fits all parameters. `fit.sample(n)` has the names of the program, transformed parameters and
    generated quantities included; `fit.predict(n)` gives the generated quantities alone.

    Parameters
    ----------
    model
        A `StanModel` of BridgeStan, or anything with its methods; or a `Model` of PyStan 3. PyStan leaves constants out of
        the log density: bounds are up to a constant then, and there is no evidence. A `StanModel` that was compiled with
        `STAN_THREADS=true` is evaluated in as many threads as there are cores.

    Raises
    ------
    ValueError
        When it is neither, has no parameters, or rejects every point that is tried.

    Examples
    --------
    >>> class Normal:  # what `bridgestan.StanModel("normal.stan", data)` offers, for one parameter N(2, 1)
    ...     def param_unc_num(self):
    ...         return 1
    ...     def param_names(self, *, include_tp=False, include_gq=False):
    ...         return ["mu"]
    ...     def log_density_gradient(self, theta_unc, *, propto=True, jacobian=True):
    ...         return -0.5 * float((theta_unc[0] - 2.0) ** 2), 2.0 - theta_unc
    ...     def param_constrain(self, theta_unc, *, include_tp=False, include_gq=False, rng=None):
    ...         return theta_unc
    ...     def param_unconstrain(self, theta):
    ...         return theta
    ...     def model_info(self):
    ...         return ""
    ...     def new_rng(self, seed):
    ...         return seed
    >>> float(qd.fit(qd.from_stan(Normal())).mean["mu"].round(3))
    2.0
    """
    program = read_program(model)
    if not program.dim:
        raise ValueError("model: the program has no parameters, so there is nothing to infer.")
    layout = _Layout(program)
    start = layout.cut(_first_point(program)[None])
    natural = layout.natural(start)
    known = transforms_of(layout.natural, layout.to_real, {name: rows[0] for name, rows in start.items()}, on_host=True)
    quantities = _bases(program.names[len(program.names) - program.n_quantities :])
    return Model(
        Target(
            _Densities(program, layout),
            on_host=True,
            batched=True,
            on_real_line=True,
            up_to_constant=not program.keeps_constants,
        ),
        {name: rows[0] for name, rows in natural.items()},
        known,
        name="model",
        values=lambda parameters, seed: layout.everything(parameters, seed),
        predict=(lambda samples, seed: {name: samples[name] for name in quantities}) if quantities else None,
        log_likelihood=(lambda samples: {"log_lik": samples["log_lik"]}) if "log_lik" in quantities else None,
        remark=" ".join(filter(None, (_OF_CONSTANTS * (not program.keeps_constants), program.why_no_quantities))),
    )


_OF_CONSTANTS = (
    "PyStan leaves constants out of the log density, so bound and check bound are up to a constant, and there is no "
    "evidence; BridgeStan keeps them."
)


def from_stan_file(path: Path, data: Mapping[str, Any] | None = None) -> Model:
    """The program of a file, compiled by whichever package is there."""
    return from_stan(build(path, data))


@dataclass(frozen=True, eq=False)
class _Densities:
    """Values and gradients at many points, on the real line."""

    program: StanProgram
    layout: "_Layout"

    def __call__(self, parameters: Arrays) -> tuple[np.ndarray, Arrays]:
        vectors = self.layout.joined(parameters)
        if self.program.in_threads and len(vectors) > 1:
            # In a few large pieces: to hand over a single call takes longer than most of them do.
            workers = os.cpu_count() or 1
            with ThreadPoolExecutor(workers) as threads:
                found = [one for some in threads.map(self._some, np.array_split(vectors, workers)) for one in some]
        else:
            found = self._some(vectors)
        values, gradients = (np.array(column) for column in zip(*found, strict=True))
        return values, self.layout.cut(gradients)

    def _some(self, vectors: np.ndarray) -> list[tuple[float, np.ndarray]]:
        return [self._one(vector) for vector in vectors]

    def _one(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            return self.program.density(vector)
        except RuntimeError:  # the program rejects: the density is zero there
            return -np.inf, np.full(len(vector), np.nan)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which numbers on the real line belong to which parameter, and in which order."""

    program: StanProgram

    @cached_property
    def names(self) -> list[str]:
        """Of all numbers of the parameters in natural units."""
        return self.program.names[: self.program.n_parameters]

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all that the program names, in natural units."""
        shapes: dict[str, tuple[int, ...]] = {}
        for base, index in map(split, self.program.names):
            size = tuple(place + 1 for place in index)
            shapes[base] = tuple(map(max, shapes.get(base, size), size))
        return shapes

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """Of every parameter, the coordinates on the real line, in the shape that they have there.

        Stan does not say; but a coordinate that is moved moves the numbers of its own parameter, and at the most those of
        later ones whose support depends on it. Where each moves one number only, it has that number's place.
        """
        program, owners = self.program, [split(name)[0] for name in self.names]
        centre = 0.3 * np.sin(1.0 + np.arange(program.dim))
        before = program.natural(centre)
        moved: dict[str, list[tuple[int, np.ndarray]]] = {}
        for place in range(program.dim):
            vector = centre.copy()
            vector[place] += _STEP
            changed = np.flatnonzero(program.natural(vector) != before)
            owner = owners[changed[0]]
            moved.setdefault(owner, []).append((place, np.array([i for i in changed if owners[i] == owner])))
        return {name: self._shaped(name, found) for name, found in moved.items()}

    def _shaped(self, name: str, moved: list[tuple[int, np.ndarray]]) -> np.ndarray:
        places = np.array([place for place, _ in moved])
        shape = self.shapes[name]
        if all(len(numbers) == 1 for _, numbers in moved) and len(places) == int(np.prod(shape)):
            found = np.empty(shape, int)
            for place, numbers in moved:
                found[split(self.names[numbers[0]])[1]] = place
            return found
        return places

    def cut(self, vectors: np.ndarray) -> Arrays:
        """Rows on the real line by parameter."""
        return {name: vectors[:, places] for name, places in self.places.items()}

    def joined(self, parameters: Mapping[str, Any]) -> np.ndarray:
        """And back."""
        n = len(next(iter(parameters.values())))
        vectors = np.empty((n, self.program.dim))
        for name, places in self.places.items():
            vectors[:, places.ravel()] = np.asarray(parameters[name]).reshape(n, -1)
        return vectors

    def natural(self, parameters: Mapping[str, Any]) -> Arrays:
        """Rows on the real line to natural units."""
        rows = np.array([self.program.natural(vector) for vector in self.joined(parameters)])
        return self._read(rows, self.names)

    def everything(self, parameters: Mapping[str, Any], seed: int) -> Arrays:
        """The same with all that the program deduces and generates."""
        return self._read(self.program.everything(self.joined(parameters), seed), self.program.names)

    def _read(self, rows: np.ndarray, names: list[str]) -> Arrays:
        found = {name: np.empty((len(rows), *self.shapes[name])) for name in _bases(names)}
        for column, (base, index) in enumerate(map(split, names)):
            found[base][(slice(None), *index)] = rows[:, column]
        return found

    def to_real(self, parameters: Mapping[str, Any]) -> Arrays:
        arrays = {name: np.asarray(value, np.float64) for name, value in parameters.items()}
        return {name: rows[0] for name, rows in self.cut(self.program.to_real(arrays, self.names)[None]).items()}


def _bases(names: list[str]) -> list[str]:
    return list(dict.fromkeys(split(name)[0] for name in names))


def _first_point(program: StanProgram) -> np.ndarray:
    """Zero, or a random point around it: the first at which value and gradient are finite."""
    for vector in _points(program.dim):
        try:
            value, gradient = program.density(vector)
        except RuntimeError:
            continue
        if np.isfinite(value) and np.isfinite(gradient).all():
            return vector
    raise ValueError(f"model: the program rejects zero and {_TRIES} points around it on the real line.")


def _points(dim: int) -> Iterator[np.ndarray]:
    yield np.zeros(dim)
    random = generator(0, Purpose.STARTS)
    for _ in range(_TRIES):
        yield random.uniform(-_RADIUS, _RADIUS, dim)
