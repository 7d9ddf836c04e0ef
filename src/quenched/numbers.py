"""Numbers that a person gives: read, or refused with a message that names the argument and the value."""

from typing import Any

import numpy as np


def whole_number(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={value!r}: a whole number of at least {least} is needed.")
    return int(value)


def positive_number(name: str, value: Any) -> float:
    """A positive number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
        raise ValueError(f"{name}={value!r}: a positive number is needed.")
    return float(value)
