"""A fit as a table: for reading in a terminal, and as rows for anything else."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from quenched.posterior import natural_quantiles
from quenched.text import dotted
from quenched.trust import Weighed

if TYPE_CHECKING:
    from quenched.diagnostics import Diagnosis
    from quenched.results.fit import Fit

ROWS_SHOWN = 30
_UNDIAGNOSED = "The errors of means and sds come from fit.diagnose(), which may take longer than the fit."
_LEVELS = {"5%": 0.05, "50%": 0.5, "95%": 0.95}


class Summary(list[dict[str, Any]]):
    """One row per number in natural units: name, mean, sd, their errors when the fit was diagnosed, and quantiles."""

    def __init__(self, fit: "Fit", diagnosis: "Diagnosis | None"):
        super().__init__(rows_of(fit, diagnosis))
        self._text = render(fit, diagnosis)
        if diagnosis is None and fit.origin is not None:
            self._text += f"\n\n{_UNDIAGNOSED}"

    def __repr__(self) -> str:
        return self._text

    __str__ = __repr__

    def to_frame(self):
        """All rows as a DataFrame, by name.

        Raises
        ------
        ImportError
            Without pandas.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("A summary as a DataFrame needs pandas: pip install pandas.") from error
        return pandas.DataFrame(list(self)).set_index("name")


def rows_of(fit: "Fit", diagnosis: "Diagnosis | None" = None) -> list[dict[str, Any]]:
    """One row per number in natural units, in the order of the parameters."""
    columns = {"mean": fit.mean, "sd": fit.sd}
    if diagnosis is not None:
        columns = {
            "mean": fit.mean,
            "mean_error": diagnosis.mean_error,
            "sd": fit.sd,
            "sd_error": diagnosis.sd_error,
        }
    leaves = {name: jax.tree.leaves(tree) for name, tree in columns.items()} | quantiles_of(fit)
    table = []
    for position, leaf in enumerate(fit.space.leaves):
        numbers = {column: np.asarray(values[position]) for column, values in leaves.items()}
        for name, index in leaf.entries(leaf.shape):
            table.append({"name": name, **{column: float(array[index]) for column, array in numbers.items()}})
    return table


def quantiles_of(fit: "Fit") -> dict[str, list[np.ndarray]]:
    """Those of all leaves, by column; worked out once. `storage` keeps them of fits that need their model for it."""
    if "quantiles" not in fit._kept:
        found = jax.tree.leaves(natural_quantiles(fit.posterior, fit.space, tuple(_LEVELS.values())))
        fit._kept["quantiles"] = {name: [leaf[place] for leaf in found] for place, name in enumerate(_LEVELS)}
    return fit._kept["quantiles"]


def moved_by_draws(table: list[dict[str, Any]]) -> np.ndarray | None:
    """By how many standard deviations other draws move each mean; None where no diagnosis tells."""
    if "mean_error" not in table[0]:
        return None
    return np.array([row["mean_error"] / max(row["sd"], np.finfo(float).tiny) for row in table])


def rows_shown(
    sizes: list[int], most: int = ROWS_SHOWN, concern: np.ndarray | None = None
) -> tuple[list[int | str], int]:
    """Which rows to print of leaves of these sizes: their places, or words for those that are left out.

    Small leaves come first and whole, so that none hides behind a long vector; what is left over is shared by the long
    ones. Of these the rows of most `concern` are shown, the worst first, or without it all but the middle. At the end: how
    many leaves found no place at all.
    """
    begins, chosen = np.cumsum([0, *sizes]), []
    order = sorted((place for place, size in enumerate(sizes) if size), key=lambda place: sizes[place])
    for done, place in enumerate(order):
        share = max((most - len(chosen)) // (len(order) - done), min(2, sizes[place]))
        if share > most - len(chosen):
            return chosen, len(order) - done
        rows: list[int | str] = list(range(begins[place], begins[place + 1]))
        if len(rows) > share and concern is not None:
            worst = np.argsort(-np.nan_to_num(concern[begins[place] : begins[place + 1]]), kind="stable")[: share - 1]
            rows = [
                *(begins[place] + worst).tolist(),
                f"... {len(rows) - len(worst)} more, moved less",
            ]
        elif len(rows) > share:
            head = max(share - 2, 1)
            tail = share - 1 - head
            rows[head : len(rows) - tail] = [f"... {len(rows) - head - tail} more"]
        chosen += rows
    return chosen, 0


def render(fit: "Fit", diagnosis: "Diagnosis | None" = None) -> str:
    """The table, the bound with its check, and the verdict."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100)
    print_summary(fit, console, diagnosis)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # pyright: ignore


def print_summary(
    fit: "Fit", console, diagnosis: "Diagnosis | None" = None, says: Callable[[str], str] = lambda verdict: verdict
) -> None:
    """Print to a rich console; `says` puts the verdict into the words of whoever reads it."""
    from rich.table import Table
    from rich.text import Text  # plain: names and messages may hold square brackets, which rich takes for styles

    judged = fit.answer
    console.print(Text(str(judged)), style="bold")
    console.print()
    everything = rows_of(fit, diagnosis)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("parameter")
    columns = [name for name in everything[0] if name != "name"]
    for name in columns:
        table.add_column("±" if name.endswith("_error") else name, justify="right")
    sizes = [int(np.prod(leaf.shape)) for leaf in fit.space.leaves]
    places, hidden = rows_shown(sizes, concern=moved_by_draws(everything))
    for place in places:
        if isinstance(place, str):
            table.add_row(Text(place))
            continue
        row = everything[place]
        numbers = (f"{row[name]:.2g}" if name.endswith("_error") else f"{row[name]:.4g}" for name in columns)
        table.add_row(Text(row["name"]), *numbers)
    if hidden:
        table.add_row(Text(f"... {hidden} more parameters"))
    console.print(table)
    console.print()
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    for name, value in describe(fit, diagnosis):
        facts.add_row(name, Text(value))
    console.print(facts)
    console.print()
    console.print(Text(says(fit.verdict.removeprefix(str(judged)).strip())))


def describe(fit: "Fit", diagnosis: "Diagnosis | None" = None) -> list[tuple[str, str]]:
    """The facts under the table."""
    facts = [
        ("bound", f"{fit.bound:.4f} nats on {fit.n_draws} {fit.settings['draws']} draws"),
        ("check bound", f"{fit.check_bound:.4f} ± {fit.check_error:.4f} nats on fresh draws"),
        ("gap", f"{fit.gap:z.4f} nats"),
        ("status", str(fit.status)),
        (
            "work",
            f"{fit.n_evaluations} gradient evaluations, {fit.n_objective_evaluations} of the bound, "
            f"{fit.n_rounds} {'round' if fit.n_rounds == 1 else 'rounds'}, {fit.seconds:.2f} s",
        ),
    ]
    if fit.hyper is not None:
        named = jax.tree_util.tree_flatten_with_path(fit.hyper)[0]
        shown = [f"{dotted(path)} = {_short(value)}" for path, value in named]
        facts.insert(3, ("hyper", ", ".join(shown)))
    return facts + (_weighed(fit) if diagnosis is None else _diagnosed(diagnosis))


def _weighed(fit: "Fit") -> list[tuple[str, str]]:
    """What the weights of the check draws say."""
    if not len(fit.log_ratios):
        return []
    kept = f"{fit.settings['family']}; k-hat {fit.khat:.2f}, the weights keep {fit.weights.share:.0%} of the samples"
    return [("family", kept), ("evidence", evidence_in_words(fit))]


def evidence_in_words(weighed: Weighed) -> str:
    """The evidence with its error, or why there is none."""
    if weighed.up_to_constant:
        return "not known: the model leaves constants out of its log density, so that bounds are up to a constant too"
    if np.isfinite(weighed.evidence_error):
        return f"{weighed.evidence:.4f} ± {weighed.evidence_error:.2g} nats by importance sampling"
    return (
        f"{weighed.evidence:.4f} nats by importance sampling, of unknown error: k-hat is {weighed.khat:.2f}, and above 0.7 "
        "weights cannot tell"
    )


def _diagnosed(diagnosis: "Diagnosis") -> list[tuple[str, str]]:
    return [
        ("optimisation", f"{diagnosis.optimisation_error:.1e} nats from the top"),
        ("draws", f"± {diagnosis.bound_error:.2g} nats on the bound; on means and sds as in the table"),
        (
            "family",
            f"{diagnosis.fit.settings['family']}; k-hat {diagnosis.khat:.2f}, {diagnosis.family_gap:.2g} nats below the evidence",
        ),
        ("evidence", evidence_in_words(diagnosis)),
    ]


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.4g}" if array.ndim == 0 else f"array{array.shape}"
