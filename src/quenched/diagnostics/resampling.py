"""Samples of the target, by importance resampling from the fitted posterior."""

import warnings

from quenched.diagnostics.importance import weigh
from quenched.draws import Purpose, generator
from quenched.numbers import whole_number
from quenched.precision import in_double
from quenched.results import Fit, insist_fit, require_origin
from quenched.transforms import Parameters
from quenched.trust import BAD, weigh_ratios

_POOL = 10  # samples of the posterior for each one that is kept
_SMALLEST_POOL = 2000


def resample(fit: Fit, n: int, seed: int = 0) -> Parameters:
    """Samples in natural units, like `fit.sample`, moved from the fitted posterior to the target.

    A pool of posterior samples is weighted by the target, the weights are Pareto-smoothed, and n of the pool are
    drawn by their weights, with replacement. Warns when k-hat is above 0.7 and the weights are uneven: then they
    cannot be trusted.

    Examples
    --------
    >>> fit = qd.fit(lambda t: t - jnp.exp(t), 0.0)  # the logarithm of an exponential: skewed to the left
    >>> from quenched.diagnostics import resample
    >>> samples = resample(fit, 4000)  # as fit.resample(4000)
    >>> bool(np.std(samples) > 1.05 * fit.sd)
    True
    """
    insist_fit(fit)
    whole_number("n", n, 1)
    problem, hyper, _ = require_origin(fit)
    with in_double():
        pool = weigh(problem, fit.posterior.member, hyper, max(_POOL * n, _SMALLEST_POOL), fit.settings["seed"])
    judged = weigh_ratios(pool.log_ratios[:_SMALLEST_POOL])  # those of a diagnosis, so that both say the same
    if not judged.khat <= BAD and not judged.share > 0.8:
        warnings.warn(
            f"resample: k-hat is {judged.khat:.2f}, above {BAD}; the weights keep {judged.share:.1%} of the "
            "samples, and those may miss part of the target.",
            stacklevel=3,
        )
    chosen = generator(seed, Purpose.RESAMPLING).choice(len(pool.samples), n, p=pool.weights.weights)
    return fit.natural(pool.samples[chosen], seed)
