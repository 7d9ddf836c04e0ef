"""`calibrate`: simulate many data sets, fit them all, and see where the true parameters fall."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.calibration.ranks import Band, distribution, rank_of, uniform_band
from quenched.calibration.verdict import CALIBRATED, RankFinding, in_words, judge_ranks
from quenched.compiling import program
from quenched.draws import Purpose, generator
from quenched.fitting import fit_many
from quenched.numbers import (
    given_function,
    insist_tree,
    plain_array,
    probability,
    real_array,
    seed_number,
    whole_number,
)
from quenched.precision import in_double
from quenched.results import Fits
from quenched.targets import Target
from quenched.transforms import Space

_FEWEST = 20  # data sets from which anything can be told


@dataclass(frozen=True, eq=False)
class Calibration:
    """Ranks of the true parameters among samples of their posteriors.

    Attributes
    ----------
    names
        Of the numbers, in natural units: `mu`, `theta[3]`.
    ranks
        Array (data set, number), from 0 to `n_samples`; uniform if the posteriors are right. Fits that failed are left
        out.
    n_samples
        Posterior samples that the true value was ranked among.
    fits
        Of all simulated data sets.
    parameters
        The true ones, with the data sets along the first axis.
    coverage
        Probability that a calibrated model is called calibrated, over all numbers together.

    Examples
    --------
    >>> def simulate(random):
    ...     w = random.normal()
    ...     return np.asarray(w), random.normal(w, 1.0, 4)
    >>> found = qd.calibrate(simulate, lambda w, y: -0.5 * jnp.sum((y - w) ** 2) - 0.5 * w**2, np.zeros(()), n=60)
    >>> found.calibrated
    True
    """

    names: tuple[str, ...]
    ranks: np.ndarray = field(repr=False)
    n_samples: int
    fits: Fits = field(repr=False)
    parameters: Any = field(repr=False)
    coverage: float = 0.95

    @cached_property
    def findings(self) -> list[RankFinding]:
        """One for each number; the band allows for how many there are."""
        coverage = self.coverage_of_each
        return [judge_ranks(name, self.ranks[:, i], self.n_samples, coverage) for i, name in enumerate(self.names)]

    @property
    def coverage_of_each(self) -> float:
        """Of the band of one number (Bonferroni)."""
        return 1.0 - (1.0 - self.coverage) / len(self.names)

    @property
    def band(self) -> Band:
        """Where the distribution function of uniform ranks lies."""
        return uniform_band(len(self.ranks), self.n_samples, self.coverage_of_each)

    def distribution(self, ranks: np.ndarray) -> np.ndarray:
        """The distribution function of ranks at the points of the band."""
        ranks = real_array("ranks", ranks)
        if ranks.ndim != 1 or not ranks.size:
            raise ValueError(f"ranks has shape {ranks.shape}; give (problems,), not empty.")
        return distribution(ranks, self.n_samples, self.band.points)

    @property
    def calibrated(self) -> bool:
        """No number has ranks that chance does not explain."""
        return all(finding.verdict == CALIBRATED for finding in self.findings)

    @property
    def n_failed(self) -> int:
        """Fits that failed: `fits.failed` tells which."""
        return int(self.fits.failed.sum())

    @property
    def verdict(self) -> str:
        """In words a person can act on."""
        words = in_words(self.findings, len(self.ranks), self.n_failed)
        open_ = int((~self.fits.converged & ~self.fits.failed).sum())
        return words + (f" {open_} fits did not converge." if open_ else "")

    def summary(self) -> list[dict[str, Any]]:
        """One row per number: name, verdict, departure, shift and width."""
        return [finding._asdict() for finding in self.findings]

    def __str__(self) -> str:
        lines = [f"{'parameter':<16}{'shift':>8}{'width':>8}  verdict"]
        lines += [f"{f.name:<16}{f.shift:>8.2f}{f.width:>8.2f}  {f.verdict}" for f in self.findings]
        return "\n".join([*lines, "", self.verdict])

    def _repr_html_(self) -> str:
        from quenched.report import calibration_html

        return calibration_html(self)

    def plot(self, path: str | Path | None = None):
        """Figure of the ranks: histogram and distribution function of each number, with bands; saved to `path`."""
        from quenched.plots import plot_ranks

        return plot_ranks(self, path)


def calibrate(
    simulate: Callable[[np.random.Generator], tuple[Any, Any]],
    log_density: Callable[..., Any] | Target,
    start: Any,
    *,
    n: int = 200,
    n_samples: int = 399,
    coverage: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> Calibration:
    """Check a model and its fits against data whose parameters are known (Talts et al. 2018).

    Parameters are drawn from the prior, data given them, and the posterior of each data set is fitted with `fit_many`.
    If the log density is the prior times the likelihood by which the data were made, and its posteriors are Gaussian enough,
    the true values fall anywhere among samples of their posteriors with equal chance. If not, the verdict says how they
    fall: a posterior too narrow is overconfident.

    Parameters
    ----------
    simulate
        simulate(random) -> (parameters, data), with a NumPy `Generator`: parameters shaped like `start`, drawn from the
        prior, and one data set given them. Shapes must not differ from call to call.
    log_density, start
        As in `fit_many`.
    n
        Data sets. With 200, a standard deviation wrong by a fifth is noticed; with 1000, by a tenth.
    n_samples
        Samples of each posterior.
    coverage
        Probability that a calibrated model is called calibrated.
    seed
        Of the simulations, the draws and the samples.
    options
        As in `fit_many`: family, transforms, draws, tolerance and others.

    Returns
    -------
    Calibration
        `.verdict` in words, `.ranks`, `.plot(path)`, and `.fits`.

    Raises
    ------
    ValueError
        For misuse, and when fewer than 20 fits succeed.

    Examples
    --------
    >>> def simulate(random):
    ...     w = random.normal()
    ...     return np.asarray(w), random.normal(w, 1.0, 4)
    >>> too_sure = lambda w, y: -2.0 * jnp.sum((y - w) ** 2) - 0.5 * w**2  # takes the noise for half of what it is
    >>> [finding.verdict for finding in qd.calibrate(simulate, too_sure, np.zeros(()), n=60).findings]
    ['too narrow']
    """
    n, n_samples = whole_number("n", n, _FEWEST), whole_number("n_samples", n_samples, 19)
    coverage, seed = probability("coverage", coverage), seed_number("seed", seed)
    given_function("simulate", simulate, "simulate(random) -> (parameters, data)")
    insist_tree("start", start)
    parameters, data = _simulated(simulate, start, n, seed)
    with warnings.catch_warnings():  # the verdict counts what failed
        warnings.filterwarnings("ignore", message=r".*fits failed", category=UserWarning)
        fits = fit_many(log_density, start, data, seed=seed, **options)
    good = np.flatnonzero(~fits.failed)
    if len(good) < _FEWEST:
        raise ValueError(
            f"simulate: {len(good)} of {n} fits succeeded; at least {_FEWEST} are needed. The first failure: "
            f"{fits.message[int(np.flatnonzero(fits.failed)[0])]}"
        )
    names, ranks = _ranked(parameters, fits, good, n_samples, seed)
    return Calibration(tuple(names), ranks, n_samples, fits, parameters, coverage)


def _simulated(simulate, start: Any, n: int, seed: int) -> tuple[Any, Any]:
    """Parameters and data of n simulations, with a leading axis."""
    random = generator(seed, Purpose.SIMULATIONS)
    pairs = [simulate(random) for _ in range(n)]
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ValueError("simulate: it must return (parameters, data), as simulate(random) with a NumPy Generator.")
    wanted = jax.tree.structure(start), [plain_array("start", leaf).shape for leaf in jax.tree.leaves(start)]
    for parameters, _ in pairs:
        found = jax.tree.structure(parameters), [np.shape(leaf) for leaf in jax.tree.leaves(parameters)]
        if found != wanted:
            raise ValueError(
                f"simulate: its parameters have {found[0]} with shapes {found[1]}; start has {wanted[0]} {wanted[1]}."
            )
    shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(data)) for _, data in pairs}
    if len(shapes) > 1 or len({jax.tree.structure(data) for _, data in pairs}) > 1:
        raise ValueError(
            f"simulate: its data change shape from call to call ({sorted(shapes)[:2]} ...); keep it fixed."
        )
    stack = lambda trees: jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)
    parameters, data = (stack(trees) for trees in zip(*pairs, strict=True))
    return jax.tree.map(lambda leaf: real_array("simulate: its parameters, one row a call", leaf), parameters), data


def _ranked(parameters: Any, fits: Fits, good: np.ndarray, n_samples: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Names of the numbers, and their ranks in the fits that did not fail.

    Each data set has its own standard-normal draws: with the same for all, an unlucky draw would shift every rank.
    """
    random, columns = generator(seed, Purpose.RANKS), []
    with in_double():
        for places in np.array_split(good, max(1, len(good) // 64)):
            member = jax.tree.map(lambda leaf: jnp.asarray(leaf[places]), fits.member)  # noqa: B023
            z = random.standard_normal((len(places), n_samples, fits.space.dim))
            samples = jax.tree.leaves(_natural_samples(fits.space, member, z))
            true = [np.asarray(leaf)[places] for leaf in jax.tree.leaves(parameters)]
            ranks = [rank_of(t, np.asarray(s)).reshape(len(places), -1) for t, s in zip(true, samples, strict=True)]
            columns.append(np.concatenate(ranks, axis=1))
    return fits.space.names(), np.concatenate(columns)


@partial(program, static_argnums=0)
def _natural_samples(space: Space, member: Any, z: jax.Array) -> Any:
    return jax.vmap(lambda one, draws: jax.vmap(space.to_natural)(one.transform(draws)))(member, z)
