"""Models of other packages that were given as if they were log densities: each has a function that reads it."""

from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

_PRIMITIVES = frozenset({"sample", "plate", "factor", "deterministic", "param"})
_READERS = {
    "numpyro": "quenched.from_numpyro(model, ...)",
    "pymc": "quenched.from_pymc(model)",
    "bambi": "quenched.from_pymc(model)",
    "stan": "quenched.from_stan(model)",
    "bridgestan": "quenched.from_stan(model)",
    "cmdstanpy": "quenched.from_stan(bridgestan.StanModel(model.stan_file, data=...))",
    "torch": "quenched.from_torch(module)",
}


def refuse_models_of_others(given: Any) -> None:
    """Name the function that reads the model.

    Raises
    ------
    ValueError
        When it is a model of another package.
    """
    package = package_of(given)
    if package == "numpyro":
        name = getattr(given, "__name__", "model")
        raise ValueError(
            f"log_density: {name} is a NumPyro model, not a log density; fit quenched.from_numpyro({name}, ...) instead, "
            "with the arguments that the model takes."
        )
    if package is not None:
        raise ValueError(
            f"log_density: is a {type(given).__name__} of {package}, not a log density; fit {_READERS[package]} instead."
        )


def package_of(given: Any) -> str | None:
    """The package whose model it is; None for what is none of another package."""
    if isinstance(given, partial):
        return package_of(given.func)
    given = given.__func__ if isinstance(given, MethodType) else given
    if isinstance(given, FunctionType):
        return "numpyro" if _uses_primitives(given) else None
    packages = [cls.__module__.partition(".")[0] for cls in type(given).__mro__]
    return next((package for package in packages if package in _READERS), None)


def _uses_primitives(function: FunctionType) -> bool:
    """Whether it calls `numpyro.sample` or the like; a log density may well use NumPyro's distributions."""
    names = set(function.__code__.co_names)
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    seen = cells + [function.__globals__[name] for name in names if name in function.__globals__]
    whole = any(isinstance(value, ModuleType) and value.__name__ == "numpyro" for value in seen)
    return (whole and bool(names & _PRIMITIVES)) or any(
        getattr(value, "__module__", None) == "numpyro.primitives" for value in seen
    )


def _is_filled(cell: Any) -> bool:
    """Whether the variable of an outer function has been given a value yet."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
