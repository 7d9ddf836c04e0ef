"""Errors of a sum of terms with a sparse precision: by Newton steps on other draws, and by pushes on its means."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.diagnostics.draw_error import AnswerOfDraws, DrawError, answer_of, spread_error
from quenched.diagnostics.linear_response import Response, shaped
from quenched.diagnostics.optimisation import OptimisationError
from quenched.draws import Purpose, TermDraws, generator
from quenched.families import SparseGaussian, StretchedGaussian, factor
from quenched.fitting import NewtonAscent, nats_left, point_of, stand_at
from quenched.objective import Problem
from quenched.precision import in_double
from quenched.projected import Expected, FreeChanges, ProjectedBound
from quenched.targets import Hyper
from quenched.text import shown
from quenched.transforms import Parameters, Space

_STEPS = 3  # of Newton's on other draws, from the optimum on these
_PUSH = 0.3  # posterior sds by which linear response moves a mean
_PUSHED = 12  # steps at the most
_MOST = 300  # parameters for which it is done for all

_STRAIGHT = np.zeros(0)  # rates of a Gaussian
_Sparse = SparseGaussian | StretchedGaussian


def terms_optimisation_error(bound: ProjectedBound, posterior: _Sparse, hyper: Hyper) -> OptimisationError:
    """What a further Newton step would do."""
    at = _stand(bound, posterior, hyper)
    step = at.factor.solve(at.expected.gradient) / np.sqrt(posterior.variance())
    nats = nats_left(bound, at, generator(0, Purpose.PROBES))
    return OptimisationError(nats, float(np.abs(step).max()), factor(bound.pattern, at.expected.precision) is not None)


def terms_draw_error(
    problem: Problem, posterior: _Sparse, hyper: Hyper, draws: TermDraws, own: AnswerOfDraws, count: int
) -> tuple[DrawError, int]:
    """The errors due to the draws, and the gradient evaluations they took."""
    sets = [draws.another(1 + index) for index in range(count)]
    answers, n_evaluations = [], 0
    for chosen in (*sets, draws.another(count + 1).grow(count * draws.n)):
        bound = ProjectedBound(problem, chosen, skewed=not posterior.affine)
        ascent = NewtonAscent(bound, _stand(bound, posterior, hyper))
        for _ in range(_STEPS):
            if ascent.step()[0] == 0.0:
                break
        end = ascent.at
        answers.append(answer_of(problem, end.member(bound.pattern), hyper._replace(free=end.free), end.bound))
        n_evaluations += bound.n_evaluations
    *singles, large = answers
    errors = jax.tree.map(spread_error, own, large, *singles)
    return DrawError(errors.mean, errors.sd, errors.hyper, float(errors.bound)), n_evaluations


def _stand(bound: ProjectedBound, posterior: _Sparse, hyper: Hyper) -> Any:
    return stand_at(bound, point_of(posterior, hyper)._replace(factor=posterior.factor))


class _Pushed(ProjectedBound):
    """The bound with a linear function added to the log density; hyperparameters are held."""

    def __init__(self, bound: ProjectedBound, push: np.ndarray):
        self.__dict__.update(bound.__dict__)
        self.push = push

    def expected(self, mean, factor, free, skew=_STRAIGHT):
        found = super().expected(mean, factor, free, skew)
        value, gradient = found.value + float(self.push @ mean), found.gradient + self.push
        return Expected(value, gradient, found.precision, np.zeros_like(found.free), found.skew)

    def free_changes(self, mean, factor, free, skew=_STRAIGHT):
        n = len(free)
        return FreeChanges(np.zeros((n, len(mean))), np.zeros((n, self.pattern.size)), -np.eye(n))


class TermsResponse:
    """Covariances by linear response, of some parameters on the real line or of all where they are few.

    A push on the target moves the means of the fit: the covariance of a · w with b · w is the change of b · m when a small
    multiple of a · w is added to the log density.
    """

    n_gradients = 0

    def __init__(self, bound: ProjectedBound, posterior: _Sparse, hyper: Hyper, space: Space):
        self._bound, self._posterior, self._hyper, self._space = bound, posterior, hyper, space

    @property
    def covariance(self) -> np.ndarray:
        """Of the raveled parameters on the real line."""
        dim = self._space.dim
        if dim > _MOST:
            raise ValueError(
                f"linear_response: it takes some Newton steps for each of {dim} parameters; ask for a few, "
                "linear_response.of(names)."
            )
        return self._responses(np.eye(dim))

    @property
    def sd(self) -> Parameters:
        """On the real line, shaped like `start`."""
        return self._space.unravel(np.sqrt(np.diag(self.covariance)))

    def of(self, what: Callable[[Parameters], Any] | str | Sequence[str]) -> Response:
        """Mean and standard deviation of some parameters on the real line, by name; or of a function of the parameters.

        Parameters
        ----------
        what
            A name or several; or a function in JAX, of the parameters in natural units, that returns a number, an array or a
            pytree of them. It is taken as linear around the mean of the posterior, which misleads where it bends within an sd.

        Raises
        ------
        ValueError
            When no parameter has that name.
        """
        from quenched.posterior import Posterior

        if callable(what):
            return self._of_function(what)
        if not isinstance(what, (str, list, tuple)) or not all(isinstance(name, str) for name in what):
            raise ValueError(f"what={shown(what)}: give a function of the parameters, a name, or several names.")
        posterior = Posterior(self._posterior, self._space)
        places = posterior.places([what] if isinstance(what, str) else list(what))
        directions = np.zeros((len(places), self._space.dim))
        directions[np.arange(len(places)), places] = 1.0
        covariance = self._responses(directions)[:, places]
        return Response(posterior.mean[places], np.sqrt(np.diag(covariance)), covariance)

    def _of_function(self, function: Callable[[Parameters], Any]) -> Response:
        if self._space.joint is not None and self._space.joint.on_host:
            raise ValueError(
                "linear_response: the parameters are mapped to natural units in code that JAX cannot differentiate."
            )
        with in_double():
            mean = np.asarray(self._posterior.mean)
            value = lambda vector: function(self._space.to_natural(vector))
            shapes = jax.eval_shape(value, mean)
            found, pull = jax.vjp(lambda vector: ravel_pytree(value(vector))[0], mean)
            slopes = np.array([pull(unit)[0] for unit in np.eye(found.size)])
        covariance = self._responses(slopes) @ slopes.T
        return Response(shaped(np.asarray(found), shapes), shaped(np.sqrt(np.diag(covariance)), shapes), covariance)

    def _responses(self, directions: np.ndarray) -> np.ndarray:
        """The change of all means with a push along each direction."""
        found = []
        with in_double():
            for direction in directions:
                spread = np.sqrt(direction @ self._posterior.factor.solve(direction))
                ends = [self._pushed(sign * _PUSH / spread * direction) for sign in (1.0, -1.0)]
                found.append((ends[0] - ends[1]) * spread / (2.0 * _PUSH))
        return np.array(found)

    def _pushed(self, push: np.ndarray) -> np.ndarray:
        bound = _Pushed(self._bound, push)
        ascent = NewtonAscent(bound, _stand(bound, self._posterior, self._hyper))
        for _ in range(_PUSHED):
            rise, _ = ascent.step()
            if rise < 1e-6:
                break
        return ascent.at.mean
