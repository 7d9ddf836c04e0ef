"""What a fit is asked about its target after it has ended: looked at when someone wants to know, and then kept.

A fit needs its check bound to know whether its draws suffice. What of the answer to trust takes more values of the log density
than that, no gradients, and nobody who goes on to the next fit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quenched.draws import check_draws_of
from quenched.execute import Here
from quenched.forks import is_forked
from quenched.interrupts import interrupts_afterwards
from quenched.objective import Problem, log_ratios
from quenched.posterior import Posterior
from quenched.precision import in_double
from quenched.targets import Hyper
from quenched.threads import quiet_blas
from quenched.trust.further import Further, look_further
from quenched.trust.region import NOT_LOOKED_AT, tell_region
from quenched.trust.response import draws_wanted
from quenched.trust.weights import uneven

EVEN = 0.95  # of the samples, that even weights keep
MANY = 2560  # check draws behind weights that are not even, and more where a response is to be known by them
# What a function on the host may be asked for: of the check's values, and of the fit's gradients, one in so many.
_PART_OF_CHECK, _PART_OF_FIT = 8, 4


@contextmanager
def _asking() -> Iterator[None]:
    """As in a fit, Ctrl-C waits for the end of a piece of work: the target may have to be compiled for this."""
    with in_double(), quiet_blas(False), interrupts_afterwards():
        yield


@dataclass(frozen=True, eq=False)
class Lookout:
    """A posterior, and the target that it is compared with.

    Attributes
    ----------
    known
        log p − log q at the check draws of the fit.
    seed
        Of the check draws.
    may_take_more
        Whether weights that are uneven may be known by more check draws.
    failed
        The fit has not ended well: why is worth a word.
    n_evaluations
        Gradients that the fit took.
    """

    problem: Problem
    posterior: Posterior
    hyper: Hyper
    known: np.ndarray
    seed: int
    may_take_more: bool
    failed: bool
    n_evaluations: int

    @property
    def asked(self) -> bool:
        """Whether anyone has asked."""
        return not {"ratios", "further", "region"}.isdisjoint(self.__dict__)

    @property
    def _answers(self) -> bool:
        """Whether the target can be asked: a pool of workers may be gone, and hosts would all have to ask."""
        return isinstance(self.problem.execution, Here) and not is_forked()

    @property
    def _takes_more(self) -> bool:
        """Whether there is more to be had than what the check has seen; of other families it has seen all."""
        member = self.posterior.member
        traced = self.problem.programs is not None and not member.on_host
        return self.may_take_more and 0 < len(self.known) < MANY and member.affine and traced and self._answers

    @property
    def _affordable(self) -> int:
        """Values that may be asked of a function on the host, whose calls may take long."""
        return max(len(self.known) // _PART_OF_CHECK, self.n_evaluations // _PART_OF_FIT)

    @cached_property
    def ratios(self) -> np.ndarray:
        """log p − log q at check draws: at more than those of the fit where few tell little of how far a mean or an sd moves."""
        known = self.known
        if not (self._takes_more and uneven(known[None], EVEN)[0]):
            return known
        known = self._with_more(known, MANY)
        return self._with_more(known, draws_wanted(self.posterior.dim, known))

    def _with_more(self, known: np.ndarray, n: int) -> np.ndarray:
        """Those, and as many more as make n of them."""
        if len(known) >= n:
            return known
        fresh = check_draws_of(self.posterior.dim, self.seed).first(n)[len(known) :]
        with _asking():
            return np.concatenate([known, log_ratios(self.problem, self.posterior.member, self.hyper, fresh)])

    @cached_property
    def further(self) -> Further | None:
        """What the target is like beyond the check draws."""
        if self.failed or not (len(self.known) and self._answers):
            return None
        with _asking():
            return look_further(self.problem, self.posterior, self.hyper, self.ratios, self.seed, self._affordable)

    @cached_property
    def region(self) -> str:
        """Where the log density is not finite, in words."""
        ratios, posterior = self.ratios, self.posterior
        outside = ~np.isfinite(ratios)
        if not self._answers:
            return "" if self.failed or outside.any() or is_forked() else NOT_LOOKED_AT
        with _asking():
            beyond = posterior.transform(check_draws_of(posterior.dim, self.seed).first(len(ratios))[outside])
            weighed = self.problem.programs is None and self.further is not None
            asked = {"failed": self.failed, "affordable": self._affordable, "weighed": weighed}
            told = tell_region(self.problem, posterior, self.hyper, beyond, ratios, **asked)
        return told or ("" if self.further is None else self.further.undefined)
