"""Variational Newton: the best Gaussian for a sum of terms, by its mean and its sparse precision.

On frozen points the bound is highest where Λ = Λ*(m, Λ), the expected curvature of the sum, and the expected gradient g is
zero. The step

    Λ ← (1 − ρ) Λ + ρ Λ*,   m ← m + ρ Λ⁻¹ g

with ρ = 1 is Newton's, with ρ small it is natural-gradient ascent, which raises the bound whatever the target: so ρ is halved
until the bound rises and the precision is positive definite. Where the steps become alike, as they do along precisions of
effects that are learned, they are extrapolated (Anderson 1965), and what is extrapolated is taken only if it is better.

Hyperparameters h take Newton steps on the bound at its top over (m, Λ), of which a change of h moves the mean by Λ⁻¹ ∂g/∂h and
the precision by ∂Λ*/∂h: its second derivatives are

    ∂²E/∂h² + (∂g/∂h)ᵀ Λ⁻¹ ∂g/∂h + ½ tr(∂Λ*/∂h Σ ∂Λ*/∂h Σ),

the trace felt by a few random vectors. Mean and precision are moved along, so that learning h takes hardly more rounds.

Rates c at which coordinates are stretched (`families.stretched`) take steps P⁻¹ ∂E/∂c. Under a Gaussian of precision Λ the bound
falls by ½ cᵀPc, to second order, with P = I + ½ Λ∘Σ∘Σ / (s sᵀ) for sds s: it has the pattern of the model and is positive
definite as a Schur product is. Means and precisions do not meet c there, so all three are moved at once.
"""

from collections import deque
from functools import cached_property
from typing import NamedTuple

import numpy as np

from quenched.draws import Purpose, generator
from quenched.families import Factor, Pattern, SparseGaussian, StretchedGaussian, factor, keep_factor
from quenched.fitting.ascent import Watch
from quenched.projected import Expected, FreeChanges, ProjectedBound
from quenched.results import Code
from quenched.targets import Hyper

_SMALLEST = 2.0**-14  # share of a step
_MEMORY = 5  # steps that are extrapolated
_FURTHEST = 3.0  # that extrapolation goes beyond a step, in units of posterior sds and precisions
_LARGEST = 1.0  # change of a hyperparameter in one step
_MOST_SKEWED = 0.2  # change of a rate in one step
_FAR = 0.1  # change of a hyperparameter after which derivatives in it are taken again
_PROBES, _FEW_PROBES, _EXACT = 16, 8, 64
_MAX_ROUNDS = 300
# Posterior sds by which, at the end, a step may move a mean, and all steps to come by what the last ones had in common: along
# the log sd of effects a step was seen to go a hundredth of the way that is left.
_STILL, _STILL_TO_COME = 2e-4, 0.01
_NOTHING = 1e-8  # nats that are not worth another step, wherever it leads
_LONG = 50  # rounds after which an ascent whose steps overshoot may leave more; and that are left when means need not be still
_FLIGHT = 1e5  # times wider than it began: a posterior that runs away


class Stand(NamedTuple):
    """Where an ascent stands."""

    mean: np.ndarray
    values: np.ndarray
    free: np.ndarray
    skew: np.ndarray  # none for a Gaussian
    factor: Factor
    expected: Expected
    bound: float

    def member(self, pattern: Pattern) -> SparseGaussian | StretchedGaussian:
        """The posterior there."""
        gaussian = SparseGaussian(self.mean, self.values, pattern)
        keep_factor(self.values, self.factor)
        return StretchedGaussian(gaussian, self.skew) if len(self.skew) else gaussian  # pyright: ignore


class NewtonEnd(NamedTuple):
    """Where an ascent ended."""

    posterior: SparseGaussian | StretchedGaussian
    hyper: Hyper
    bound: float
    first: float  # bound where it began
    code: Code
    note: str
    n_bounds: int

    @property
    def rise(self) -> float:
        """Nats gained since."""
        return self.bound - self.first


class NewtonPoint(NamedTuple):
    """A posterior to be tried."""

    mean: np.ndarray
    values: np.ndarray
    free: np.ndarray
    skew: np.ndarray = np.zeros(0)
    factor: Factor | None = None  # of the precision, where it is known


def point_of(posterior: SparseGaussian | StretchedGaussian, hyper: Hyper) -> NewtonPoint:
    """A posterior that is there."""
    mean, values, free, skew = map(np.asarray, (posterior.mean, posterior.values, hyper.free, posterior.skew))
    return NewtonPoint(mean, values, free, skew)


def stand_at(bound: ProjectedBound, point: NewtonPoint) -> Stand | None:
    """The bound at a posterior; None where there is none: the precision is not positive definite, or numbers go wrong."""
    mean, values, free, skew, found = point
    found = factor(bound.pattern, values) if found is None else found
    if found is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        expected = bound.expected(mean, found, free, skew)
    if not expected.finite:
        return None
    return Stand(mean, values, free, skew, found, expected, bound.bound(expected, found))


def nats_left(bound: ProjectedBound, at: Stand, random: np.random.Generator) -> float:
    """Nats to be gained, by half the squared gradient in whitened coordinates: ½ gᵀΣg + ¼ tr(ΣΔΣΔ), Δ = Λ* − Λ.

    The trace is estimated by a few random vectors where parameters are many. What rates have to gain is added.
    """
    dim = bound.pattern.dim
    z = np.sqrt(dim) * np.eye(dim) if dim <= _EXACT else random.choice([-1.0, 1.0], (dim, _FEW_PROBES))
    mean = 0.5 * float(at.expected.gradient @ at.factor.solve(at.expected.gradient))
    mean += 0.5 * float(at.expected.skew @ skew_step(bound, at)[0])
    seen = bound.pattern.multiply(at.expected.precision - at.values, at.factor.spread(z))
    return mean + 0.25 * float(np.sum(seen * at.factor.solve(seen))) / z.shape[1]


def skew_step(bound: ProjectedBound, at: Stand) -> tuple[np.ndarray, np.ndarray]:
    """P⁻¹ ∂E/∂c, and the diagonal of P."""
    if not len(at.skew):
        return at.skew, at.skew
    pattern, may = bound.pattern, bound.structure.may_skew
    (i, j), places, inverse = pattern.entries, pattern.entry_places, at.factor.inverse
    spread, values = np.sqrt(at.factor.variances), np.zeros(pattern.size)
    values[places] = 0.5 * (may[i] & may[j]) * at.values[places] * inverse[places] ** 2 / (spread[i] * spread[j])
    values[pattern.diagonal] += 1.0
    found = factor(pattern, values)
    diagonal = values[pattern.diagonal]
    # Positive definite but for rounding.
    return at.expected.skew / diagonal if found is None else found.solve(at.expected.skew), diagonal


class NewtonAscent:
    """Newton steps from one posterior."""

    def __init__(self, bound: ProjectedBound, at: Stand):
        self.bound, self.at = bound, at
        self.rho, self.begun = 1.0, False
        self.last: tuple[np.ndarray, np.ndarray] | None = None  # where the last step began, and the whole of it
        self.past: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=_MEMORY - 1)  # changes of both
        self.products = np.zeros((0, 0))  # of the changes of steps with each other
        self.ready: tuple[Stand, Expected] | None = None  # what the next step is made of, and where it begins
        self.free_changes: FreeChanges | None = None
        self.free_known_at = np.zeros(0)
        self.n_bounds, self.bent, self.units = 0, np.zeros(0), np.zeros(0)

    def step(self) -> tuple[float, bool]:
        """One round: the rise of the bound, and whether it was a whole step. No rise at all: none is possible."""
        before, moves = self.at, self._prepared()
        self.begun = True
        # While hyperparameters are far from where they belong, steps are not alike either.
        if self.past and np.max(np.abs(moves.free), initial=0.0) <= _FAR:
            if self._accept(self._extrapolated()):
                self.rho = min(1.0, 2.0 * self.rho)
                return self.at.bound - before.bound, True
            self.past.clear()  # it misled
            self.products = np.zeros((0, 0))
        while self.rho >= _SMALLEST:
            if self._accept(self._towards(self.rho, moves)):
                whole, self.rho = self.rho == 1.0, min(1.0, 2.0 * self.rho)
                return self.at.bound - before.bound, whole
            self.rho /= 2.0
        self.rho = 1.0
        return 0.0, False

    def _prepared(self) -> Expected:
        """The moves of the next step, which is remembered among the others."""
        if self.ready is None or self.ready[0] is not self.at:
            self.ready = self.at, self._moves()
            if self.begun:  # what begins anywhere is like no other step
                self._remember(self.ready[1])
        return self.ready[1]

    def still(self) -> bool:
        """Whether means are where they will be. Along log sds of effects, what steps have to gain says little of that.

        Rows that depend on one number each have no number that scales another.
        """
        if max(self.bound.structure.sizes, default=0) < 2:
            return True
        self._prepared()
        assert self.last is not None
        step, dim = self.last[1], self.bound.pattern.dim
        furthest = lambda move: float(np.max(np.abs(move / self.units)[:dim]))
        return furthest(step) < _STILL and furthest(step + self._beyond(1.0)) < _STILL_TO_COME

    def _accept(self, point: NewtonPoint | None) -> bool:
        if point is None:
            return False
        self.n_bounds += 1
        trial = stand_at(self.bound, point)
        if trial is None or not trial.bound > self.at.bound:
            return False
        self.at = trial
        return True

    def _towards(self, rho: float, moves: Expected) -> NewtonPoint | None:
        at = self.at
        values = (1.0 - rho) * at.values + rho * moves.precision
        found = factor(self.bound.pattern, values)
        if found is None and at.free.size:  # the hyperparameters alone would have it so
            values = (1.0 - rho) * at.values + rho * at.expected.precision
            found = factor(self.bound.pattern, values)
        if found is None:
            return None
        mean, skew = at.mean + rho * found.solve(moves.gradient), at.skew + rho * moves.skew
        return NewtonPoint(mean, values, at.free + rho * moves.free, skew, found)

    def _moves(self) -> Expected:
        """Gradient and precision where the hyperparameters will be, and their step; and that of the rates."""
        at = self.at
        along, self.bent = skew_step(self.bound, at)
        along = np.clip(along, -_MOST_SKEWED, _MOST_SKEWED)
        if not at.free.size:
            return at.expected._replace(skew=along)
        _, step = self._free_step()
        step, changes = step * min(1.0, _LARGEST / max(np.abs(step).max(), 1e-300)), self.free_changes
        assert changes is not None
        if np.max(np.abs(step)) > _FAR:  # derivatives do not reach as far: half a precision is not one taken off twice
            gradient, precision, _ = self.bound.moved(at.mean, at.factor, at.free, step, at.skew)
        else:
            gradient, precision = step @ changes.gradient, step @ changes.precision
        gradient, precision = at.expected.gradient + gradient, at.expected.precision + precision
        return Expected(at.expected.value, gradient, precision, step, along)

    def free_left(self) -> float:
        """Nats to be gained by the hyperparameters."""
        if not self.at.free.size:
            return 0.0
        slope, step = self._free_step()
        return 0.5 * float(slope @ step)

    def _free_step(self) -> tuple[np.ndarray, np.ndarray]:
        """The slope of the bound at its top over (m, Λ), and Newton's step there."""
        at = self.at
        if self.free_changes is None or np.max(np.abs(at.free - self.free_known_at)) > _FAR:
            self.free_changes = self.bound.free_changes(at.mean, at.factor, at.free, at.skew)
            self.free_known_at = at.free
        changes, pattern, factored = self.free_changes, self.bound.pattern, at.factor
        moved = factored.solve(changes.gradient.T)
        probes = factored.spread(self._probes)
        seen = [pattern.multiply(values, probes) for values in (*changes.precision, at.expected.precision - at.values)]
        solved = [factored.solve(one) for one in seen[:-1]]
        traces = 0.5 * np.array([[np.sum(one * other) for other in seen] for one in solved]) / probes.shape[1]
        slope = at.expected.free + moved.T @ at.expected.gradient + traces[:, -1]
        curvature = -(changes.free + changes.gradient @ moved + traces[:, :-1])
        sizes, directions = np.linalg.eigh(0.5 * (curvature + curvature.T))
        sizes = np.maximum(np.abs(sizes), 1e-8 * max(np.abs(sizes).max(), 1.0))
        return slope, directions @ ((directions.T @ slope) / sizes)

    @cached_property
    def _probes(self) -> np.ndarray:
        """Vectors by which a trace is felt: as many as make it exact, or few random ones.

        They are the same in every round: steps that differ by chance cannot be extrapolated.
        """
        dim = self.bound.pattern.dim
        if dim <= _EXACT:
            return np.sqrt(dim) * np.eye(dim)
        return generator(0, Purpose.PROBES).choice([-1.0, 1.0], (dim, _PROBES))

    # Extrapolation.

    def _remember(self, moves: Expected) -> None:
        """Where it stands, and the whole step from there; for the mean by the precision that is factored already."""
        at, entries, self.units = self.at, self.bound.pattern.entry_places, self._units()
        here = np.concatenate([at.mean, at.values[entries], at.free, at.skew])
        change = (moves.precision - at.values)[entries]
        step = np.concatenate([at.factor.solve(moves.gradient), change, moves.free, moves.skew])
        if self.last is not None:
            self.past.append((here - self.last[0], step - self.last[1]))
            new, kept = self._along(self.past[-1][1]), self.products[-(_MEMORY - 2) :, -(_MEMORY - 2) :]
            self.products = np.block([[kept, new[:-1, None]], [new[None, :]]])
        self.last = (here, step)

    def _along(self, step: np.ndarray) -> np.ndarray:
        """Products of a step with the changes of steps, in units."""
        scaled = step / self.units**2
        return np.array([change @ scaled for _, change in self.past])

    def _units(self) -> np.ndarray:
        """Posterior sds for the mean, the diagonal for the precision: what a step is measured in."""
        at, pattern = self.at, self.bound.pattern
        sds = np.sqrt(at.factor.variances)
        roots = np.sqrt(at.values[pattern.diagonal])
        i, j = pattern.entries
        return np.concatenate([sds, roots[i] * roots[j], np.ones(len(at.free)), self.bent**-0.5])

    def _beyond(self, share: float) -> np.ndarray:
        """What extrapolation adds to a share of the last step."""
        assert self.last is not None
        beyond = np.zeros_like(self.last[0])
        if self.past:
            weights = np.linalg.lstsq(self.products, self._along(self.last[1]), rcond=1e-10)[0]
            for weight, (moved, change) in zip(weights, self.past, strict=True):
                beyond -= weight * (moved + share * change)
        return beyond

    def _extrapolated(self) -> NewtonPoint | None:
        """Where the step would vanish, were it linear between the last ones, and from there the share of it that was taken."""
        assert self.last is not None
        pattern, (here, step) = self.bound.pattern, self.last
        beyond = self._beyond(self.rho)
        furthest = max(float(np.max(np.abs(beyond / self.units))), 1e-300)
        found = here + self.rho * step + beyond * min(1.0, _FURTHEST / furthest)
        if not np.isfinite(found).all():
            return None
        values, n = np.zeros(pattern.size), pattern.dim + len(pattern.entry_places)
        values[pattern.entry_places] = found[pattern.dim : n]
        free, skew = np.split(found[n:], [len(self.at.free)])
        return NewtonPoint(found[: pattern.dim], values, free, skew)


def variational_newton(
    bound: ProjectedBound,
    posterior: SparseGaussian | StretchedGaussian,
    hyper: Hyper,
    nats: float,
    watch: Watch,
    enough: float = 0.0,
    known: Stand | None = None,
) -> NewtonEnd:
    """Raise the bound until less than `nats` are to be gained; where steps overshoot for long, less than `enough`.

    `known` is what has been found at a posterior before, perhaps at this one.
    """
    point = point_of(posterior, hyper)
    same = known is not None and all(map(np.array_equal, known[:4], point[:4]))
    at = known if same else stand_at(bound, point)
    if at is None:
        return NewtonEnd(posterior, hyper, -np.inf, -np.inf, Code.NOT_FINITE, "", 1)
    ascent, first, code, note = NewtonAscent(bound, at), at.bound, Code.MAX_EVALUATIONS, ""
    last, widest = np.inf, 1.0 + np.max(at.mean**2) + np.max(at.factor.variances)
    random = generator(0, Purpose.PROBES)
    for turn in range(_MAX_ROUNDS):
        try:
            if watch(ascent.at.bound, bound.draws.n) is not None:
                code = Code.MAX_SECONDS
                break
            rise, whole = ascent.step()
        except KeyboardInterrupt:
            code = Code.INTERRUPTED
            break
        if rise == 0.0:
            left = nats_left(bound, ascent.at, random)
            rounding = 1e-9 * max(1.0, abs(ascent.at.bound))
            code = Code.CONVERGED if left <= max(nats, rounding) else Code.NO_ASCENT
            note = "" if code is Code.CONVERGED else _flat(bound, ascent.at)
            break
        if np.max(ascent.at.factor.variances) > _FLIGHT**2 * widest:
            code = Code.NO_ASCENT  # the bound rises for ever: the message says along what
            break
        # Steps that shrink by a factor leave as much again as a geometric series of them.
        shrinks = min(rise / last, 0.9) if last < np.inf else 0.9
        limit = nats if whole or turn < _LONG else max(nats, enough)
        little = rise / (1.0 - shrinks) < limit if whole else rise < limit
        left = nats_left(bound, ascent.at, random) + ascent.free_left() if little else np.inf
        late = turn >= _MAX_ROUNDS - _LONG
        if left < limit and (late or left < _NOTHING or ascent.still()):
            code = Code.CONVERGED
            break
        last = rise
    end = ascent.at
    return NewtonEnd(
        end.member(bound.pattern), hyper._replace(free=end.free), end.bound, first, code, note, ascent.n_bounds + 1
    )


def _flat(bound: ProjectedBound, at: Stand) -> str:
    """Names of the parameters along which the sum is flat, if that is what stops an ascent."""
    curved = at.expected.precision[bound.pattern.diagonal]
    names = bound.problem.space.coordinate_names()
    wrong = np.flatnonzero(~(curved > 0.0))
    if not len(wrong):
        return ""
    shown = ", ".join(names[place] for place in wrong[:3])
    return f"The expected curvature is not positive for {shown}: is a prior missing there?"
