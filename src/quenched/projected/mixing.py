"""Numbers mixed into 64 bits, so that sums of them tell sets of numbers apart, whatever their order. All arithmetic wraps around."""

import numpy as np

_AT_A_TIME = 2**18  # numbers of an array
_GOLDEN, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_SHIFTS = tuple(np.uint64(n) for n in (30, 27, 31))


def mixed(bits: np.ndarray) -> np.ndarray:
    """Every number by itself, so that none tells of its neighbours (the last steps of SplitMix64)."""
    found = bits + _GOLDEN
    found ^= found >> _SHIFTS[0]
    found *= _FIRST
    found ^= found >> _SHIFTS[1]
    found *= _SECOND
    found ^= found >> _SHIFTS[2]
    return found


def keys(number: int, size: int) -> np.ndarray:
    """As many as are asked for, different for each number."""
    return mixed(mixed(np.full(size, number, np.uint64)) + np.arange(size, dtype=np.uint64))


def of_values(values: np.ndarray) -> np.ndarray:
    """Of real numbers; none of zero, so that what is multiplied by it does not count."""
    real = np.asarray(values, np.float64) + 0.0  # one zero alone
    return np.where(real == 0.0, np.uint64(0), mixed(real.view(np.uint64)))


def row_sums(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of an array (rows, columns) of real numbers, its rows with a weight for each column."""
    step = max(_AT_A_TIME // max(values.shape[1], 1), 1)
    parts = [of_values(values[first : first + step]) @ weights for first in range(0, len(values), step)]
    return np.concatenate(parts)


def column_sums(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Its columns, with a weight for each row."""
    step, found = max(_AT_A_TIME // max(values.shape[1], 1), 1), np.zeros(values.shape[1], np.uint64)
    for first in range(0, len(values), step):
        found += weights[first : first + step] @ of_values(values[first : first + step])
    return found
