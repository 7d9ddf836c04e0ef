"""`Fit`: the one result of every method, in NumPy arrays of double precision."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quenched.draws import check_draws_of
from quenched.numbers import real_array, seed_number, whole_number
from quenched.objective import Problem
from quenched.posterior import Derived, Posterior, derived, natural_moments, to_natural
from quenched.projected import Collapsed
from quenched.results.outcome import History, Optimum, Status
from quenched.results.wording import on_draws, on_optima
from quenched.targets import Hyper, Model
from quenched.text import shown
from quenched.transforms import Foreign, Parameters, Space
from quenched.trust import (
    INFINITE_FURTHER_OUT,
    MOST_RESPONDING,
    NAN_FURTHER_OUT,
    Answer,
    Departure,
    Drift,
    Facts,
    Further,
    Lookout,
    Moved,
    Response,
    Reweighted,
    Weighed,
    Weights,
    answer,
    clear_ones,
    departures,
    drift,
    furthest,
    hopeless,
    miss_a_part,
    moved,
    reweight,
    weigh_ratios,
    widest,
    worst_of_each,
)

if TYPE_CHECKING:
    from quenched.diagnostics import Diagnosis
    from quenched.results.summary import Summary

OVERFIT_PER_COORDINATE = 0.25  # nats of gap per coordinate beyond which the fit follows its draws, not the target
_DIAGNOSED_UNASKED = 2_000  # parameters, beyond which a diagnosis may take longer than the fit
_HOPELESS = 10.0  # times that, whatever the error of the check


class FitError(RuntimeError):
    """A fit that went wrong. `fit` holds whatever was reached; when there were many, `fits` holds all.

    Examples
    --------
    >>> try:
    ...     qd.fit(lambda w: -jnp.sqrt(w), -1.0)
    ... except (qd.FitError, ValueError) as error:
    ...     print("nan" in str(error).lower())
    True
    """

    def __init__(self, message: str, fit: "Fit", fits: Any = None):
        super().__init__(message)
        self.fit, self.fits = fit, fits


class Origin(NamedTuple):
    """What a fit was made from: all that is needed to ask further questions about it."""

    problem: Problem
    hyper: Hyper  # as the engine holds them
    draws: Any  # `Draws`, or `TermDraws` for a sum of terms


def insist_fit(fit: Any) -> None:
    """Refuse what is no fit."""
    if not isinstance(fit, Fit):
        raise ValueError(f"fit={shown(fit)}: give a fit, as quenched.fit returns it.")


def require_origin(fit: "Fit") -> Origin:
    """What the fit was made from, or an error that says how to restore it."""
    if not isinstance(fit, Fit):
        raise ValueError(f"fit={shown(fit)}: is no fit; give what quenched.fit(...) returns.")
    if fit.origin is None:
        raise ValueError(
            "fit: a loaded fit does not know its log density; give it back with fit = fit.attach(log_density, data=...)."
        )
    return fit.origin


@dataclass(frozen=True, eq=False)
class Fit(Weighed):
    """A Gaussian posterior, a bound on the log evidence, and how far to trust them.

    Examples
    --------
    >>> heights = np.array([1.62, 1.75, 1.80, 1.68, 1.71])
    >>> fit = qd.fit(lambda mu: -0.5 * jnp.sum(((heights - mu) / 0.1) ** 2), 1.7)
    >>> float(fit.mean.round(3)), float(fit.sd.round(3)), fit.answer.trust.words
    (1.712, 0.045, 'Trust means and sds')
    >>> fit.sample(1000).shape
    (1000,)
    >>> bool(fit.of(lambda mu: 100.0 * mu).mean > 171)
    True
    >>> fit.summary()[0]["name"], list(fit.table().columns[:2])  # print(fit.summary()) has errors and verdict
    ('parameters', ['mean', 'mean_error'])
    >>> fit.diagnose().khat < 0.5, fit.resample(100).shape, fit.nuts_start().step_size
    (True, (100,), 1.0)

    A model that says how data arise predicts; a saved fit knows everything but its log density.

    >>> normal = lambda samples, seed: {"x": np.random.default_rng(seed).normal(samples["w"])}
    >>> model = qd.Model(lambda p: -0.5 * p["w"] ** 2, {"w": 0.0}, predict=normal)
    >>> qd.fit(model).predict(50)["x"].shape
    (50,)
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = qd.load(qd.fit(model).save(pathlib.Path(folder) / "fit.npz"))
    >>> found.attach(model).predict(50)["x"].shape
    (50,)
    """

    posterior: Posterior
    space: Space = field(repr=False)
    hyper: Any
    bound: float
    check_bound: float
    check_error: float
    status: Status
    message: str
    n_draws: int
    n_evaluations: int
    n_objective_evaluations: int
    seconds: float
    history: History = field(repr=False)
    settings: dict[str, Any] = field(repr=False)  # draws, seed, family, method, tolerance, versions
    optima: tuple[Optimum, ...] = field(default=(), repr=False)
    log_ratios: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)  # log p − log q at check draws
    remarks: tuple[str, ...] = field(default=(), repr=False)  # what a person should know besides
    collapsed: Collapsed | None = field(default=None, repr=False)  # weighed instead, where all at once are too many
    # Beyond the check: whom to ask, or what was seen.
    outlook: Lookout | Further | None = field(default=None, repr=False)
    origin: Origin | None = field(default=None, repr=False)  # None after loading; `attach` restores it
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, init=False)  # what was worked out about it

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the log density, which may be a closure over the data; as with `save`."""
        kept = {name: value for name, value in self.settled.__dict__.items() if name != "model"}
        return {**kept, "origin": None, "_kept": {}}

    @property
    def settled(self) -> "Fit":
        """The same fit with all that there is to be seen of its target, whom nobody needs to ask any more."""
        if not isinstance(self.outlook, Lookout):
            return self
        seen = {"log_ratios": self.weighed_ratios, "outlook": self.further, "remarks": self.all_remarks}
        return replace(self, **seen)

    @property
    def up_to_constant(self) -> bool:  # pyright: ignore
        """The log density leaves constants out: bounds are up to a constant, and there is no evidence."""
        return bool(self.settings.get("up_to_constant"))

    @cached_property
    def model(self) -> Model | None:
        """The model that was fitted, with its own names, dims and predictions; None after loading, until `attach`."""
        problem = None if self.origin is None else self.origin.problem
        if problem is None or problem.model is None or problem.model.with_data is None:
            return None if problem is None else problem.model
        return problem.model.with_data(
            problem.data if problem.target.terms is None else problem.target.given(problem.data)
        )

    @property
    def converged(self) -> bool:
        """The bound is at its highest on these draws."""
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float:
        """How optimistic the bound is: its excess over the unbiased check bound, in nats."""
        return self.bound - self.check_bound

    @property
    def n_rounds(self) -> int:
        """Outer passes recorded in `history`."""
        return len(self.history)

    @property
    def covariance(self) -> np.ndarray:
        """Of the raveled vector on the real line."""
        return self.posterior.covariance

    @cached_property
    def _natural_moments(self) -> tuple[Parameters, Parameters]:
        return natural_moments(self.posterior, self.space)

    @property
    def mean(self) -> Parameters:
        """Posterior mean in natural units, shaped like `start`."""
        return self._natural_moments[0]

    @property
    def sd(self) -> Parameters:
        """Posterior standard deviation in natural units, shaped like `start`."""
        return self._natural_moments[1]

    @cached_property
    def weights(self) -> Weights:  # pyright: ignore
        """Importance weights of the check draws, from the posterior to the target; of a collapsed fit, its outer draws."""
        return weigh_ratios(self.weighed_ratios if self.collapsed is None else self.collapsed.log_ratios)

    @property
    def weighed_ratios(self) -> np.ndarray:
        """log p − log q at check draws: those of the check, and more where it takes more to weigh them."""
        return self.outlook.ratios if isinstance(self.outlook, Lookout) else self.log_ratios

    @property
    def n_weighed(self) -> int:
        """Parameters that the weights are about."""
        return self.posterior.dim if self.collapsed is None else self.collapsed.n_outer

    @cached_property
    def check_draws(self) -> np.ndarray:
        """The check draws behind `weighed_ratios`, made again."""
        return check_draws_of(self.posterior.dim, self.settings["seed"]).first(len(self.weighed_ratios))

    @cached_property
    def departures(self) -> list[Departure]:
        """Parameters whose moments the weights of the check draws, or of draws further out, change clearly, the worst first."""
        if self.collapsed is not None:
            if hopeless(self.weights):
                return []
            # The noise is that of the outer draws alone.
            _, shift, ratio, shift_error, ratio_error, among = self.collapsed
            errors, uneven = (shift_error, ratio_error), miss_a_part(self.weights)
            return clear_ones(self.space.coordinate_names(), shift, ratio, *errors, among, uneven=uneven)
        own: list[Departure] = []
        if self._reweighted is not None:
            own = departures(self.space, self.mean, self.sd, self._reweighted, self.weights)
        return own if self.further is None else worst_of_each([*own, *self.further.departures])

    @property
    def further(self) -> Further | None:
        """What the target is like beyond the check draws, where it can be looked at."""
        if self.collapsed is not None:
            return None
        return self.outlook.further if isinstance(self.outlook, Lookout) else self.outlook

    @property
    def all_remarks(self) -> tuple[str, ...]:
        """What a person should know besides, with where the log density is not finite."""
        region = self.outlook.region if isinstance(self.outlook, Lookout) else ""
        return (region, *self.remarks) if region else self.remarks

    @property
    def moved(self) -> Moved:
        """The furthest that the weights of the check draws move any parameter."""
        if self.collapsed is not None and not hopeless(self.weights):
            return furthest(self.collapsed.shift, self.collapsed.ratio)
        return Moved(np.inf, np.inf) if self._reweighted is None else moved(self.mean, self.sd, self._reweighted)

    @cached_property
    def _reweighted(self) -> Reweighted | None:
        foreign = any(isinstance(leaf.transform, Foreign) for leaf in self.space.leaves)  # known to its model alone
        if (
            self.collapsed is not None
            or not len(self.log_ratios)
            or hopeless(self.weights)
            or (foreign and self.space.joint is None)
        ):
            return None
        samples = self.posterior.transform(self.check_draws)
        return reweight(self.space, self.mean, self.sd, samples, self.weights.weights)

    @cached_property
    def drift(self) -> Drift | None:
        """How far the fit is from the best Gaussian of its family; None for what is none, and without check draws."""
        if (
            self.collapsed is not None
            or len(self.log_ratios) < 2
            or not self.posterior.member.affine
            or not np.isfinite(self.check_bound)
        ):
            return None
        return drift(self.posterior, self.space.coordinate_names(), self.weighed_ratios, self.check_draws)

    @cached_property
    def response(self) -> Response | None:
        """The parameter of which check draws say that the target is wider, as at a funnel; None where it can be along none.

        Groups that were integrated over have let their weights see that already.
        """
        if self.collapsed is not None or not np.isfinite(self.check_bound) or self.posterior.dim > MOST_RESPONDING:
            return None
        axes = self.posterior.scale / np.linalg.norm(self.posterior.scale, axis=1, keepdims=True)
        return widest(self.space.coordinate_names(), axes, self.check_draws, self.weighed_ratios)

    @property
    def overfits(self) -> bool:
        """The fit follows its draws instead of the target: more draws are needed."""
        limit = OVERFIT_PER_COORDINATE * self.posterior.dim
        # So far below, the check is ruled by a few draws, and its error is as large as itself.
        return bool(self.gap - 2.0 * self.check_error > limit or self.gap > _HOPELESS * limit)

    @property
    def draws_suffice(self) -> bool:
        """Other draws would not better the posterior by more than the tolerance, nor clearly move a mean or an sd."""
        return self.shortfall <= self.settings["tolerance"] and not (self.drift is not None and self.drift.clear)

    @property
    def shortfall(self) -> float:
        """Nats that the posterior is below the best of its family, on account of its draws; NaN where not known."""
        return self.history[-1].shortfall if self.history else float("nan")

    @property
    def finite(self) -> bool:
        """The log density was a number wherever it was looked at: at the check draws, and further out."""
        undefined = any(remark.startswith((NAN_FURTHER_OUT, INFINITE_FURTHER_OUT)) for remark in self.all_remarks)
        return bool(np.isfinite(self.weighed_ratios).all()) and not undefined

    @property
    def answer(self) -> Answer:
        """What of the posterior to trust, and why: from the check draws, or by the last diagnosis."""
        return self.checked if self.diagnosis is None else self.diagnosis.answer

    @property
    def checked(self) -> Answer:
        """The same by the check draws alone, whatever a diagnosis has found."""
        return answer(Facts(self, self.weights, self.departures, self.moved, self.drift))

    @property
    def verdict(self) -> str:
        """In words a person can act on: the answer first, then draws and optimiser. After a diagnosis, what it found."""
        if self.diagnosis is not None:
            return self.diagnosis.verdict
        parts = (str(self.answer), self.message, on_draws(self), on_optima(self), *self.all_remarks)
        return " ".join(part for part in parts if part)

    def sample(self, n: int, seed: int = 0) -> Parameters:
        """Samples in natural units: a pytree like `start` with a leading axis of length n.

        Of a model from a front end, all that it names, deterministics included: what its own sampler would give.
        """
        return self.natural(self.posterior.sample(whole_number("n", n, 1), seed), seed)

    def natural(self, vectors: np.ndarray, seed: int = 0) -> Parameters:
        """Rows on the real line as `sample` gives them; the seed is for what the model itself draws at random."""
        vectors = real_array("vectors", vectors)
        if vectors.ndim != 2 or vectors.shape[1] != self.posterior.dim:
            raise ValueError(f"vectors has shape {vectors.shape}; give (n, {self.posterior.dim}), on the real line.")
        seed = seed_number("seed", seed)
        if self.model is None or self.model.values is None:
            return to_natural(self.space, vectors)
        return self.model.values(self.space.unravel_rows(vectors), seed)

    def predict(self, n: int = 1000, seed: int = 0) -> dict[str, np.ndarray]:
        """Replicated data under the posterior: arrays by name with a leading axis of length n.

        Raises
        ------
        ValueError
            When the model has no way to predict.
        """
        if self.origin is None:
            raise ValueError(
                "fit: a loaded fit does not know its model; give it back with fit = fit.attach(model), where model is "
                "what was fitted (quenched.from_numpyro(...), ...)."
            )
        if self.model is None or self.model.predict is None:
            raise ValueError(
                "fit.predict: a log density does not say how data arise; put fit.sample(n) into a simulator of your own, "
                "or fit a model that does (quenched.from_numpyro, quenched.from_pymc, quenched.from_stan)."
            )
        return self.model.predict(self.sample(n, seed), seed_number("seed", seed))

    def of(self, function: Callable[[Parameters], Any], n: int = 4000, seed: int = 0) -> Derived:
        """Mean, sd and quantiles of any function of the parameters, under the fitted posterior.

        Parameters
        ----------
        function
            In JAX, of the parameters in natural units; returns a number, an array or a pytree of them.
        n
            Samples by which they are taken.
        seed
            Of the samples.
        """
        n = whole_number("n", n, 100)
        _ = self._natural_moments  # which the function may ask for, and which cannot be worked out while it is traced
        if self.model is not None and self.model.values is not None:  # it may draw at random: all at once
            return derived(function, [self.sample(n, seed)])
        return derived(function, map(self.natural, self.posterior.samples_in_turn(n, seed)))

    def table(self):
        """The summary as a pandas DataFrame: one row per number, with means, sds, quantiles and errors."""
        return self.summary().to_frame()

    def nuts_start(self):
        """Where a Markov chain may begin, and the mass matrix to begin with (see `quenched.export.nuts_start`)."""
        from quenched.export import nuts_start

        return nuts_start(self)

    def resample(self, n: int, seed: int = 0) -> Parameters:
        """Samples moved from the fitted posterior to the target by Pareto-smoothed importance resampling."""
        from quenched.diagnostics import resample

        return resample(self, n, seed)

    def diagnose(self, **options: Any) -> "Diagnosis":
        """The errors of the optimisation, the draws and the family (see `quenched.diagnostics.diagnose`).

        It takes a few times the gradients of the fit. It is kept; without options it is done only once.
        """
        from quenched.diagnostics import diagnose

        if options or self.diagnosis is None:
            self._kept["diagnosis"] = diagnose(self, **options)
        return self._kept["diagnosis"]

    @property
    def diagnosis(self) -> "Diagnosis | None":
        """The last diagnosis, if there was one."""
        return self._kept.get("diagnosis")

    def attach(self, log_density: Any, data: Any = None) -> "Fit":
        """This fit with its log density and data, which a loaded fit has lost."""
        from quenched.results.attachment import attach

        return attach(self, log_density, data)

    def summary(self) -> "Summary":
        """Mean, sd and the error of each, one row per number in natural units; prints as a table with the verdict.

        It diagnoses the fit, once; one with thousands of parameters only where `diagnose` has been called, since that may
        take longer than the fit. A loaded fit without its log density has no errors to show.
        """
        from quenched.results.summary import Summary

        known = self.origin is not None and np.isfinite(self.bound)
        if known and self.posterior.dim <= _DIAGNOSED_UNASKED:
            self.diagnose()
        return Summary(self, self.diagnosis)

    def __str__(self) -> str:
        from quenched.results.summary import render

        return render(self, self.diagnosis)

    def _repr_html_(self) -> str:
        from quenched.report import fit_html

        return fit_html(self)

    def save(self, path: str | Path) -> Path:
        """Write to an `.npz` file of plain arrays and JSON; `quenched.load` reads it."""
        from quenched.results.storage import save

        return save(self, path)

    def plot(self, path: str | Path | None = None):
        """Figure of the monitor and the marginal posteriors; saved when `path` is given."""
        from quenched.plots import plot_fit

        return plot_fit(self, path)

    def to_arviz(self, n: int = 1000, seed: int = 0):
        """Samples in natural units as ArviZ data."""
        from quenched.export import to_arviz

        return to_arviz(self, n, seed)
