"""A model file: Python that defines `log_density`, `start`, and what else a fit may take."""

import importlib.util
import inspect
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from quenched.cli.misuse import Misuse, blame
from quenched.targets import Model, Target, package_of
from quenched.text import shown

_EXAMPLES = {
    "log_density": "def log_density(parameters):\n        return -0.5 * jnp.sum(parameters**2)",
    "start": 'start = {"mu": 0.0, "weights": np.zeros(3)}  # an array or a pytree of arrays\n'
    "    # of the shapes that log_density takes",
    "data": 'data = {"x": np.array([0.0, 1.0]), "y": np.array([0.1, 0.9])}\n    # any pytree of arrays',
}


class ModelFile(NamedTuple):
    """A model, and the file it was read from."""

    path: Path
    model: Model

    @property
    def label(self) -> str:
        """Of the files a fit writes."""
        plain = self.model.name in ("log_density", "model")
        return self.path.stem if plain else f"{self.path.stem}-{self.model.name}"


def read_model_file(reference: str, data: Path | None = None) -> ModelFile:
    """Run the file named by `MODEL.py` or `MODEL.py:name` and collect what it defines; or compile `MODEL.stan`.

    `data` is a JSON file whose entries take the place of the data in the file.

    Raises
    ------
    Misuse
        When the file is missing, fails, or lacks something.
    """
    path, name = _split(reference)
    if path.suffix == ".stan":
        return ModelFile(path, _of_stan(path, data))
    module, given = _run(path), _read_json(data)
    name = name or ("model" if hasattr(module, "model") and not hasattr(module, "log_density") else "log_density")
    if package_of(getattr(module, name, None)) is not None or isinstance(getattr(module, name, None), Model):
        return ModelFile(path, _of_another_package(module, name, path, given))
    if not hasattr(module, name):
        example = f" {_add('log_density')}" if name == "log_density" else ""
        raise Misuse(f"{path} defines no `{name}`{_others(module, path)}.{example}")
    if not hasattr(module, "start"):
        raise Misuse(f"{path} defines no `start`, where the fit begins. {_add('start')}")
    optional: dict[str, Any] = {key: getattr(module, key, None) for key in ("transforms", "data", "hyper")}
    optional["data"] = optional["data"] if given is None else given
    try:
        model = Model(getattr(module, name), module.start, name=name, **optional)
    except ValueError as error:
        raise Misuse(f"{path}: {error}") from error
    return ModelFile(path, _match_arguments(model, path))


def _add(missing: str) -> str:
    return f"Add it, for example:\n\n    {_EXAMPLES[missing]}"


def _of_stan(path: Path, data: Path | None) -> Model:
    from quenched.frontends import from_stan_file

    try:
        return from_stan_file(path, _read_json(data))
    except (ImportError, ValueError, RuntimeError) as error:  # the compiler's own words, too
        raise Misuse(f"{path}: {error}") from error


def _of_another_package(module: ModuleType, name: str, path: Path, data: Any) -> Model:
    """A model of NumPyro, PyMC, Stan or PyTorch; a NumPyro model takes its arguments from `data`, or from the file by name."""
    from quenched import frontends

    value, package = getattr(module, name), package_of(getattr(module, name))
    if isinstance(value, Model):
        return replace(value, name=name)
    readers = {"pymc": frontends.from_pymc, "bambi": frontends.from_pymc, "torch": frontends.from_torch}
    try:
        if package == "numpyro":
            return replace(frontends.from_numpyro(value, **_arguments(module, value, data)), name=name)
        return replace(readers.get(str(package), frontends.from_stan)(value), name=name)
    except (ImportError, ValueError) as error:
        raise Misuse(f"{path}: {error}") from error


def _arguments(module: ModuleType, model: Any, data: Any) -> dict[str, Any]:
    own = getattr(module, "data", None)
    known = {**vars(module), **(own if isinstance(own, dict) else {}), **(data or {})}
    return {name: known[name] for name in inspect.signature(model).parameters if name in known}


def _read_json(path: Path | None) -> Any:
    """A mapping of names to numbers, and to arrays for lists."""
    if path is None:
        return None
    if path.is_char_device() or path.is_block_device():  # which may never end; a pipe does
        raise Misuse(f"--data {path}: is a device; give a file or a pipe.")
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise Misuse(f"--data {path}: cannot be read as JSON ({error}).") from error
    if not isinstance(found, dict):
        raise Misuse(f'--data {path}: must hold names and values, {{"x": [1.0, 2.0], ...}}.')
    return {name: _array(path, name, value) if isinstance(value, list) else value for name, value in found.items()}


def _array(path: Path, name: str, value: list) -> np.ndarray:
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise Misuse(f"--data {path}: {shown(name)} is not an array: {error}.") from error


def _split(reference: str) -> tuple[Path, str | None]:
    before, colon, after = reference.rpartition(":")
    path, name = (Path(before), after) if colon and after.isidentifier() else (Path(reference), None)
    if os.path.isdir(path):  # False where it cannot be told, as of names that are too long
        raise Misuse(f"{path} is a folder; name a Python file in it.")
    if not os.path.exists(path):
        raise Misuse(f"{path}: there is no such file.")
    if not os.path.isfile(path):
        raise Misuse(f"{path} is a device or a pipe; name a file.")
    if path.suffix not in (".py", ".stan"):
        raise Misuse(
            f"{path} is neither a Python file nor a Stan program; a model is a .py file that defines log_density and start, "
            "or a model of NumPyro or PyMC, or a .stan file."
        )
    return path, name


def _run(path: Path) -> ModuleType:
    name = f"quenched model {path.stem}"  # like no other module's: a model may be called numpy.py
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look themselves up there
    sys.path.insert(0, str(path.parent.resolve()))  # as `python MODEL.py` does
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise Misuse(f"{path} ended the program (exit code {error.code}) instead of defining a model.") from error
    except Exception as error:
        raise Misuse(blame(error, path) or f"{path}: {type(error).__name__}: {error}") from error
    return module


def _others(module: ModuleType, path: Path) -> str:
    """Names in the file that could be meant."""
    values = vars(module).items()
    targets = [name for name, value in values if isinstance(value, Target)]
    functions = [n for n, value in values if inspect.isfunction(value) and value.__module__ == module.__name__]
    own = targets + functions
    return f" (it has {', '.join(own)}; to fit {own[0]}, write {path}:{own[0]})" if own else ""


def _match_arguments(model: Model, path: Path) -> Model:
    """See to it that the log density can be called with what the file gives."""
    target = model.target
    if target.data is not None:
        return replace(model, data=None)  # a regression brings its own
    try:
        parameters = inspect.signature(target.function).parameters
    except (TypeError, ValueError):
        return model  # not a Python function: nothing to see
    if model.data is not None and not _takes_data(parameters):
        model = replace(model, data=None)  # the function closes over it
    if model.data is None and "data" in parameters and parameters["data"].default is inspect.Parameter.empty:
        raise Misuse(f"{model.name} takes `data`, but {path} defines none. {_add('data')}")
    _try_call(model, path)
    return model


def _takes_data(parameters: Any) -> bool:
    if "data" in parameters:
        return True
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    return starred or any(p.name != "hyper" for p in positional[1:])


def _try_call(model: Model, path: Path) -> None:
    signature = inspect.signature(model.target.function)
    named = {name for name, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY}
    given = [name for name in ("data", "hyper") if getattr(model, name) is not None]
    positional = ["parameters", *(name for name in given if name not in named)]
    try:
        signature.bind(*positional, **{name: name for name in given if name in named})
    except TypeError as error:
        raise Misuse(
            f"{model.name}{signature} in {path} cannot be called as "
            f"{model.name}({', '.join(['parameters', *given])}): {error}."
        ) from error
