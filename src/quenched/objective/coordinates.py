"""Whitened coordinates: in which a fit moves."""

from typing import NamedTuple

import jax
import numpy as np

from quenched.arrays import Array, namespace
from quenched.families import Member


class Coordinates(NamedTuple):
    """Whitened coordinates: the zero vector stands for this posterior and these free hyperparameters.

    The reference whitens the scale. It whitens the mean too, unless its family leaves out correlations that the
    target has; then `mean_factor`, a dense factor of the target's covariance, does. In NumPy nothing is compiled.
    """

    reference: Member
    free: Array
    mean_factor: Array | None = None

    @property
    def size(self) -> int:
        return sum(int(np.size(leaf)) for leaf in jax.tree.leaves((self.reference, self.free)))

    def read(self, vector: Array) -> tuple[Member, Array]:
        """The posterior and the free hyperparameters at a vector of coordinates."""
        leaves, structure = jax.tree.flatten(self.reference)
        ends = np.cumsum([int(np.size(leaf)) for leaf in leaves])
        parts = namespace(vector).split(vector, ends)
        cut = [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=False)]
        inner, free = jax.tree.unflatten(structure, cut), self.free + parts[-1]
        if self.mean_factor is None:
            return self.reference.moved(inner), free
        shift = inner.mean
        return self.reference.moved(inner.shifted(-shift)).shifted(self.mean_factor @ shift), free

    def moved(self, vector: Array) -> "Coordinates":
        """The same kind of coordinates with their origin at a vector of these."""
        posterior, free = self.read(vector)
        return Coordinates(posterior, free, self.mean_factor)
