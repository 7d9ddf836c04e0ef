"""Functions that stand in for experiments, importable by worker processes."""

import os
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
