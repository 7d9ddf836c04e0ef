"""Independent dense blocks: one per parameter leaf, or one per class of a classifier."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array, namespace
from quenched.families.full import FullGaussian, from_scale, uncorrelated
from quenched.families.gaussian import Family, Gaussian, with_equal_axes
from quenched.families.positive_definite import factor_of_inverse
from quenched.frozen import static
from quenched.numbers import whole_number
from quenched.text import shown

Places = tuple[tuple[int, ...], ...]


class BlocksGaussian(Gaussian):
    """A product of dense Gaussians over disjoint sets of coordinates.

    Blocks of one size are with_equal_axes and handled in one batch. `places[k][i]` holds the coordinates of block i of
    stack k, in whatever order the vector has them.
    """

    stacks: tuple[FullGaussian, ...]
    places: tuple[Places, ...] = static()

    @property
    def mean(self) -> Array:  # pyright: ignore
        return self._in_order([stack.mean for stack in self.stacks])

    @property
    def scale(self) -> Array:
        dense = jnp.zeros((self.dim, self.dim), self.stacks[0].mean.dtype)
        for stack, places in zip(self.stacks, self.places, strict=True):
            index = np.array(places)
            dense = dense.at[index[:, :, None], index[:, None, :]].set(jax.vmap(lambda block: block.scale)(stack))
        return dense

    @property
    def dim(self) -> int:
        return sum(len(block) for places in self.places for block in places)

    @property
    def groups(self):
        return tuple(block for places in self.places for block in places)

    def _gather(self, array: Array) -> list[Array]:
        """Cut the last axis into one (block, ..., size) array per stack."""
        return [namespace(array).moveaxis(array[..., np.array(places)], -2, 0) for places in self.places]

    def _scatter(self, pieces: list[Array]) -> Array:
        """Put (block, ..., size) arrays back together along the last axis."""
        return self._in_order([namespace(piece).moveaxis(piece, 0, -2) for piece in pieces])

    def _in_order(self, pieces: list[Array]) -> Array:
        """The same of (..., block, size) arrays."""
        xp = namespace(pieces[0])
        flat = [xp.reshape(piece, (*piece.shape[:-2], piece.shape[-2] * piece.shape[-1])) for piece in pieces]
        joined = xp.concatenate(flat, axis=-1)
        order = np.concatenate([np.array(places).ravel() for places in self.places])
        return joined[..., np.argsort(order)]

    @property
    def family(self):
        return Blocks([len(block) for block in sorted(self.groups)])

    def transform(self, draws):
        pieces = self._gather(draws)
        moved = [
            jax.vmap(lambda block, z: block.transform(z))(stack, piece)
            for stack, piece in zip(self.stacks, pieces, strict=True)
        ]
        return self._scatter(moved)

    def standardise(self, points):
        rows = jnp.atleast_2d(points)
        pieces = [
            jax.vmap(lambda block, w: block.standardise(w))(stack, piece)
            for stack, piece in zip(self.stacks, self._gather(rows), strict=True)
        ]
        return self._scatter(pieces).reshape(points.shape)

    def compose(self, inner):
        stacks = tuple(outer.compose(other) for outer, other in zip(self.stacks, inner.stacks, strict=True))
        return BlocksGaussian(stacks=stacks, places=self.places)  # pyright: ignore

    def shifted(self, shift):
        stacks = tuple(
            FullGaussian(stack.mean + piece, stack.log_diagonal, stack.lower)
            for stack, piece in zip(self.stacks, self._gather(shift), strict=True)
        )
        return BlocksGaussian(stacks=stacks, places=self.places)  # pyright: ignore

    def log_determinant(self):
        return sum((jnp.sum(stack.log_diagonal) for stack in self.stacks), start=jnp.zeros(()))

    def variance(self):
        return self._scatter([jax.vmap(lambda block: block.variance())(stack) for stack in self.stacks])


class Blocks(Family):
    """Dense blocks, independent of each other.

    Parameters
    ----------
    sizes
        The sizes of consecutive runs of the raveled parameter vector; None makes one block per leaf of the
        parameter pytree. `Blocks([m] * k)` suits a (k, m) array of weights with one block per row.

    Examples
    --------
    >>> def log_density(p):
    ...     return -0.5 * jnp.sum(p["a"] ** 2) + 0.6 * p["a"][0] * p["a"][1] - 0.5 * p["b"] ** 2
    >>> fit = qd.fit(log_density, {"a": np.zeros(2), "b": 0.0}, family=qd.Blocks())
    >>> bool(abs(fit.covariance[0, 1]) > 0.1), bool(fit.covariance[0, 2] == 0.0)
    (True, True)
    """

    sizes: Sequence[int] | None = None
    affine: ClassVar[bool] = True

    def __post_init__(self):
        if self.sizes is None:
            return
        try:
            sizes = tuple(whole_number("sizes", size, 1) for size in self.sizes)
        except Exception as error:  # of whatever it is, when it is looked through
            sizes, why = (), error
        else:
            why = None
        if not sizes:
            raise ValueError(f"Blocks(sizes={shown(self.sizes)}): give positive whole numbers, one per block.") from why
        object.__setattr__(self, "sizes", sizes)

    @property
    def name(self) -> str:
        """What the settings of a fit call it."""
        return "blocks"

    def groups(self, sizes):
        chosen = sizes if self.sizes is None else self.sizes
        if sum(chosen) != sum(sizes):
            raise ValueError(
                f"Blocks(sizes={list(chosen)}) covers {sum(chosen)} coordinates, but the parameters have {sum(sizes)}."
            )
        ends = np.cumsum(chosen)
        runs = zip(ends - np.array(chosen), ends, strict=True)
        return tuple(tuple(range(first, last)) for first, last in runs if last > first)

    def _places(self, sizes) -> tuple[Places, ...]:
        groups = self.groups(sizes)
        return tuple(
            tuple(group for group in groups if len(group) == size) for size in sorted({len(g) for g in groups})
        )

    def member(self, mean, precision, sizes):
        mean, precision = with_equal_axes(mean, precision, 2)

        def block(index: np.ndarray) -> FullGaussian:
            parts = precision[..., index[:, :, None], index[:, None, :]]
            return from_scale(mean[..., index], factor_of_inverse(parts))

        return self._of_blocks(block, sizes)

    def isotropic(self, mean, scale, sizes):
        mean, scale = with_equal_axes(mean, scale, 1)
        return self._of_blocks(lambda index: uncorrelated(mean[..., index], scale[..., index]), sizes)

    def with_scales(self, mean: Array, scales: Array, sizes: tuple[int, ...]) -> BlocksGaussian:
        """The member with these lower-triangular scales, one per block, all of one size, in the order of the vector."""
        return self._of_blocks(lambda index: from_scale(np.asarray(mean)[index], np.asarray(scales)), sizes)

    def _of_blocks(self, stack_at: Callable[[np.ndarray], FullGaussian], sizes: tuple[int, ...]) -> BlocksGaussian:
        """The member whose stack of blocks at coordinates (block, size) is what the function gives."""
        places = self._places(sizes)
        return BlocksGaussian(tuple(stack_at(np.array(stack)) for stack in places), places)  # pyright: ignore
