# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""PyTorch: a log density of tensors, or a module whose parameters are what is inferred; gradients by autograd."""

import copy
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from quenched.frontends.packages import need
from quenched.numbers import check_data, given_function, insist_tree, native, plain_array, real_array
from quenched.targets import Model, Target


def from_torch(log_density: Any, start: Any = None, *, data: Any = None, transforms: Any = None) -> Model:
    """A log density in PyTorch.

    `fit(from_torch(log_density, start))` fits it; of a module, `fit(from_torch(module))` fits its parameters, by name. Many
    draws are evaluated in one call (`torch.func.vmap`) where the function allows it, one by one otherwise. Everything is
    computed in double precision: tensors that a function closes over must be, too.

    Parameters
    ----------
    log_density
        log_density(parameters[, data]) -> tensor with one number, the parameters like `start` but tensors; or a
        `torch.nn.Module` that returns it when it is called with nothing, or with the data. A module is copied, put into
        double precision and into evaluation mode.
    start
        Tensor, array or pytree of them, in natural units; of a module, its own parameters that require a gradient, unless
        others are given.
    data
        Pytree of tensors or arrays.
    transforms
        As in `fit`.

    Raises
    ------
    ValueError
        For misuse, and when the log density cannot be evaluated at the start.
    ImportError
        Without PyTorch; the message names the extra.

    Examples
    --------
    >>> import torch
    >>> y = torch.tensor([1.0, 3.0], dtype=torch.float64)
    >>> fit = qd.fit(qd.from_torch(lambda p: -0.5 * ((y - p["mu"]) ** 2).sum(), {"mu": torch.tensor(0.0)}))
    >>> float(fit.mean["mu"].round(3))
    2.0
    """
    torch = need("torch", "torch")
    name = getattr(log_density, "__name__", type(log_density).__name__)
    if isinstance(log_density, torch.nn.Module):
        module = copy.deepcopy(log_density).double().eval()
        start = {name: own for name, own in module.named_parameters() if own.requires_grad} if start is None else start
        log_density = lambda parameters, *rest: torch.func.functional_call(module, parameters, rest)
    given_function("log_density", log_density, "a function of tensors, or a torch.nn.Module")
    if start is None:
        raise ValueError("start: is missing; give a tensor or a pytree of tensors, in natural units.")
    insist_tree("start", start)
    start = jax.tree.map(lambda leaf: real_array("start", _as_array(leaf)), start)
    if not jax.tree.leaves(start):
        raise ValueError("start: is empty; give a tensor or a pytree of tensors.")
    if data is not None:
        insist_tree("data", data)
        data = jax.tree.map(_as_array, data)
        check_data(data)
    answer = _Answer(log_density, _first(log_density, start, data))
    return Model(Target(answer, on_host=True, batched=True, data=data), start, transforms, name=name)


def _as_array(leaf: Any) -> np.ndarray:
    array = plain_array("start or data", leaf.detach().cpu() if hasattr(leaf, "detach") else leaf)
    return array.astype(np.float64) if array.dtype.kind == "f" else native(array)


def _tensors(tree: Any) -> Any:
    torch = need("torch", "torch")

    return jax.tree.map(lambda leaf: torch.from_numpy(np.array(leaf)), tree)


class _Answer:
    """Values and gradients at many points in one call: NumPy in, NumPy out."""

    def __init__(self, log_density: Callable[..., Any], together: bool):
        self.log_density, self.together = log_density, together

    def __call__(self, parameters: Any, data: Any = None) -> tuple[np.ndarray, Any]:
        rest = () if data is None else (_tensors(data),)
        rows, structure = jax.tree.flatten(_tensors(parameters))
        # Torch knows fewer containers than JAX does: it is handed the leaves.
        of_leaves = lambda *leaves: self.log_density(jax.tree.unflatten(structure, leaves), *rest)
        values, gradients = (_at_once if self.together else _in_turn)(of_leaves, rows)
        return values.numpy(), jax.tree.unflatten(structure, [gradient.numpy() for gradient in gradients])


def _at_once(of_leaves: Callable[..., Any], rows: list[Any]) -> tuple[Any, Any]:
    torch = need("torch", "torch")

    gradients, values = torch.func.vmap(torch.func.grad_and_value(of_leaves, argnums=tuple(range(len(rows)))))(*rows)
    return values.detach(), [gradient.detach() for gradient in gradients]


def _in_turn(of_leaves: Callable[..., Any], rows: list[Any]) -> tuple[Any, Any]:
    torch = need("torch", "torch")

    values, gradients = [], []
    for place in range(len(rows[0])):
        leaves = [row[place].clone().requires_grad_() for row in rows]
        value = of_leaves(*leaves)
        values.append(value.detach())
        found = torch.autograd.grad(value, leaves, allow_unused=True)
        gradients.append([torch.zeros_like(a) if b is None else b for a, b in zip(leaves, found, strict=True)])
    return torch.stack(values), [torch.stack(column) for column in zip(*gradients, strict=True)]


def _first(log_density: Callable[..., Any], start: Any, data: Any) -> bool:
    """Evaluate it at the start, to see what it returns, and whether many draws can be evaluated at once."""
    torch = need("torch", "torch")

    try:
        value = log_density(_tensors(start), *(() if data is None else (_tensors(data),)))
    except RuntimeError as error:
        remedy = "; give the data in double precision, as the parameters are" if "dtype" in str(error) else ""
        raise ValueError(f"log_density: PyTorch says {str(error).strip()}{remedy}.") from error
    except Exception as error:
        error.add_note("raised by log_density, which was called with tensors shaped like start to see what it returns")
        raise
    if not isinstance(value, torch.Tensor) or value.shape != ():
        found = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise ValueError(f"log_density returned {found}; it must return a tensor with one number: sum over the data.")
    two = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), start)
    try:
        values, gradients = _Answer(log_density, together=False)(two, data)
    except RuntimeError as error:  # autograd's own
        raise ValueError(
            f"log_density: PyTorch gives no gradient: {str(error).strip()}; compute it of the parameters with tensors "
            "alone, without detach(), item() or NumPy."
        ) from error
    try:
        also, others = _Answer(log_density, together=True)(two, data)
    except (RuntimeError, ValueError, NotImplementedError, TypeError):
        return False
    same = lambda a, b: np.allclose(a, b, rtol=1e-8, atol=1e-10, equal_nan=True)
    return same(values, also) and all(map(same, jax.tree.leaves(gradients), jax.tree.leaves(others)))
