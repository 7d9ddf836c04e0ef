"""A fit as ArviZ data: samples of the posterior in natural units. Needs the extra `arviz`."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import jax

from quenched.result import Fit

if TYPE_CHECKING:
    from xarray import DataTree


def to_arviz(fit: Fit, n: int = 1000, seed: int = 0) -> "DataTree":
    """Samples of the posterior as an ArviZ `DataTree` with one chain.

    The samples are independent: diagnostics of a Markov chain, such as effective sample size, say nothing about the
    fit. `fit.verdict` does; it is among the attributes.

    Parameters
    ----------
    fit
        What to sample.
    n
        How many samples.
    seed
        Of the samples.

    Raises
    ------
    ImportError
        Without arviz-base; the message names the extra.
    """
    try:
        import arviz_base
    except ImportError as error:
        raise ImportError('Export to ArviZ needs arviz-base: pip install "quenched[arviz]".') from error
    names = [leaf.name for leaf in fit.space.leaves]
    samples = [values[None] for values in jax.tree.leaves(fit.sample(n, seed))]
    return arviz_base.from_dict(
        {"posterior": dict(zip(names, samples, strict=True))}, attrs={"posterior": _attributes(fit, seed)}
    )


def _attributes(fit: Fit, seed: int) -> dict[str, Any]:
    """Plain numbers and texts, which every file format can hold."""
    return {
        "inference_library": "quenched",
        "inference_library_version": version("quenched"),
        "bound": fit.bound,
        "check_bound": fit.check_bound,
        "check_error": fit.check_error,
        "status": str(fit.status),
        "verdict": fit.verdict,
        "seed": seed,
    }
