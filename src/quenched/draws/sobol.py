"""Scrambled Sobol points through the normal quantile: every beginning of the sequence is spread evenly.

Sobol' (1967), with the direction numbers of Joe and Kuo (2008, new-joe-kuo-6.21201) for the first 1,024 coordinates; any
beyond are independent, since points in so many dimensions are spread no better than at random. A random linear scramble
and a shift (Matoušek 1998) keep the even spread and make each point uniform by itself: means over the points are
unbiased, and sets with scrambles of their own are independent. SciPy has them too, behind an import that takes as long
as JAX's.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np

MOST_COORDINATES = 1024  # that are spread evenly
_BITS = 32
_ONE = np.uint32(1)
_TABLE = Path(__file__).with_name("joe_kuo.npz")


def sobol_normals(n: int, dim: int, random: np.random.Generator, copies: int = 1) -> np.ndarray:
    """Standard-normal points (copies, n, dim): each copy the beginning of a sequence with a scramble of its own."""
    known = min(dim, MOST_COORDINATES)
    scramble = random.integers(0, 2**_BITS, (copies, known, _BITS + 1), dtype=np.uint32)
    normals = normal_quantile((_points(n, scramble) + 0.5) / 2.0**_BITS)
    if dim == known:
        return normals
    others = [own.standard_normal((n, dim - known)) for own in random.spawn(copies)]
    return np.concatenate([normals, np.stack(others)], axis=2)


def _points(n: int, random_bits: np.ndarray) -> np.ndarray:
    """Whole numbers (copies, n, dim): positions in units of the last bit, from (copies, dim, bits + 1) random numbers."""
    n_bits = int(n - 1).bit_length()
    directions = _mixed(_directions(random_bits.shape[1])[:, :n_bits], random_bits[..., :_BITS])
    index = np.arange(n, dtype=np.uint32)
    gray = index ^ (index >> _ONE)  # consecutive points differ by one direction
    points = np.repeat(random_bits[:, None, :, _BITS], n, axis=1)
    for bit in range(n_bits):
        chosen = (gray >> np.uint32(bit)) & _ONE
        points ^= chosen[:, None] * directions[:, None, :, bit]
    return points


def _triangular(random_bits: np.ndarray) -> np.ndarray:
    """Numbers (..., bits) of which the k-th has bit k set, none after it, and random ones before."""
    place = np.arange(_BITS, dtype=np.uint32)
    own = _ONE << (np.uint32(_BITS - 1) - place)
    return random_bits & ~(own | (own - _ONE)) | own


def _mixed(directions: np.ndarray, random_bits: np.ndarray) -> np.ndarray:
    """Directions with every bit replaced by its sum with a random choice of the bits before it, for every copy."""
    rows = _triangular(random_bits)
    parity = np.bitwise_count(directions[..., None] & rows[..., None, :]) & np.uint8(1)
    return np.packbits(parity, axis=-1).view(">u4")[..., 0].astype(np.uint32)


@lru_cache(maxsize=8)
def _directions(dim: int) -> np.ndarray:
    """Direction numbers (dim, bits), the most significant bit first."""
    with np.load(_TABLE) as table:
        polynomials, given = table["polynomials"][:dim].astype(np.uint32), table["numbers"][:dim].astype(np.uint32)
    place = np.uint32(_BITS - 1) - np.arange(_BITS, dtype=np.uint32)
    directions = np.zeros((dim, _BITS), np.uint32)
    directions[0] = _ONE << place
    degrees = np.array([int(polynomial).bit_length() - 1 for polynomial in polynomials])
    for degree in np.unique(degrees[1:]).tolist():
        own = np.flatnonzero(degrees == degree)
        own = own[own > 0]
        rows = given[own, :degree] << place[:degree]
        for _ in range(degree, _BITS):
            number = rows[:, -degree] ^ (rows[:, -degree] >> np.uint32(degree))
            for back in range(1, degree):
                number ^= rows[:, -back] * (polynomials[own] >> np.uint32(degree - back) & _ONE)
            rows = np.column_stack([rows, number])
        directions[own] = rows
    return directions


# Rational approximations of Wichura (1988), algorithm AS 241, highest power first.
_NEAR = (
    [2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608],
    [5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0],
)  # fmt: skip
_FAR = (
    [7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
    [1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0],
)  # fmt: skip


def normal_quantile(p: np.ndarray) -> np.ndarray:
    """The standard-normal quantile, to rounding for probabilities that 32 bits can hold."""
    away = p - 0.5
    square = 0.180625 - away**2
    near = away * _polynomial(_NEAR[0], square) / _polynomial(_NEAR[1], square)
    far = np.abs(away) > 0.425
    root = np.sqrt(-np.log(0.5 - np.abs(away[far]))) - 1.6
    near[far] = np.copysign(_polynomial(_FAR[0], root) / _polynomial(_FAR[1], root), away[far])
    return near


def _polynomial(coefficients: list[float], x: np.ndarray) -> np.ndarray:
    """NumPy's `polyval` in half its time: in place."""
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value
