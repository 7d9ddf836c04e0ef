"""What the rows of a term see, as dense matrices."""

import numpy as np


def maps_of(term, dim):
    """A_n of every row, (n, size, dim)."""
    return np.stack([term.gather(unit) for unit in np.eye(dim)], axis=-1)
