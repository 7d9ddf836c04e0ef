"""The type of arrays that may be JAX's or NumPy's: the same code runs traced on the one and on the host on the other."""

from typing import Any

Array = Any
