"""The space of a problem's parameters: names, shapes, and the way to one vector on the real line and back."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.frozen import Frozen
from quenched.numbers import insist_tree, is_list_of_numbers, plain_array
from quenched.text import harmless, shown
from quenched.transforms.bounded import positive
from quenched.transforms.joint import Foreign, JointTransform
from quenched.transforms.transform import Real, Transform
from quenched.trees import with_plain_keys

_AMBIGUOUS = set(".[]'\"")

Parameters = Any  # any pytree of float arrays


class Leaf(Frozen):
    """One array of the parameter pytree."""

    name: str
    shape: tuple[int, ...]  # in natural units
    transform: Transform

    @property
    def real_shape(self) -> tuple[int, ...]:
        return self.transform.real_shape(self.shape)

    def entries(self, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and index of every number of an array of this shape, in natural units or on the real line."""
        for index in np.ndindex(shape):
            yield self.name + (f"[{','.join(map(str, index))}]" if index else ""), index


class Space(Frozen):
    """Everything static about the parameters; hashable, so that it can key a compiled program."""

    structure: Any  # PyTreeDef
    leaves: tuple[Leaf, ...]
    joint: JointTransform | None = None  # where another package maps them all

    @cached_property
    def dim(self) -> int:
        return sum(int(np.prod(leaf.real_shape)) for leaf in self.leaves)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Coordinates of each leaf on the real line."""
        return tuple(int(np.prod(leaf.real_shape)) for leaf in self.leaves)

    @cached_property
    def real_leaves(self) -> tuple[Leaf, ...]:
        """The leaves as they are on the real line, where nothing constrains them."""
        return tuple(Leaf(leaf.name, leaf.real_shape, Real()) for leaf in self.leaves)

    @cached_property
    def constrained(self) -> bool:
        return any(not isinstance(leaf.transform, Real) for leaf in self.leaves)

    def _split(self, vector: Any) -> list[Any]:
        ends = np.cumsum(self.sizes)[:-1]
        split = np.split if isinstance(vector, np.ndarray) else jnp.split
        pieces = split(vector, ends)
        return [piece.reshape(leaf.real_shape) for piece, leaf in zip(pieces, self.leaves, strict=True)]

    def to_natural(self, vector: Array) -> Parameters:
        """One vector on the real line to the pytree in natural units."""
        if self.joint is not None:
            return self.joint.to_natural(self.unravel(vector))
        pieces = self._split(vector)
        natural = [leaf.transform.to_natural(x) for x, leaf in zip(pieces, self.leaves, strict=True)]
        return jax.tree.unflatten(self.structure, natural)

    def log_jacobian(self, vector: Array) -> Array:
        """Log volume element at a vector on the real line."""
        pieces = self._split(vector)
        terms = [leaf.transform.log_jacobian(x) for x, leaf in zip(pieces, self.leaves, strict=True)]
        return sum(terms, start=jnp.zeros((), vector.dtype))

    def to_real(self, parameters: Parameters) -> Array:
        """A pytree in natural units to one vector on the real line."""
        if self.joint is not None:
            parameters = self.joint.to_real(parameters)
            return jnp.concatenate([jnp.ravel(jnp.asarray(piece)) for piece in jax.tree.leaves(parameters)])
        values = jax.tree.leaves(parameters)
        pieces = [leaf.transform.to_real(jnp.asarray(x)) for x, leaf in zip(values, self.leaves, strict=True)]
        return jnp.concatenate([piece.reshape(-1) for piece in pieces])

    def unravel(self, vector: Array | np.ndarray) -> Parameters:
        """Cut a real-line vector into the pytree without transforming it."""
        return jax.tree.unflatten(self.structure, self._split(vector))

    def unravel_rows(self, vectors: np.ndarray) -> Parameters:
        """The same of many vectors, with their leading axis."""
        pieces = np.split(vectors, np.cumsum(self.sizes)[:-1], axis=1)
        shaped = [piece.reshape(-1, *leaf.real_shape) for piece, leaf in zip(pieces, self.leaves, strict=True)]
        return jax.tree.unflatten(self.structure, shaped)

    def names(self) -> list[str]:
        """A name for every number in natural units: `tau`, `theta[3]`, `w[2,0]`."""
        return [name for leaf in self.leaves for name, _ in leaf.entries(leaf.shape)]

    def coordinate_names(self) -> list[str]:
        """A name for every coordinate of the real-line vector, likewise."""
        return [name for leaf in self.leaves for name, _ in leaf.entries(leaf.real_shape)]


def real_names(space: Space) -> list[str]:
    """Coordinates as they are on the real line, where posteriors are Gaussian: `log tau` for a positive tau."""
    logarithmic = np.repeat([leaf.transform == positive for leaf in space.leaves], space.sizes)
    return [f"log {name}" if log else name for name, log in zip(space.coordinate_names(), logarithmic, strict=True)]


def describe_space(start: Parameters, transforms: object = None) -> tuple[Space, np.ndarray]:
    """Read names, shapes and constraints off `start`; give the space and the start on the real line.

    Raises
    ------
    ValueError
        When `start` is empty, holds values that are no finite numbers, or lies outside its constraints.
    """
    if isinstance(transforms, JointTransform):
        return _describe_joint(start, transforms)
    insist_tree("start", start)
    start = with_plain_keys(lists_as_arrays(start, transforms))
    with_paths, structure = jax.tree_util.tree_flatten_with_path(start)
    if not with_paths:
        raise ValueError(f"start: {shown(start)} holds no parameters; give an array or a pytree of arrays.")
    chosen = _match_transforms(start, transforms)
    leaves, vectors = [], []
    names = leaf_names([path for path, _ in with_paths])
    for name, (_, value), transform in zip(names, with_paths, chosen, strict=True):
        array = _float_array(name, value)
        leaf = Leaf(name, array.shape, transform)
        vectors.append(_real_start(leaf, array))
        leaves.append(leaf)
    vector = np.concatenate(vectors)
    if not vector.size:
        raise ValueError("start: every leaf has size 0; there is nothing to infer.")
    return Space(structure, tuple(leaves)), vector


def _describe_joint(start: Parameters, joint: JointTransform) -> tuple[Space, np.ndarray]:
    """The space of parameters that another package maps; `start` is a dict of arrays in natural units."""
    if not isinstance(start, dict):
        raise ValueError(f"start={shown(start)}: give the parameters of the model by name, as a dict of arrays.")
    arrays = {name: _float_array(name, value) for name, value in start.items()}
    real = {name: np.asarray(value, np.float64) for name, value in joint.to_real(arrays).items()}
    wrong = [name for name, value in real.items() if not np.isfinite(value).all()]
    if wrong:
        raise ValueError(f"start: {wrong[0]} = {arrays[wrong[0]]} is outside the support that the model gives it.")
    names, structure = sorted(real), jax.tree.structure(real)
    leaf = lambda name: Leaf(name, arrays[name].shape, joint.known.get(name, Foreign(real[name].shape)))
    space = Space(structure, tuple(map(leaf, names)), joint)
    return space, np.concatenate([real[name].ravel() for name in names])


def leaf_name(path: tuple) -> str:
    """A dotted name for a leaf of the pytree; a bare array is called `parameters`."""
    return _joined(_keys(path), quoted=False)


def leaf_names(paths: Sequence[tuple]) -> list[str]:
    """A name for every leaf of a pytree, no two the same: `a.b` for b in a, and then `'a.b'` for a key with a dot."""
    return [harmless(name) for name in _distinct([_keys(path) for path in paths])]


def lists_as_arrays(start: Parameters, transforms: object = None) -> Parameters:
    """A pytree in which lists of plain numbers are arrays, but for those whose numbers have transforms of their own.

    A transform of arrays makes one of any list of single numbers.
    """
    given = _given_transforms(transforms)
    divided = {keys[:n] for keys in given for n in range(len(keys))}
    joined = {keys for keys, transform in given.items() if transform is not None and transform.axes}

    def is_array(keys: tuple[str, ...], value: object) -> bool:
        if not isinstance(value, list) or keys in divided:
            return False
        whole = bool(value) and any(keys[:n] in joined for n in range(len(keys) + 1))
        single = jax.tree_util.all_leaves(value) and all(np.ndim(each) == 0 for each in value)
        return is_list_of_numbers(value) or (whole and single)

    def convert(keys: tuple[str, ...], value: object) -> object:
        if is_array(keys, value):
            return np.asarray(value)
        children, structure = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda inner: inner is not value)
        if [path for path, _ in children] == [()]:
            return value
        return jax.tree.unflatten(structure, [convert((*keys, *_keys(path)), inner) for path, inner in children])

    return convert((), start)


def _float_array(name: str, value: object) -> np.ndarray:
    array = plain_array(f"start: {name}", value)
    if hasattr(value, "posterior"):
        raise ValueError("start: is a fit, from which `fit` alone can go on; give its mean, start=fit.mean.")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"start: {name} has dtype {array.dtype}; parameters must be arrays of real numbers.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"start: {name} = {array} is not finite; give a finite starting value.")
    return array.astype(np.float64)


def _real_start(leaf: Leaf, array: np.ndarray) -> np.ndarray:
    try:
        shape = leaf.real_shape
    except ValueError as error:
        raise ValueError(f"transforms: {leaf.name}: {error}") from error
    if isinstance(leaf.transform, Real):
        return array.reshape(-1)
    vector = np.asarray(leaf.transform.to_real(jnp.asarray(array)))
    if not np.all(np.isfinite(vector)) or not _inside(leaf.transform, vector, array):
        raise ValueError(
            f"start: {leaf.name} = {array} is outside its support; its transform needs values "
            f"{leaf.transform.describe()}."
        )
    return vector.reshape(int(np.prod(shape)))


def _inside(transform: Transform, vector: np.ndarray, array: np.ndarray) -> bool:
    back = np.asarray(transform.to_natural(jnp.asarray(vector)))
    return bool(np.allclose(back, array, rtol=1e-5, atol=1e-8))


def _match_transforms(start: Parameters, transforms: object) -> list[Transform]:
    """One transform per leaf: a single one for all, or a pytree like `start` in which None or a missing key is real."""
    paths = [_keys(path) for path, _ in jax.tree_util.tree_flatten_with_path(start)[0]]
    chosen: dict[tuple[str, ...], Transform] = {}
    for keys, transform in _given_transforms(transforms).items():
        covered = [own for own in paths if own[: len(keys)] == keys]
        if not covered:
            raise ValueError(
                f"transforms: no parameter is called {_joined(keys, quoted=len(keys) == 1)!r}; start has "
                f"{sorted(_distinct(paths))}."
            )
        chosen.update({own: transform or Real() for own in covered})
    return [chosen.get(own, Real()) for own in paths]


def _given_transforms(transforms: object) -> dict[tuple[str, ...], Transform | None]:
    """What was given, by place."""
    if transforms is None:
        return {}
    insist_tree("transforms", transforms)
    found = jax.tree_util.tree_flatten_with_path(transforms, is_leaf=lambda x: x is None or isinstance(x, Transform))[0]
    for path, transform in found:
        if transform is not None and not isinstance(transform, Transform):
            raise ValueError(
                f"transforms: {harmless(leaf_name(path))} = {shown(transform)} is not a transform; use positive, above(a), below(b), "
                "interval(a, b), ordered, simplex, correlation_cholesky, real or None."
            )
    return {_keys(path): transform for path, transform in found}


def _keys(path: tuple) -> tuple[str, ...]:
    """Where a leaf is, the same for a dict, a named tuple and a dataclass with the same names."""
    return tuple(str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path)


def _joined(keys: tuple[str, ...], *, quoted: bool) -> str:
    """A dotted name; `quoted` puts keys that could be taken for several into quotation marks."""
    parts = [repr(key) if quoted and set(key) & _AMBIGUOUS else key for key in keys]
    return ".".join(parts) or "parameters"


def _distinct(paths: list[tuple[str, ...]]) -> list[str]:
    names = [_joined(keys, quoted=False) for keys in paths]
    seen = set(names)
    # theta[0] may also be the first number of theta.
    clear = len(seen) == len(names) and not any("[" in name and name.rpartition("[")[0] in seen for name in names)
    return names if clear else [_joined(keys, quoted=True) for keys in paths]
