"""From a formula and a table to arrays: the response, the fixed effects, and the groups with what varies among them."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from quenched.models.mixed.brackets import Brackets, read_brackets, together
from quenched.text import shown

_RANK = 1e-10
_FUNCTIONS = {"log": np.log, "log1p": np.log1p, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs}  # besides formulae's own


@dataclass(frozen=True, eq=False)
class Grouping:
    """Effects of the levels of a grouping, `size` for each, which correlate."""

    name: str  # that of the grouping; a second one of the same has a number, as "group.1"
    terms: tuple[str, ...]  # as the user reads them: "1|group", "x|group"
    levels: tuple[str, ...]  # those that have rows
    index: np.ndarray  # (rows,)
    covariates: np.ndarray  # (rows, size)
    read: tuple[Any, ...]  # its terms, as formulae reads them
    places: np.ndarray  # of the levels among all that the columns of the grouping could make

    @property
    def size(self) -> int:
        return len(self.terms)

    @property
    def grouping(self) -> str:
        return self.read[0].factor.name


@dataclass(frozen=True, eq=False)
class MixedDesign:
    """All that the likelihood needs."""

    response: np.ndarray
    trials: np.ndarray | None
    fixed: np.ndarray
    names: tuple[str, ...]
    offset: np.ndarray
    factors: tuple[Grouping, ...]
    matrices: Any  # of formulae, for new data
    categories: tuple[str, ...] = ()  # of an ordinal response, in their order

    @property
    def noiseless(self) -> bool:
        """Whether offset and fixed effects give the response without any error but rounding."""
        left = self.response - self.offset
        given = self.fixed @ np.linalg.lstsq(self.fixed, left)[0]
        return bool(np.linalg.norm(left - given) <= _RANK * np.linalg.norm(self.response))


@dataclass(frozen=True, eq=False)
class NewRows:
    """What the rows of another table have of the fixed effects, of the offset, and of each grouping."""

    fixed: np.ndarray
    offset: np.ndarray
    varying: tuple[tuple[np.ndarray, np.ndarray], ...]  # groups and covariates

    @classmethod
    def of(cls, design: MixedDesign) -> "NewRows":
        """Those that were fitted."""
        varying = tuple((factor.index, factor.covariates) for factor in design.factors)
        return cls(design.fixed, design.offset, varying)


def read_design(formula: str, table: Any, likelihood: str) -> MixedDesign:
    """Read a formula on a table.

    Raises
    ------
    ImportError
        Without formulae.
    ValueError
        When the response or the design is not what the likelihood needs.
    """
    matrices, brackets = _matrices(formula, table)
    factors = _factors(matrices, brackets, table)
    if likelihood == "ordinal":
        return _ordinal(formula, table, matrices, factors)
    response, trials = _response(formula, matrices.response, likelihood)
    fixed, names, offset = _common(matrices.common, len(response))
    _insist_rank(fixed, names)
    return MixedDesign(response, trials, fixed, names, offset, factors, matrices)


def _matrices(formula: str, table: Any) -> tuple[Any, tuple[Brackets, ...]]:
    """What formulae makes of them, and the brackets of varying effects."""
    try:
        from formulae import design_matrices  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError('MixedModel needs formulae: pip install "quenched[mixed]".') from error
    if not isinstance(formula, str):
        raise ValueError(f"formula={shown(formula)}: give a text such as 'y ~ x + (1|group)'.")
    _insist_table(table)
    readable, brackets = read_brackets(formula)
    try:
        matrices = design_matrices(readable, table, na_action="error", extra_namespace=_FUNCTIONS)
    except KeyError as error:
        raise ValueError(
            f"formula={formula!r}: {error} is neither a column of the table nor a function that is known here; columns are "
            f"{', '.join(map(str, table.columns))}, functions {', '.join(_FUNCTIONS)} and those of formulae."
        ) from error
    except Exception as error:  # of formulae: what it cannot read, or not find
        remedy = " Drop them first, as by table.dropna()." if "incomplete" in str(error) else ""
        raise ValueError(f"formula={shown(formula)}: formulae cannot read it on this table: {error}{remedy}") from error
    if matrices.response is None:
        raise ValueError(f"formula={formula!r}: has no response; write it as 'y ~ x + (1|group)'.")
    return matrices, brackets


def _response(formula: str, given: Any, likelihood: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The response, and the trials of a proportion."""
    response, trials = np.asarray(given.design_matrix, float), None
    if response.ndim == 2 and given.kind == "proportion":
        response, trials = response[:, 0], response[:, 1]
    elif response.ndim == 2:
        _insist_two(formula, given, likelihood)
        response = response[:, -1]  # a category against another: the last level is 1
    if (trials is None) == (likelihood == "binomial"):
        wrong = (
            "takes no trials; use 'binomial'"
            if trials is not None
            else "needs a response proportion(successes, trials)"
        )
        raise ValueError(f"formula={formula!r}: likelihood={likelihood!r} {wrong}.")
    return response, trials


def _insist_two(formula: str, given: Any, likelihood: str) -> None:
    """Categories have a linear predictor if there are two of them."""
    levels = list(map(str, given.levels))
    if likelihood != "bernoulli":
        raise ValueError(
            f"formula={formula!r}: the response has categories, and likelihood={likelihood!r} needs numbers."
        )
    if len(levels) != 2:
        remedy = (
            f"; write {given.name}[{levels[-1]!r}] for one against the others, or use 'ordinal' for an order"
            if len(levels) > 2
            else " only"
        )
        raise ValueError(
            f"formula={formula!r}: likelihood='bernoulli' needs two categories, and the response has {', '.join(levels)}{remedy}."
        )


def _insist_table(table: Any) -> None:
    if not (hasattr(table, "columns") and hasattr(table, "dtypes")):
        raise ValueError(f"table={shown(table)}: give a pandas.DataFrame.")


def read_new_rows(design: MixedDesign, table: Any) -> NewRows:
    """Read the formula of a design on another table.

    Raises
    ------
    ValueError
        When a column is missing, or holds what was not fitted.
    """
    _insist_table(table)
    try:
        effects = design.matrices.common
        new = effects.evaluate_new_data(table) if effects else None
        fixed, names, offset = _common(effects, len(table), new)
        covariates = [
            [np.asarray(term.expr.eval_new_data(table), float).reshape(len(table), -1) for term in factor.read]
            for factor in design.factors
        ]
        values = [_group_values(factor.read[0], table) for factor in design.factors]
    except KeyError as error:
        raise ValueError(f"table: it has no column {error}, which the formula asks for.") from error
    except Exception as error:  # of formulae: what it cannot read
        raise ValueError(f"table: formulae cannot read the formula on it: {error}") from error
    kept = [place for place, name in enumerate(names) if name in design.names]
    groups = map(_new_index, design.factors, values)
    varying = zip(groups, (np.concatenate(parts, axis=1) for parts in covariates), strict=True)
    return NewRows(fixed[:, kept], offset, tuple(varying))


def _ordinal(formula: str, table: Any, matrices: Any, factors: tuple[Grouping, ...]) -> MixedDesign:
    """Categories as numbers from 0; cut points take the place of the intercept."""
    import pandas

    name = matrices.response.name
    if name not in table:
        raise ValueError(f"formula={formula!r}: likelihood='ordinal' needs a column of the table as response.")
    column = table[name]
    ordered = isinstance(column.dtype, pandas.CategoricalDtype) and column.cat.ordered
    codes = pandas.Categorical(column) if not ordered else column.array.remove_unused_categories()
    fixed, names, offset = _common(matrices.common, len(codes))
    kept = [place for place, label in enumerate(names) if label != "Intercept"]
    fixed, names = fixed[:, kept], tuple(names[place] for place in kept)
    _insist_rank(np.column_stack([np.ones(len(fixed)), fixed]), ("the cut points", *names))
    categories = tuple(map(str, codes.categories))
    response = np.asarray(codes.codes, float)
    return MixedDesign(response, None, fixed, names, offset, factors, matrices, categories)


def _common(effects: Any, n: int, new: Any = None) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """The columns of the fixed effects in n rows, of new ones if they are given, their names, and the offset."""
    columns, names, offset = [np.zeros((n, 0))], [], np.zeros(n)
    for name, where in effects.slices.items() if effects else ():
        own = np.asarray(effects if new is None else new)[:, where].astype(float)
        if effects.terms[name].kind == "offset":
            offset = offset + own[:, 0]
            continue
        columns.append(own)
        names += list(effects.terms[name].labels)
    return np.concatenate(columns, axis=1), tuple(names), offset


def _factors(matrices: Any, brackets: tuple[Brackets, ...], table: Any) -> tuple[Grouping, ...]:
    """Terms of one grouping from the same brackets correlate, and have levels together."""
    group = matrices.group.terms if matrices.group else {}
    known = together(brackets) if group else {}
    found: dict[Any, list[Any]] = {}
    for term in group.values():
        found.setdefault((term.factor.name, known.get(term.name)), []).append(term)
    factors: dict[str, Grouping] = {}
    for (grouping, _), terms in found.items():
        labels, columns = [], []
        for term in terms:
            columns.append(np.asarray(term.expr.data, float).reshape(len(table), -1))
            labels += ["1" if label == "Intercept" else label for label in term.expr.labels]
        places, index = np.unique(_group_index(terms[0], _group_values(terms[0], table)), return_inverse=True)
        levels = tuple(str(terms[0].groups[place]) for place in places)
        numbered = (f"{grouping}.{number}" for number in count(1))
        name = grouping if grouping not in factors else next(one for one in numbered if one not in factors)
        factors[name] = Grouping(
            name,
            tuple(f"{label}|{grouping}" for label in labels),
            levels,
            index,
            np.concatenate(columns, axis=1),
            tuple(terms),
            places,
        )
    return tuple(factors.values())


def _new_index(factor: Grouping, values: list[np.ndarray]) -> np.ndarray:
    """The level of every row of another table; those that had no rows come after those that had."""
    given = _group_index(factor.read[0], values)
    places = np.append(factor.places, np.setdiff1d(given, factor.places))
    order = np.argsort(places)
    return order[np.searchsorted(places[order], given)]


def _group_index(term: Any, values: list[np.ndarray]) -> np.ndarray:
    """The group of every row, among all that its columns could make; groups that were not fitted come after those.

    Raises
    ------
    ValueError
        When a row has none.
    """
    import pandas

    index, size, new = np.zeros(len(values[0]), int), 1, np.zeros(len(values[0]), bool)
    for component, own in zip(term.factor.components, values, strict=True):
        missing = np.flatnonzero(pandas.isna(own))
        if len(missing):
            raise ValueError(
                f"table: {component.name} has no value in row {missing[0]}, so that its level is not known; drop the row, or give "
                "it a level that was not fitted, such as 'new'."
            )
        codes = pandas.Index(component.levels).get_indexer(pandas.Index(own))
        index, size, new = index * len(component.levels) + codes, size * len(component.levels), new | (codes < 0)
    numbers: dict[Any, int] = {}
    for row in np.flatnonzero(new):
        index[row] = numbers.setdefault(tuple(own[row] for own in values), size + len(numbers))
    return index


def _group_values(term: Any, table: Any) -> list[np.ndarray]:
    """What each column of a grouping, or function of columns, has in every row."""
    found = []
    for component in term.factor.components:
        own = component.call.eval(table, component.env) if hasattr(component, "call") else table[component.name]
        found.append(np.asarray(getattr(own, "data", own) if hasattr(component, "call") else own))
    return found


def _insist_rank(fixed: np.ndarray, names: tuple[str, ...]) -> None:
    if not fixed.shape[1]:
        return
    scaled = fixed / np.maximum(np.linalg.norm(fixed, axis=0), 1e-300)
    _, singular, right = np.linalg.svd(np.linalg.qr(scaled, mode="r"), full_matrices=True)
    if len(singular) < fixed.shape[1] or singular[-1] < _RANK * singular[0]:
        together = [names[place] for place in np.flatnonzero(np.abs(right[-1]) > 0.1)]
        raise ValueError(
            f"formula: the columns {', '.join(together)} are not told apart by the table (some combination of them is "
            "zero in every row); drop one."
        )


def separating(fixed: np.ndarray, names: tuple[str, ...], at_least: np.ndarray, at_most: np.ndarray) -> list[str]:
    """Fixed effects that may grow together without limit, since no row contradicts; none if some row always does.

    `at_least` are the rows whose likelihood does not suffer when their predictor rises, `at_most` when it falls: all others
    hold it where it is.
    """
    from scipy.optimize import linprog

    upwards, downwards = fixed[~at_most], fixed[~at_least]
    held = fixed[~at_least & ~at_most]
    limits = np.concatenate([-upwards, downwards])
    rise = fixed[at_least & ~at_most].sum(axis=0) - fixed[at_most & ~at_least].sum(axis=0)
    equal = {"A_eq": held, "b_eq": np.zeros(len(held))} if len(held) else {}
    found = linprog(-rise, A_ub=limits, b_ub=np.zeros(len(limits)), bounds=(-1.0, 1.0), **equal)
    if found.status != 0 or not -found.fun > 1e-8:
        return []
    return [name for name, value in zip(names, found.x, strict=True) if abs(value) > 1e-8]
