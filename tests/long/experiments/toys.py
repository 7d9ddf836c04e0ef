"""Functions that stand in for experiments, importable by worker processes."""

import os
import time
from pathlib import Path


def square(value, log):
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{value}\n")
    if value < 0:
        raise ArithmeticError(f"{value} is negative")
    return {"square": value**2}


def process(dataset, value):
    return {"dataset": dataset, "process": os.getpid()}


def dies(dataset):
    os._exit(3)


def sleep(folder, name):
    """For as long as nobody ends it, and says which process does."""
    part = Path(folder) / f"{name}.part"
    part.write_text(str(os.getpid()), encoding="utf-8")
    part.rename(part.with_suffix(".pid"))
    time.sleep(3600)
