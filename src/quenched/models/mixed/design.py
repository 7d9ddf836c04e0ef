"""From a formula and a table to arrays: the response, the fixed effects, and the groups with what varies among them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

_RANK = 1e-10


@dataclass(frozen=True, eq=False)
class Factor:
    """A grouping: effects of its levels, `size` for each."""

    name: str
    terms: tuple[str, ...]  # as the user reads them: "1|group", "x|group"
    levels: tuple[str, ...]
    index: np.ndarray  # (rows,)
    covariates: np.ndarray  # (rows, size)

    @property
    def size(self) -> int:
        return len(self.terms)


@dataclass(frozen=True, eq=False)
class Design:
    """All that the likelihood needs."""

    response: np.ndarray
    trials: np.ndarray | None
    fixed: np.ndarray
    names: tuple[str, ...]
    offset: np.ndarray
    factors: tuple[Factor, ...]
    matrices: Any  # of formulae, for new data


def read_design(formula: str, table: Any, likelihood: str) -> Design:
    """Read a formula on a table.

    Raises
    ------
    ImportError
        Without formulae.
    ValueError
        When the response or the design is not what the likelihood needs.
    """
    try:
        from formulae import design_matrices  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError('MixedModel needs formulae: pip install "quenched[mixed]".') from error
    matrices = design_matrices(formula, table, na_action="error")
    if matrices.response is None:
        raise ValueError(f"formula={formula!r}: has no response; write it as 'y ~ x + (1|group)'.")
    response = np.asarray(matrices.response.design_matrix, float)
    trials = None
    if response.ndim == 2 and matrices.response.kind == "proportion":
        response, trials = response[:, 0], response[:, 1]
    elif response.ndim == 2:
        response = response[:, -1]  # a category against another: the last level is 1
    if (trials is None) == (likelihood == "binomial"):
        raise ValueError(
            f"formula={formula!r}: likelihood={likelihood!r} "
            + (
                "needs a response proportion(successes, trials)."
                if trials is None
                else "takes no trials; use 'binomial'."
            )
        )
    fixed, names, offset = common(
        matrices.common, np.asarray(matrices.common) if matrices.common else None, len(response)
    )
    _insist_rank(fixed, names)
    return Design(response, trials, fixed, names, offset, _factors(matrices.group, table), matrices)


def common(effects: Any, matrix: np.ndarray | None, n: int) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """The columns of the fixed effects, their names, and the offset."""
    columns, names, offset = [np.zeros((n, 0))], [], np.zeros(n)
    for name, where in () if matrix is None else effects.slices.items():
        own = np.asarray(matrix, float)[:, where]
        if effects.terms[name].kind == "offset":
            offset = offset + own[:, 0]
            continue
        columns.append(own)
        names += list(effects.terms[name].labels)
    return np.concatenate(columns, axis=1), tuple(names), offset


def _factors(group: Any, table: Any) -> tuple[Factor, ...]:
    """Terms with the same grouping belong together, and correlate."""
    found: dict[str, list[Any]] = {}
    for term in group.terms.values() if group else ():
        found.setdefault(term.factor.name, []).append(term)
    factors = []
    for name, terms in found.items():
        labels, columns = [], []
        for term in terms:
            own = np.asarray(term.expr.data, float).reshape(len(table), -1)
            labels += ["1" if label == "Intercept" else label for label in term.expr.labels]
            columns.append(own)
        index = group_index(terms[0], table)
        names = tuple(f"{label}|{name}" for label in labels)
        levels = tuple(map(str, terms[0].groups))
        factors.append(Factor(name, names, levels, index, np.concatenate(columns, axis=1)))
    return tuple(factors)


def group_index(term: Any, table: Any) -> np.ndarray:
    """The group of every row; groups that were not fitted come after those that were."""
    if hasattr(term, "eval_new_data_group_index"):
        return np.asarray(term.eval_new_data_group_index(table)[0])
    # The formulae that Bambi 0.17 needs does not number groups that are new.
    names = [getattr(component, "name", None) for component in term.factor.components]
    if not all(name in table for name in names):
        return np.asarray(term.factor.eval_new_data(table)).argmax(axis=1)
    places = {str(label): place for place, label in enumerate(term.groups)}
    labels = zip(*(table[name].astype(str) for name in names), strict=True)
    return np.array([places.setdefault(":".join(label), len(places)) for label in labels])


def _insist_rank(fixed: np.ndarray, names: tuple[str, ...]) -> None:
    if not fixed.shape[1]:
        return
    scaled = fixed / np.maximum(np.linalg.norm(fixed, axis=0), 1e-300)
    wide = len(scaled) < scaled.shape[1]  # a tall matrix has all that is asked for without its left half
    _, singular, right = np.linalg.svd(scaled, full_matrices=wide)
    if len(singular) < fixed.shape[1] or singular[-1] < _RANK * singular[0]:
        together = [names[place] for place in np.flatnonzero(np.abs(right[-1]) > 0.1)]
        raise ValueError(
            f"formula: the columns {', '.join(together)} are not told apart by the table (some combination of them is "
            "zero in every row); drop one."
        )


def separating(fixed: np.ndarray, names: tuple[str, ...], response: np.ndarray) -> list[str]:
    """Fixed effects that, together, tell all zeros from all ones; none if they do not."""
    from scipy.optimize import linprog

    signed = fixed * np.where(response > 0.5, 1.0, -1.0)[:, None]
    found = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1.0, 1.0))
    if found.status != 0 or not -found.fun > 1e-8:
        return []
    return [name for name, value in zip(names, found.x, strict=True) if abs(value) > 1e-8]
