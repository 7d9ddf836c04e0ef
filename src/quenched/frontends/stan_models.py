# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Two packages that run Stan programs, behind one face: BridgeStan and PyStan 3."""

import asyncio
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from functools import cached_property
from io import StringIO
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from quenched.draws import Purpose, generator, stream
from quenched.frontends.packages import need
from quenched.frontends.stan_randomness import random_quantities
from quenched.text import shown

_TRIES = 20


class StanProgram(ABC):
    """A Stan program with its data."""

    keeps_constants: bool  # of its densities
    in_threads: bool  # it may be called from several threads, and lets them run
    names: list[str]  # of all numbers, `theta.2.1`: parameters, transformed parameters, generated quantities
    n_parameters: int  # how many of these belong to parameters
    n_quantities: int  # how many are generated quantities
    why_no_quantities: str = ""  # if generated quantities cannot be had

    @property
    @abstractmethod
    def dim(self) -> int:
        """Numbers on the real line."""

    @abstractmethod
    def density(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density on the real line and its gradient; RuntimeError where the program rejects."""

    @abstractmethod
    def natural(self, vector: np.ndarray) -> np.ndarray:
        """The parameters in natural units."""

    @abstractmethod
    def everything(self, vectors: np.ndarray, seed: int) -> np.ndarray:
        """All numbers for every row."""

    @abstractmethod
    def to_real(self, parameters: Mapping[str, np.ndarray], names: list[str]) -> np.ndarray:
        """The vector of parameters in natural units."""


class Bridge(StanProgram):
    """BridgeStan's `StanModel`, or whatever has its methods."""

    keeps_constants = True

    def __init__(self, model: Any):
        self.model = model
        self.names = list(model.param_names(include_tp=True, include_gq=True))
        self.n_parameters = len(model.param_names())
        self.n_quantities = len(self.names) - len(model.param_names(include_tp=True))
        self.in_threads = "STAN_THREADS=true" in str(getattr(model, "model_info", str)())

    @cached_property
    def dim(self) -> int:  # pyright: ignore
        return int(self.model.param_unc_num())

    def density(self, vector):
        value, gradient = self.model.log_density_gradient(vector, propto=False, jacobian=True)
        return float(value), np.array(gradient)

    def natural(self, vector):
        return np.array(self.model.param_constrain(vector))

    def everything(self, vectors, seed):
        random = self.model.new_rng(stream(seed, Purpose.NOISE) % 2**32) if self.n_quantities else None
        options = {"include_tp": True, "include_gq": True, "rng": random}
        return np.array([self.model.param_constrain(vector, **options) for vector in vectors])

    def to_real(self, parameters, names):
        flat = [parameters[name][index] for name, index in map(split, names)]
        return np.array(self.model.param_unconstrain(np.array(flat, np.float64)))


class PyStan(StanProgram):
    """PyStan 3's `Model`, through the module that it has compiled: its own methods ask a server for every number.

    The module leaves constants out, does not let other threads run, and begins its random numbers anew in every call.
    """

    keeps_constants, in_threads = False, False

    def __init__(self, model: Any):
        models = need("httpstan.models", "stan")
        self.services, self.data = models.import_services_extension_module(model.model_name), dict(model.data)
        everything = list(model.constrained_param_names)
        self.dim_ = self._dim(model)
        self.n_parameters = len(self._numbers(np.zeros(self.dim_), False, False))
        derived = len(self._first_of_all(True, False))
        random = random_quantities(model.program_code, {split(name)[0] for name in everything[derived:]})
        self.kept = np.array([at < derived or split(name)[0] not in random for at, name in enumerate(everything)], bool)
        self.names = [name for name, kept in zip(everything, self.kept, strict=True) if kept]
        self.n_quantities = len(self.names) - derived
        if random:
            self.why_no_quantities = (
                "PyStan begins its random numbers anew in every call, so that all samples would share them: "
                f"{', '.join(sorted(random))} {'is' if len(random) == 1 else 'are'} left out; BridgeStan has no such limit."
            )

    def _numbers(self, vector: np.ndarray, derived: bool, quantities: bool) -> list[float]:
        return self.services.write_array(self.data, vector.tolist(), derived, quantities)

    def _first_of_all(self, derived: bool, quantities: bool) -> list[float]:
        """All numbers at a point where the program does not reject them, near zero if it can be."""
        points = generator(0, Purpose.STARTS).uniform(-1.0, 1.0, (_TRIES, self.dim_))
        for point in [0.0 * points[0], *points[:-1]]:
            with suppress(RuntimeError, ValueError):
                return self._numbers(point, derived, quantities)
        return self._numbers(points[-1], derived, quantities)

    def _dim(self, model: Any) -> int:
        """PyStan does not say how many numbers there are on the real line; it knows when there are too many."""
        most = len(model.constrained_param_names)
        for size in range(most + 1):
            try:
                self.services.write_array(self.data, [0.1] * size, False, False)
            except RuntimeError as error:
                if "number of parameters does not match" in str(error):
                    continue
                raise
            return size
        raise ValueError("model: PyStan does not say how many parameters it has on the real line.")

    @property
    def dim(self) -> int:
        return self.dim_

    def density(self, vector):
        numbers = vector.tolist()
        try:
            value = self.services.log_prob(self.data, numbers, True)
            return float(value), np.array(self.services.log_prob_grad(self.data, numbers, True))
        except ValueError as error:  # arguments outside of a distribution's domain: a way to reject, too
            raise RuntimeError(str(error)) from error

    def natural(self, vector):
        return np.array(self._numbers(vector, False, False))

    def everything(self, vectors, seed):
        if not self.n_quantities:
            return np.array([self._numbers(vector, True, False) for vector in vectors])
        return np.array([self._numbers(vector, True, True) for vector in vectors])[:, self.kept]

    def to_real(self, parameters, names):
        nested = {name: np.asarray(value).tolist() for name, value in parameters.items()}
        return np.array(self.services.transform_inits(self.data, nested))


def read_program(model: Any) -> StanProgram:
    """A model of either package.

    Raises
    ------
    ValueError
        When it is of neither.
    """
    if all(hasattr(model, name) for name in ("log_density_gradient", "param_unc_num", "param_constrain")):
        return Bridge(model)
    if type(model).__module__.partition(".")[0] == "stan" and hasattr(model, "model_name"):
        return PyStan(model)
    raise ValueError(
        f"model={shown(model)} is a {type(model).__name__}; give a StanModel of BridgeStan, bridgestan.StanModel(file, data), or a "
        "Model of PyStan 3, stan.build(code, data)."
    )


def split(name: str) -> tuple[str, tuple[int, ...]]:
    """`theta.2.1` as `theta` and (1, 0)."""
    base, *index = name.split(".")
    return base, tuple(int(one) - 1 for one in index)


def build(path: Path, data: Mapping[str, Any] | None) -> Any:
    """The program of a file: by BridgeStan where its sources are there, which keeps constants; by PyStan otherwise."""
    plain = {name: np.asarray(value).tolist() for name, value in (data or {}).items()}
    try:
        found = need("bridgestan.compile", "stan").get_bridgestan_path(download=False)
    except (ImportError, TypeError, ValueError):
        found = ""
    if found:
        return need("bridgestan", "stan").StanModel(str(path), json.dumps(plain))
    code = path.read_text()
    with TemporaryDirectory() as folder, chdir(folder):  # its compiler leaves object files where it is called
        with warnings.catch_warnings(action="ignore"):  # of how PyStan is made, which is no concern of its users
            pystan = need("stan", "stan")
        compile_for_pystan(code)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # it tells that it found what we have put there
            return pystan.build(code, data=plain)


def compile_for_pystan(code: str) -> None:
    """Put a program into PyStan's cache, where its `build` finds it.

    Left to itself PyStan waits five minutes for its compiler, and what it has in its cache after that makes every later
    `build` of the same program fail.

    Raises
    ------
    ValueError
        For a program that Stan cannot read, in the words of its compiler.
    """
    cache, models = need("httpstan.cache", "stan"), need("httpstan.models", "stan")
    name = models.calculate_model_name(code)
    try:
        models.import_services_extension_module(name)
        cache.load_stanc_warnings(name)
        cache.load_services_extension_module_compiler_output(name)
    except (KeyError, OSError):  # it is not there, or was left half-way
        cache.delete_model_directory(name)
        cache.dump_stanc_warnings(_checked(code, name), name)
        said = asyncio.run(models.build_services_extension_module(code))
        cache.dump_services_extension_module_compiler_output(said, name)


def _checked(code: str, name: str) -> str:
    """What Stan's own compiler warns of; it is given one second, which a busy machine may need several times."""
    translate = need("httpstan.compile", "stan").compile
    for _ in range(_TRIES - 1):
        with suppress(TimeoutExpired):
            return translate(code, f"model_{name.rpartition('/')[2]}")[1]
    return translate(code, f"model_{name.rpartition('/')[2]}")[1]
