"""Other people's packages: imported when a model of theirs is read, and named where they are missing."""

from importlib import import_module
from typing import Any


def need(module: str, extra: str) -> Any:
    """A module of an optional package.

    Raises
    ------
    ImportError
        When it is not installed; the message names the extra.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # the package is there, but lacks something of its own
        raise ImportError(f"This needs {module.partition('.')[0]}: pip install 'quenched[{extra}]'.") from error
