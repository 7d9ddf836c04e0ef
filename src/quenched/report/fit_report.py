"""The report of a fit: the verdict first, then the numbers, the figures, and how they came about."""

import contextlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.diagnostics import Diagnosis
from quenched.families import Role, roles
from quenched.files import read_path_to_write
from quenched.plots import plot_corner, plot_correlation, plot_marginals, plot_monitor
from quenched.report.markup import Level, Markup, facts, figure, table, verdict_box
from quenched.report.page import Document
from quenched.results import Fit, Status, evidence_in_words, insist_fit, rows_of
from quenched.text import dotted, given_text
from quenched.trust import BAD, Trust, reweight

_ROWS = 20_000  # of a table; the page holds them, and shows some hundred at a time
_MANY = 60  # numbers from which on the worst come first, and arrays are summed up
_PAIRS = 6  # numbers that get a corner plot
_CORRELATED = 3000  # numbers up to which correlations are looked for


def write_report(fit: Fit, path: str | Path, title: str = "Fit") -> Path:
    """Write the report of a fit as one HTML file and return its path."""
    path = read_path_to_write("path", path)
    return fit_report(fit, title).write(path)


def fit_report(fit: Fit, title: str = "Fit") -> Document:
    """The report as a page that can still grow. Without matplotlib it has no figures and says so."""
    insist_fit(fit)
    title = given_text("title", title)
    family, numbers = fit.settings.get("family", "Gaussian"), fit.posterior.dim
    page = Document(
        title,
        subtitle=f"{family} Gaussian posterior over {numbers:,} {'number' if numbers == 1 else 'numbers'}",
        footer=f"Written by quenched {version('quenched')}. Bounds are in nats.",
    )
    page = page.section("", verdict_box(level(fit), headline(fit), fit.verdict))
    page = page.section("The bound on the log evidence", _bounds(fit), *_monitor(fit))
    if fit.diagnosis is not None:
        page = page.section("How far to trust it", _diagnosed(fit.diagnosis))
    page = page.section("Posterior", *_posterior(fit))
    if fit.hyper is not None:
        page = page.section("Hyperparameters", *_hyper(fit))
    if len(fit.optima) > 1:
        page = page.section("Optima", _optima(fit))
    if fit.history:
        page = page.section("Rounds", _history(fit))
    return page.section("How it was made", _settings(fit))


def level(fit: Fit) -> Level:
    """The colour of a fit: how far to trust it."""
    levels: dict[Trust, Level] = {Trust.BOTH: "good", Trust.MEANS: "caution", Trust.NEITHER: "bad"}
    return levels[fit.answer.trust]


def headline(fit: Fit) -> str:
    """The verdict in a few words."""
    if fit.status in (Status.NOT_FINITE, Status.NO_ASCENT):
        return "The fit failed"
    if not (fit.converged or fit.status is Status.GIVEN):
        return "Not converged"
    return fit.answer.words


def _bounds(fit: Fit) -> Markup:
    if not np.isfinite(fit.gap):
        return facts([("bound", "not reached")])
    found = [
        ("bound", f"{fit.bound:.4f}, on {fit.n_draws} {fit.settings['draws']} draws"),
        ("check bound", f"{fit.check_bound:.4f} ± {fit.check_error:.4f}, on fresh draws"),
        ("gap", f"{fit.gap:z.4f}: the bound less the check bound"),
    ]
    if np.isfinite(fit.shortfall):
        tolerated = f"where {fit.settings['tolerance']:.2g} is tolerated"
        found.append(("shortfall", f"{fit.shortfall:.1g}: what better draws would add, {tolerated}"))
    return facts(found)


def _diagnosed(diagnosis: Diagnosis) -> Markup:
    return facts(
        [
            ("optimisation", f"{diagnosis.optimisation_error:.1e} from the top"),
            ("draws", f"± {diagnosis.bound_error:.2g} on the bound; means and standard deviations below"),
            ("family", f"k-hat {diagnosis.khat:.2f}, {diagnosis.family_gap:.2g} below the evidence"),
            ("evidence", evidence_in_words(diagnosis)),
        ]
    )


def _monitor(fit: Fit) -> Iterator[Any]:
    try:
        drawn = plot_monitor(fit).figure
    except ImportError as error:
        yield f"No figures here. {error}"
        return
    yield figure(drawn, "The bound is optimistic by the gap to its value on draws that were never trained on.")


def _posterior(fit: Fit) -> Iterator[Any]:
    everything = rows_of(fit, fit.diagnosis)
    many = len(everything) > _MANY
    if many and len(fit.space.leaves) > 1:
        yield _arrays(fit, everything)
    with contextlib.suppress(ImportError):
        yield figure(plot_marginals(fit), "Marginal posteriors in natural units.")
    heads = {"name": "parameter", "mean": "mean", "sd": "standard deviation"}
    columns = ["± due to the draws" if name.endswith("_error") else heads.get(name, name) for name in everything[0]]
    rows = [tuple(_cell(name, value) for name, value in row.items()) for row in everything]
    caption = "In natural units."
    concern = _concern(fit) if many else None
    if concern is not None:
        head, why, moved = concern
        columns, rows = [*columns, head], [(*row, m) for row, m in zip(rows, moved, strict=True)]
        judged = fit if fit.diagnosis is None else fit.diagnosis
        named = {departure.name: place for place, departure in enumerate(judged.departures)}
        ranks = np.array([named.get(row["name"], len(named)) for row in everything])
        rows = [rows[place] for place in np.lexsort((-np.nan_to_num(np.abs(moved)), ranks))]
        clear = "those that weights find clearly off, then " if ranks.min() < len(named) else ""
        caption += f" First {clear}those whose mean {why}."
    yield table(columns, rows[:_ROWS], caption=caption)
    if len(rows) > _ROWS:
        yield f"{len(rows) - _ROWS} more numbers are in the saved fit."
    yield from _together(fit, len(everything))


def _cell(name: str, value: Any) -> Any:
    """Errors with two digits: the others say nothing."""
    return f"{value:.2g}" if name.endswith("_error") else value


def _concern(fit: Fit) -> tuple[str, str, np.ndarray] | None:
    """How far each mean may be off, in standard deviations, and by which judge; None where nothing can tell."""
    if not len(fit.weighed_ratios) or not np.isfinite(fit.weighed_ratios).all():
        return None
    plain = fit.space.coordinate_names() == fit.space.names()  # a row of the table is a coordinate
    if fit.khat <= BAD and (fit.collapsed is None or plain):
        return "moved by weights (sds)", "importance weights would move most", _moved_by_weights(fit)
    if fit.diagnosis is not None and np.isfinite(flat := _flat(fit.diagnosis.mean_error)).all():
        return "moved by other draws (sds)", "other draws would move most", flat / _sds(fit)
    if fit.posterior.member.affine and plain:
        moved, error = _moves(fit)
        noise = f"; as far as can be told, by ± {np.median(error):.2g}"
        return "moved by other draws (sds)", f"other draws might move most{noise}", moved
    return None


def _moved_by_weights(fit: Fit) -> np.ndarray:
    """How far importance weights move each mean, in standard deviations."""
    if fit.collapsed is not None:  # the weights are those of the few that the others share
        return fit.collapsed.shift
    samples = fit.posterior.transform(fit.check_draws)
    found = reweight(fit.space, fit.mean, fit.sd, samples, fit.weights.weights)
    return (_flat(found.mean) - _flat(fit.mean)) / _sds(fit)


def _sds(fit: Fit) -> np.ndarray:
    return np.maximum(_flat(fit.sd), np.finfo(float).tiny)


def _flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _moves(fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """A step of natural gradient on the check draws for each mean, in standard deviations, and its error (see `trust.drift`)."""
    ratios = fit.weighed_ratios - fit.weighed_ratios.mean()
    along = (fit.posterior.transform(fit.check_draws) - fit.posterior.mean) / np.sqrt(fit.posterior.variance())
    moves = ratios[:, None] * along
    return moves.mean(axis=0), moves.std(axis=0) / np.sqrt(len(ratios))


def _arrays(fit: Fit, everything: Sequence[dict[str, Any]]) -> Markup:
    rows, at = [], 0
    for leaf in fit.space.leaves:
        own = everything[at : at + int(np.prod(leaf.shape))]
        at += len(own)
        if own:
            means, sds = ([row[name] for row in own] for name in ("mean", "sd"))
            shape = " × ".join(map(str, leaf.shape)) or "one number"
            rows.append((leaf.name, shape, min(means), max(means), min(sds), max(sds)))
    heads = ["array", "shape", "lowest mean", "highest mean", "smallest sd", "largest sd"]
    return table(heads, rows, caption="The arrays of the parameters.")


def _together(fit: Fit, numbers: int) -> Iterator[Any]:
    """How parameters vary together, as far as it can be drawn."""
    if not 2 <= numbers <= _CORRELATED or Role.CORRELATION not in roles(fit.posterior.member):  # nothing to see
        return
    with contextlib.suppress(ImportError):
        if numbers <= _PAIRS:
            yield figure(
                plot_corner(fit),
                "Pairs: contours with half and 95 % of the posterior; dots are samples moved to the target by their weights.",
            )
        else:
            yield figure(plot_correlation(fit).figure, "Correlations on the real line.")  # pyright: ignore


def _hyper(fit: Fit) -> Iterator[Markup]:
    named = jax.tree_util.tree_flatten_with_path(fit.hyper)[0]
    listed = []
    for path, value in named:
        name = dotted(path) or "hyper"
        array = np.asarray(value)
        for index in np.ndindex(array.shape):
            listed.append((name + (f"[{','.join(map(str, index))}]" if index else ""), float(array[index])))
    yield table(["hyperparameter", "value"], listed[:_ROWS])


def _optima(fit: Fit) -> Markup:
    return table(["bound", "reached from"], [(f"{o.bound:.4f}", f"{o.n_starts} starts") for o in fit.optima])


def _history(fit: Fit) -> Markup:
    return table(
        ["round", "draws", "bound", "check bound", "gap", "gradient evaluations"],
        [
            (
                number,
                entry.n_draws,
                f"{entry.bound:.4f}",
                f"{entry.check_bound:.4f} ± {entry.check_error:.4f}",
                f"{entry.bound - entry.check_bound:z.4f}",
                entry.n_evaluations,
            )
            for number, entry in enumerate(fit.history, start=1)
        ],
    )


def _settings(fit: Fit) -> Markup:
    chosen = {name: value for name, value in fit.settings.items() if name not in ("versions", "groups")}
    versions = ", ".join(f"{name} {number}" for name, number in fit.settings.get("versions", {}).items())
    work = f"{fit.n_evaluations} gradient evaluations, {fit.n_objective_evaluations} of the bound, {fit.seconds:.2f} s"
    return facts([("status", str(fit.status)), *chosen.items(), ("work", work), ("versions", versions)])
