"""`MixedModel`: fixed and varying effects by formula, with the standard deviations of the effects integrated over."""

import warnings
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from quenched.draws import Purpose, generator
from quenched.fitting import fit
from quenched.models.mixed.design import MixedDesign, NewRows, read_design, read_new_rows, separating
from quenched.models.mixed.likelihoods import cut_points, likelihoods
from quenched.models.mixed.terms import Written, write
from quenched.nesting import TooManyInside, nested
from quenched.numbers import real_array, seed_number, whole_number
from quenched.plots import BLUE, GREY, dress, new_figure
from quenched.results import Fit
from quenched.text import shown

_SAMPLES = 4000
_SEARCHED = 20_000  # rows up to which separation is looked for


class MixedModel:
    """A generalised linear mixed model.

    Parameters
    ----------
    formula
        As in lme4 and Bambi, read by the package formulae: "y ~ x + (1|group)", "y ~ days + (days|subject)",
        "y ~ x + (1|a) + (1|b)", "y ~ x + (1|school/class)", "prop(successes, trials) ~ x", "offset(log(t))". Effects from the same
        brackets correlate; those of "(1|group) + (0 + x|group)", or for short "(x||group)", do not.
    likelihood
        "gaussian", "bernoulli", "binomial", "poisson", "negative binomial", "ordinal" or "beta", with their usual links
        (identity, logit, log; cumulative logit for ordered categories).
    hyper
        "integrated": standard deviations and correlations of the effects and the dispersion have a posterior, and the effects
        a Gaussian for each of their values (`quenched.nested`). "raised": standard deviations and dispersion are put where the
        bound is highest, without a prior and without an error (empirical Bayes).
    seed
        Of the draws.

    Attributes
    ----------
    fixed_, sd_
        Tables with the columns mean and sd; of the fixed effects, and of the standard deviations of the varying ones (and the
        dispersion).
    correlation_
        By grouping, the mean correlation matrix of its effects.
    effects_
        By term ("1|group"), a table of its effects by level.
    cuts_
        Of an ordinal response, a table of its cut points.
    evidence_, evidence_error_
        Log evidence by importance sampling, in nats.
    fit_
        The `Fit` behind it.

    Notes
    -----
    The priors are weak. With s the standard deviation of a gaussian response and 1 for all others: fixed effects N(0, (10 s / sd
    of the column)²), the intercept N(0, (10 s + |mean of a gaussian response|)²), standard deviations half-normal of scale 2.5 s,
    correlations LKJ(2), the logarithm of a dispersion N(log s, 2²); of an ordinal response the first cut point N(0, 5²) and the
    logarithms of the steps to the others N(0, 1.5²). Up to 2,000 effects of one grouping, or of nested ones, have a Gaussian for every
    value of the hyperparameters; of crossed groupings, as many as 500,000 pairs of them. With more, "integrated" is one Gaussian
    over effects and hyperparameters together, and a warning says so.

    Examples
    --------
    >>> import pandas as pd
    >>> from quenched.models import MixedModel
    >>> table = pd.DataFrame({"y": [1.0, 1.2, 2.9, 3.1, 5.0, 5.2, 7.1, 6.9], "school": list("aabbccdd")})
    >>> model = MixedModel("y ~ 1 + (1|school)").fit(table)
    >>> list(model.fixed_.index), model.effects_["1|school"].shape[0]
    (['Intercept'], 4)
    """

    def __init__(self, formula: str, likelihood: str = "gaussian", hyper: str = "integrated", *, seed: int = 0):
        likelihood = likelihood.replace("_", " ") if isinstance(likelihood, str) else likelihood
        self.formula, self.likelihood, self.hyper, self.seed = formula, likelihood, hyper, seed

    def fit(self, table: Any, weights: Any = None, *, progress: bool = False, max_seconds: float | None = None) -> Self:
        """Fit to a DataFrame; `weights` multiply the log likelihoods of the rows: an array, or the name of a column.

        With `max_seconds`, what was reached by then is kept, and `fit_.status` says so.
        """
        if not isinstance(self.likelihood, str) or self.likelihood not in likelihoods:
            raise ValueError(f"likelihood={shown(self.likelihood)}: use one of {', '.join(map(repr, likelihoods))}.")
        if not isinstance(self.hyper, str) or self.hyper not in ("integrated", "raised"):
            raise ValueError(f"hyper={shown(self.hyper)}: use 'integrated' or 'raised'.")
        seed_number("seed", self.seed)
        design = read_design(self.formula, table, self.likelihood)
        self._check(design)
        if isinstance(weights, str) and weights not in table:
            raise ValueError(f"weights={shown(weights)}: is no column of the table.")
        given = table[weights] if isinstance(weights, str) else weights
        given = np.ones(len(design.response)) if given is None else real_array("weights", given)
        if given.shape != design.response.shape or not np.all(given >= 0.0):
            raise ValueError(
                f"weights: have shape {given.shape}; give one number of at least zero for each of the rows."
            )
        written = write(design, self.likelihood, given, self.hyper == "raised")
        options: dict[str, Any] = {"transforms": written.transforms or None, "seed": self.seed, "progress": progress}
        options |= {"max_seconds": max_seconds}
        found = self._integrated(written, options) if self.hyper == "integrated" and written.outer else None
        self.fit_ = fit(written.target, written.start, hyper=written.hyper, **options) if found is None else found
        self._design, self._index = design, table.index
        self._tabulate(design, self.fit_)
        return self

    def _insist_fitted(self) -> None:
        if not hasattr(self, "fit_"):
            raise NotFittedError("This MixedModel is not fitted yet: call fit(table) first.")

    def _integrated(self, written: Written, options: dict[str, Any]) -> Fit | None:
        """By `nested`; None where there are too many effects for it."""
        try:
            return nested(written.target, written.start, outer=written.outer, **options)
        except TooManyInside:
            warnings.warn(
                f"formula={self.formula!r}: it has more effects that go with each other than nested can hold a Gaussian of for every "
                "value of the hyperparameters. Effects and hyperparameters have one Gaussian together, by which the sds of sd_ "
                "are too small where effects have few rows; leave out the grouping with fewer effects to see by how much, or "
                "use hyper='raised' if the effects are what you are after.",
                stacklevel=3,
            )
            return None

    def _check(self, design: MixedDesign) -> None:
        likelihood = likelihoods[self.likelihood]
        if not likelihood.fits(design.response):
            raise ValueError(
                f"formula={self.formula!r}: likelihood={self.likelihood!r} needs {likelihood.needs} as response."
            )
        if self.likelihood == "gaussian" and design.noiseless:
            raise ValueError(
                f"formula={self.formula!r}: the fixed effects give the response exactly, in every row, and leave no residual to be "
                "learned; is a column computed from the response, or the response the same everywhere?"
            )
        rows = _unlimited(self.likelihood, design)
        if rows is not None and design.fixed.shape[1] and len(design.response) <= _SEARCHED:
            guilty = separating(design.fixed, design.names, *rows)
            if guilty:
                warnings.warn(
                    f"formula: {', '.join(guilty)} separate the responses (zeros from the rest, or ones), so that the data alone "
                    "set no limit to them, and the prior decides; leave one out, or read them as 'large'.",
                    stacklevel=3,
                )

    def _tabulate(self, design: MixedDesign, fit: Fit) -> None:
        import pandas

        table = lambda names, mean, sd: pandas.DataFrame(
            {"mean": np.asarray(mean), "sd": np.asarray(sd)}, index=list(names)
        )
        fixed = "fixed" in fit.mean
        self.fixed_ = table(design.names, fit.mean["fixed"], fit.sd["fixed"]) if fixed else table((), (), ())
        samples = self._samples(_SAMPLES)
        names, sds = [term for factor in design.factors for term in factor.terms], [np.zeros((_SAMPLES, 0))]
        if names:
            sds.append(np.exp(samples["log_sd"]))
        if "log_dispersion" in samples:
            names.append({"gaussian": "residual", "beta": "precision"}.get(self.likelihood, "shape"))
            sds.append(np.exp(samples["log_dispersion"])[:, None])
        drawn = np.concatenate(sds, axis=1)
        spread = drawn.std(axis=0) if self.hyper == "integrated" else np.full(drawn.shape[1], np.nan)
        self.sd_ = table(names, drawn.mean(axis=0), spread)
        self.effects_, self.correlation_ = {}, {}
        for factor in design.factors:
            mean, sd = (np.asarray(of["effects"][factor.name]).reshape(-1, factor.size) for of in (fit.mean, fit.sd))
            for place, term in enumerate(factor.terms):
                self.effects_[term] = table(factor.levels, mean[:, place], sd[:, place])
            if factor.size > 1:
                roots = samples["correlation"][factor.name]
                mean = np.mean(roots @ np.swapaxes(roots, 1, 2), axis=0)
                self.correlation_[factor.name] = pandas.DataFrame(
                    mean, index=list(factor.terms), columns=list(factor.terms)
                )
        if design.categories:
            cuts = cut_points(np.asarray(samples["cut_steps"]))
            labels = [f"{low}|{high}" for low, high in pairwise(design.categories)]
            spread = cuts.std(axis=0) if self.hyper == "integrated" else np.full(cuts.shape[1], np.nan)
            self.cuts_ = table(labels, cuts.mean(axis=0), spread)
        self.evidence_, self.evidence_error_ = fit.evidence, fit.evidence_error

    def _samples(self, n: int) -> dict[str, Any]:
        """Of all parameters; what was raised is the same in each."""
        raised = {} if self.fit_.hyper is None else self.fit_.hyper
        fixed = {name: np.broadcast_to(np.asarray(value), (n, *np.shape(value))) for name, value in raised.items()}
        return {**self.fit_.sample(n, seed=self.seed), **fixed}

    def predict(self, table: Any = None, *, samples: int = 1000) -> Any:
        """Mean and sd of the expected response (of a success, for a binomial one) in every row, as a table.

        It has the index of the table, or of the one that was fitted. Levels that the fit has not seen have effects drawn from
        their own distribution.
        """
        import pandas

        self._insist_fitted()
        whole_number("samples", samples, 2)
        design, drawn = self._design, self._samples(samples)
        rows = NewRows.of(design) if table is None else read_new_rows(design, table)
        index = self._index if table is None else table.index
        predictor = rows.offset + (drawn["fixed"] @ rows.fixed.T if rows.fixed.shape[1] else np.zeros((samples, 1)))
        first, random = 0, generator(self.seed, Purpose.NOISE)
        for factor, (groups, covariates) in zip(design.factors, rows.varying, strict=True):
            known = drawn["effects"][factor.name].reshape(samples, -1, factor.size)
            fresh = max(int(groups.max(initial=-1)) + 1 - known.shape[1], 0)
            spread = np.exp(drawn["log_sd"][:, None, first : first + factor.size])
            noise = random.standard_normal((samples, fresh, factor.size))
            if factor.size > 1:
                noise = noise @ np.swapaxes(drawn["correlation"][factor.name], 1, 2)
            everyone = np.concatenate([known, spread * noise], axis=1)
            predictor += np.sum(everyone[:, groups] * covariates, axis=2)
            first += factor.size
        if design.categories:
            return pandas.DataFrame(self._shares(predictor, drawn["cut_steps"]), index=index)
        mean = likelihoods[self.likelihood].mean(predictor)
        return pandas.DataFrame({"mean": mean.mean(axis=0), "sd": mean.std(axis=0)}, index=index)

    def _shares(self, predictor: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
        """The probability of each category in every row, and mean and sd of the expected number of the category."""
        cuts, mean = cut_points(np.asarray(steps)), likelihoods["ordinal"].mean
        below = [np.zeros_like(predictor), *(mean(cut[:, None] - predictor) for cut in cuts.T), np.ones_like(predictor)]
        shares = {
            label: (high - low).mean(axis=0)
            for label, (low, high) in zip(self._design.categories, pairwise(below), strict=True)
        }
        expected = len(shares) - np.sum(below[1:-1], axis=0)
        return {"mean": expected.mean(axis=0), "sd": expected.std(axis=0), **shares}

    def plot_effects(self, term: str | None = None, most: int = 60) -> Any:
        """The effects of a term ("1|group"; the first by default) by level, with two sds to each side, as a figure.

        They are sorted; of more than `most` levels the lowest and the highest are shown.
        """
        self._insist_fitted()
        if not self.effects_:
            raise ValueError(f"formula={self.formula!r}: it has no varying effects to plot.")
        if term is not None and term not in self.effects_:
            raise ValueError(f"term={term!r}: there are {', '.join(map(repr, self.effects_))}.")
        term = next(iter(self.effects_)) if term is None else term
        rows = self.effects_[term].sort_values("mean")
        if len(rows) > most:
            rows = rows.iloc[[*range(most // 2), *range(len(rows) - most // 2, len(rows))]]
        drawn = new_figure(5.0, 1.0 + 0.16 * len(rows))
        axes, places = drawn.subplots(), np.arange(len(rows))
        axes.errorbar(rows["mean"], places, xerr=2.0 * rows["sd"], fmt="o", color=BLUE, markersize=3, linewidth=1)
        axes.axvline(0.0, color=GREY, linewidth=1)
        axes.set_yticks(places, list(rows.index))
        dress(axes, title=term, xlabel="effect, ± 2 sd")
        return drawn

    def summary(self) -> str:
        """Tables of fixed effects and standard deviations, correlations and cut points, the log evidence, and the verdict."""
        self._insist_fitted()
        parts = [f"{self.formula}  ({self.likelihood}, hyperparameters {self.hyper})", "", "Fixed effects"]
        parts += [self.fixed_.round(4).to_string(), "", "Standard deviations", self.sd_.round(4).to_string(), ""]
        for name, matrix in self.correlation_.items():
            parts += [f"Correlations, {name}", matrix.round(3).to_string(), ""]
        if self._design.categories:
            parts += ["Cut points", self.cuts_.round(4).to_string(), ""]
        sizes = {factor.grouping: len(factor.levels) for factor in self._design.factors}
        levels = ", ".join(f"{grouping} {size}" for grouping, size in sizes.items())
        parts += [f"{len(self._design.response)} rows" + (f"; levels: {levels}" if levels else "")]
        parts += [f"log evidence {self.evidence_:.3f} ± {self.evidence_error_:.2g} nats", self.fit_.verdict]
        return "\n".join(parts)


def _unlimited(likelihood: str, design: MixedDesign) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows that never mind a higher predictor, and those that never mind a lower one; None where all mind both."""
    y, n = design.response, 1.0 if design.trials is None else design.trials
    if likelihood in ("bernoulli", "binomial"):
        return y == n, y == 0.0
    if likelihood in ("poisson", "negative binomial"):
        return np.zeros(len(y), bool), y == 0.0
    return None
