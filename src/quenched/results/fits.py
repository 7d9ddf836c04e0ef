"""`Fits`: many fits of one log density, each with its own outcome, kept as arrays with the problems along the first axis."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.families import Member
from quenched.objective import Batch
from quenched.posterior import Posterior, natural_moments_of_many
from quenched.precision import in_double
from quenched.results.fit import Fit, Origin
from quenched.results.outcome import History, Optimum, Round, Status
from quenched.targets import Hyper
from quenched.text import shown
from quenched.transforms import Parameters, Space
from quenched.trust import Further, Lookout

_PRECISIONS = ("prior_precision", "noise_precision")
COUNTED = ("bound", "check_bound", "check_error", "n_draws", "n_evaluations", "n_objective_evaluations")
_COLUMNS = (*COUNTED, "status")  # arrays with a number for each fit
_FEW = 100  # fits whose targets are all looked at before they are saved
_NAMED = 8  # problems that the summary names
_FAILED = (Status.NOT_FINITE, Status.NO_ASCENT)


class Seen(NamedTuple):
    """What there was to be seen of the target of one fit, when someone asked."""

    further: Further | None
    remarks: tuple[str, ...]


class Origins(NamedTuple):
    """What many fits were made from."""

    batch: Batch
    hyper: Hyper  # as the engine holds them, in rows
    draws: Any  # the first set

    def one(self, index: int, n_draws: int) -> Origin:
        """Of one of them, with the draws that it ended with."""
        hyper = jax.tree.map(lambda leaf: leaf[index], self.hyper)
        return Origin(self.batch.one(index), hyper, self.draws.grow(n_draws))

    def some(self, places: np.ndarray) -> "Origins":
        """Of some of them."""
        return Origins(self.batch.some(places), jax.tree.map(lambda leaf: leaf[places], self.hyper), self.draws)


@dataclass(frozen=True, eq=False)
class Fits:
    """Many fits. `fits[i]` is a `Fit`; a slice, a list or a mask of them are `Fits` again.

    Attributes
    ----------
    member
        The Gaussians, their arrays stacked.
    hyper
        Learned hyperparameters, stacked; None if there are none.
    bound, check_bound, check_error
        In nats, one each.
    status
        One `Status` each; `fits.status == "converged"` is a mask.
    message
        What happened, in words.
    seconds
        For all together.
    rounds
        Array (problem, round, field of `Round`), NaN where a fit needed no such round.
    settings
        What all were fitted with.
    optima
        Of the few problems where several starts were tried.

    Examples
    --------
    >>> fits = qd.fit_many(lambda w, y: -0.5 * jnp.sum((y - w) ** 2), 0.0, np.array([[1.0, 3.0], [5.0, 7.0]]))
    >>> len(fits), fits.mean.round(3), bool(fits.converged.all())
    (2, array([2., 6.]), True)
    >>> float(fits[1].mean.round(3))
    6.0
    >>> sorted(fits.table())[:3], "2 of 2 fits converged" in fits.summary()
    (['bound', 'check_bound', 'check_error'], True)
    >>> len(qd.Fits.joined([fits, fits])) == 2 * len(fits)
    True
    """

    member: Member = field(repr=False)
    space: Space = field(repr=False)
    hyper: Any = field(repr=False)
    bound: np.ndarray
    check_bound: np.ndarray = field(repr=False)
    check_error: np.ndarray = field(repr=False)
    status: np.ndarray = field(repr=False)
    message: tuple[str, ...] = field(repr=False)
    n_draws: np.ndarray = field(repr=False)
    n_evaluations: np.ndarray = field(repr=False)
    n_objective_evaluations: np.ndarray = field(repr=False)
    seconds: float
    rounds: np.ndarray = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    optima: dict[int, tuple[Optimum, ...]] = field(repr=False, default_factory=dict)
    log_ratios: np.ndarray | None = field(repr=False, default=None)  # of objects: as in `Fit`
    seen: dict[int, Seen] = field(repr=False, default_factory=dict)  # of those that were asked about, once settled
    origin: Origins | None = field(repr=False, default=None)  # None after loading
    _lookouts: dict[int, Lookout] = field(default_factory=dict, repr=False, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the log density and the data."""
        return {**self.settled.__dict__, "origin": None}

    @property
    def settled(self) -> "Fits":
        """The same fits, with what those who asked about some of them have seen; the others have what their checks saw.

        Of a few, everything is asked: of many it would take as long as the fits.
        """
        of_all = len(self) <= _FEW and self.origin is not None and self.log_ratios is not None
        wanted = range(len(self)) if of_all else [index for index, one in self._lookouts.items() if one.asked]
        asked = {index: self._one(index).settled for index in wanted if index not in self.seen}
        if not asked:
            return self
        ratios = self.log_ratios.copy()  # pyright: ignore
        for index, fit in asked.items():
            ratios[index] = fit.log_ratios
        seen = {index: Seen(fit.further, fit.remarks) for index, fit in asked.items()}
        return replace(self, log_ratios=ratios, seen={**self.seen, **seen})

    def __len__(self) -> int:
        return len(self.bound)

    def __iter__(self) -> Iterator[Fit]:
        return (self._one(index) for index in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(f"index {shown(key)}: there are {len(self)} fits.")
            return self._one(int(key) % len(self))
        try:
            places = np.arange(len(self))[key]
        except Exception as error:  # of whatever it is, when it is looked at
            raise IndexError(f"index {shown(key)}: there are {len(self)} fits; {error}") from error
        if places.ndim != 1:
            raise IndexError(f"index {shown(key)}: give a whole number, a slice, a list of numbers or a mask.")
        return self._some(places)

    def _one(self, index: int) -> Fit:
        rounds = self.rounds[index]
        rounds = rounds[~np.isnan(rounds[:, 0])].tolist()
        n_draws = int(self.n_draws[index])
        posterior = Posterior(jax.tree.map(lambda leaf: leaf[index], self.member), self.space)
        return Fit(
            posterior=posterior,
            space=self.space,
            hyper=_hyper_of_one(self.hyper, index),
            bound=float(self.bound[index]),
            check_bound=float(self.check_bound[index]),
            check_error=float(self.check_error[index]),
            status=self.status[index],
            message=self.message[index],
            n_draws=n_draws,
            n_evaluations=int(self.n_evaluations[index]),
            n_objective_evaluations=int(self.n_objective_evaluations[index]),
            seconds=self.seconds / len(self),  # its share
            history=History(Round(int(row[0]), row[1], row[2], row[3], int(row[4]), row[5]) for row in rounds),
            settings=self.settings,
            optima=self.optima.get(index, ()),
            log_ratios=np.zeros(0) if self.log_ratios is None else self.log_ratios[index],
            origin=None if self.origin is None else self.origin.one(index, n_draws),
            **self._outlook(index, posterior),
        )

    def _outlook(self, index: int, posterior: Posterior) -> dict[str, Any]:
        """What was seen of the target of one, or whom to ask."""
        if index in self.seen:
            return {"outlook": self.seen[index].further, "remarks": self.seen[index].remarks}
        if index not in self._lookouts:
            lookout = self._lookout(index, posterior)
            if lookout is None:
                return {}
            self._lookouts[index] = lookout
        return {"outlook": self._lookouts[index]}

    def _lookout(self, index: int, posterior: Posterior) -> Lookout | None:
        """Whom to ask about the target of a fit that has ended, where anyone can be asked."""
        failed = self.status[index] in _FAILED
        ended = failed or self.status[index] in (Status.CONVERGED, Status.GIVEN)
        if self.origin is None or self.log_ratios is None or not ended or not np.isfinite(self.bound[index]):
            return None
        problem, hyper = self.origin.batch.one(index), jax.tree.map(lambda leaf: leaf[index], self.origin.hyper)
        known, seed, work = self.log_ratios[index], self.settings["seed"], int(self.n_evaluations[index])
        return Lookout(problem, posterior, hyper, known, seed, self.settings.get("check") is None, failed, work)

    def _some(self, places: np.ndarray) -> "Fits":
        rows = lambda tree: jax.tree.map(lambda leaf: leaf[places], tree)
        known = self.settled
        return replace(
            self,
            member=rows(self.member),
            hyper=rows(self.hyper),
            **{name: getattr(self, name)[places] for name in _COLUMNS},
            message=tuple(self.message[place] for place in places),
            seconds=self.seconds * len(places) / max(len(self), 1),
            rounds=self.rounds[places],
            log_ratios=None if known.log_ratios is None else known.log_ratios[places],
            seen={new: known.seen[old] for new, old in enumerate(places.tolist()) if old in known.seen},
            optima={new: self.optima[old] for new, old in enumerate(places.tolist()) if old in self.optima},
            origin=None if self.origin is None else self.origin.some(places),
        )

    @staticmethod
    def joined(parts: "Sequence[Fits]") -> "Fits":
        """The fits of several calls of `fit_many`, or of files, one after the other: for jobs that each did a part.

        Raises
        ------
        ValueError
            When they are not of one kind: other parameters, another family, other draws.
        """
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Fits) for part in parts):
            raise ValueError(f"parts={shown(parts)}: give a list of Fits.")
        if not parts:
            raise ValueError("parts: there are none; give a list of Fits.")
        parts = [part.settled for part in parts]
        first = parts[0]
        for place, other in enumerate(parts):
            if _kind(other) != _kind(first):
                raise ValueError(
                    f"parts: the one at place {place} is of another kind: {_kind(other)}, not {_kind(first)}."
                )
        deepest = max(part.rounds.shape[1] for part in parts)
        deep = lambda rounds: np.pad(rounds, ((0, 0), (0, deepest - rounds.shape[1]), (0, 0)), constant_values=np.nan)
        begins = np.cumsum([0, *map(len, parts)]).tolist()
        together = lambda name: np.concatenate([getattr(part, name) for part in parts])
        ratios = [part.log_ratios for part in parts if part.log_ratios is not None]
        stacked = lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])
        renumbered = lambda name: {
            begin + index: one
            for begin, part in zip(begins, parts, strict=False)
            for index, one in getattr(part, name).items()
        }
        return replace(
            first,
            member=jax.tree.map(stacked, *(part.member for part in parts)),
            hyper=jax.tree.map(stacked, *(part.hyper for part in parts)),
            **{name: together(name) for name in _COLUMNS},
            message=tuple(word for part in parts for word in part.message),
            seconds=sum(part.seconds for part in parts),
            rounds=np.concatenate([deep(part.rounds) for part in parts]),
            optima=renumbered("optima"),
            seen=renumbered("seen"),
            log_ratios=np.concatenate(ratios) if len(ratios) == len(parts) else None,
            origin=None,
        )

    @property
    def converged(self) -> np.ndarray:
        """Mask of the fits whose bound is at its highest on their draws."""
        return self.status == Status.CONVERGED

    @property
    def gap(self) -> np.ndarray:
        """How optimistic each bound is, in nats."""
        with np.errstate(invalid="ignore"):
            return self.bound - self.check_bound

    @property
    def draws_suffice(self) -> np.ndarray:
        """Mask of the fits that other draws would not better by more than the tolerance."""
        return self.shortfall <= self.settings["tolerance"]

    @property
    def shortfall(self) -> np.ndarray:
        """Nats that each posterior is below the best of its family, on account of its draws; NaN where not known."""
        last = np.maximum(np.sum(~np.isnan(self.rounds[..., 0]), axis=1) - 1, 0)
        return self.rounds[np.arange(len(self)), last, -1] if self.rounds.shape[1] else np.full(len(self), np.nan)

    @property
    def failed(self) -> np.ndarray:
        """Mask of the fits whose numbers went wrong: their posteriors mean nothing."""
        return (self.status == Status.NOT_FINITE) | (self.status == Status.NO_ASCENT)

    @cached_property
    def _natural_moments(self) -> tuple[Parameters, Parameters]:
        return natural_moments_of_many(self.member, self.space)

    @property
    def mean(self) -> Parameters:
        """Posterior means in natural units: a pytree like `start` with the problems along the first axis."""
        return self._natural_moments[0]

    @property
    def sd(self) -> Parameters:
        """Posterior standard deviations in natural units, likewise."""
        return self._natural_moments[1]

    @property
    def covariance(self) -> np.ndarray:
        """Of the raveled vectors on the real line, (problem, dim, dim)."""
        with in_double():
            return np.asarray(jax.vmap(lambda member: member.covariance)(self.member))

    def table(self) -> dict[str, np.ndarray]:
        """Columns of equal length, one row per problem: `pandas.DataFrame(fits.table())` is a data frame."""
        columns: dict[str, np.ndarray] = {"status": np.array([str(status) for status in self.status])}
        for name in ("bound", "check_bound", "check_error", "gap", "n_draws", "n_evaluations"):
            columns[name] = getattr(self, name)
        for leaf, mean, sd in zip(self.space.leaves, jax.tree.leaves(self.mean), jax.tree.leaves(self.sd), strict=True):
            for name, index in leaf.entries(leaf.shape):
                columns[f"{name}.mean"], columns[f"{name}.sd"] = mean[:, *index], sd[:, *index]
        return columns

    @property
    def verdict(self) -> str:
        """In words a person can act on."""
        n, good = len(self), self.converged
        words = [f"{int(good.sum())} of {n} fits converged."]
        words.append(f"The draws suffice for {int((good & self.draws_suffice).sum())} of them.")
        for status, count in Counter(self.status[~good].tolist()).items():
            which = np.flatnonzero(self.status == status)
            named = ", ".join(map(str, which[:_NAMED])) + (", ..." if len(which) > _NAMED else "")
            words.append(f"{count} {status} (problem {named}): {self.message[which[0]]}")
        return " ".join(words)

    def summary(self) -> str:
        """The counts, the work, and the spread of the bounds."""
        gaps = abs(self.gap[self.converged & np.isfinite(self.gap)])
        lines = [
            self.verdict,
            "",
            f"largest gap  {gaps.max():.4f} nats (tolerance {self.settings['tolerance']:.2g})" if gaps.size else "",
            f"draws        {_counted(self.n_draws)} {self.settings['draws']}",
            f"work         {int(self.n_evaluations.sum())} gradient evaluations, {self.seconds:.2f} s",
        ]
        return "\n".join(line for index, line in enumerate(lines) if line or index == 1)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from quenched.report import fits_html

        return fits_html(self)

    def save(self, path: str | Path) -> Path:
        """Write to an `.npz` file of plain arrays and JSON; `quenched.load` reads it."""
        from quenched.results.storage import save

        return save(self, path)


def _kind(fits: Fits) -> tuple:
    names = ("family", "draws", "draws_seed", "seed", "tolerance", "method")
    leaves = [(leaf.name, leaf.shape, leaf.transform.describe()) for leaf in fits.space.leaves]
    return leaves, {name: fits.settings[name] for name in names}


def _hyper_of_one(hyper: Any, index: int) -> Any:
    """Those of one fit: arrays, but for the precisions, which are numbers."""
    own = jax.tree.map(lambda leaf: np.asarray(leaf[index]), hyper)
    if not isinstance(own, dict):
        return own
    return {name: float(value) if name in _PRECISIONS and value.ndim == 0 else value for name, value in own.items()}


def _counted(numbers: np.ndarray) -> str:
    values, counts = np.unique(numbers, return_counts=True)
    return ", ".join(f"{value} ({count} fits)" for value, count in zip(values, counts, strict=True))
