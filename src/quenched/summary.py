"""A fit as a table: for reading in a terminal, and as rows for anything else."""

import io
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from quenched.diagnostics import Diagnosis
    from quenched.result import Fit

_ROWS_SHOWN = 30


class Summary(list[dict[str, Any]]):
    """One row per number in natural units: name, mean, sd, and their errors when the fit was diagnosed."""

    def __init__(self, fit: "Fit", diagnosis: "Diagnosis | None"):
        super().__init__(rows_of(fit, diagnosis))
        self._text = render(fit, diagnosis)

    def __repr__(self) -> str:
        return self._text

    __str__ = __repr__


def rows_of(fit: "Fit", diagnosis: "Diagnosis | None" = None) -> list[dict[str, Any]]:
    """One row per number in natural units."""
    columns = {"mean": fit.mean, "sd": fit.sd}
    if diagnosis is not None:
        columns = {
            "mean": fit.mean,
            "mean_error": diagnosis.mean_error,
            "sd": fit.sd,
            "sd_error": diagnosis.sd_error,
        }
    leaves = {name: jax.tree.leaves(tree) for name, tree in columns.items()}
    table = []
    for position, leaf in enumerate(fit.space.leaves):
        for index in np.ndindex(leaf.shape):
            name = leaf.name + (f"[{','.join(map(str, index))}]" if index else "")
            numbers = {column: float(np.asarray(values[position])[index]) for column, values in leaves.items()}
            table.append({"name": name, **numbers})
    return table


def render(fit: "Fit", diagnosis: "Diagnosis | None" = None) -> str:
    """The table, the bound with its check, and the verdict."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100)
    print_summary(fit, console, diagnosis)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # pyright: ignore


def print_summary(fit: "Fit", console, diagnosis: "Diagnosis | None" = None) -> None:
    """Print to a rich console."""
    from rich.table import Table
    from rich.text import Text  # plain: names and messages may hold square brackets, which rich takes for styles

    everything = rows_of(fit, diagnosis)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("parameter")
    columns = [name for name in everything[0] if name != "name"]
    for name in columns:
        table.add_column("±" if name.endswith("_error") else name, justify="right")
    for row in everything[:_ROWS_SHOWN]:
        numbers = (f"{row[name]:.2g}" if name.endswith("_error") else f"{row[name]:.4g}" for name in columns)
        table.add_row(Text(row["name"]), *numbers)
    if len(everything) > _ROWS_SHOWN:
        table.add_row(f"... {len(everything) - _ROWS_SHOWN} more", *("" for _ in columns))
    console.print(table)
    console.print()
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    for name, value in describe(fit, diagnosis):
        facts.add_row(name, Text(value))
    console.print(facts)
    console.print()
    console.print(Text(fit.verdict), style=None if fit.converged and not fit.overfits else "bold")
    if diagnosis is not None:
        console.print(Text(diagnosis.verdict))


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
        shown = [f"{jax.tree_util.keystr(path, simple=True, separator='.')} = {_short(value)}" for path, value in named]
        facts.insert(3, ("hyper", ", ".join(shown)))
    return facts if diagnosis is None else facts + _diagnosed(diagnosis)


def _diagnosed(diagnosis: "Diagnosis") -> list[tuple[str, str]]:
    return [
        ("optimisation", f"{diagnosis.optimisation_error:.1e} nats from the top"),
        ("draws", f"± {diagnosis.bound_error:.2g} nats on the bound; on means and sds as in the table"),
        ("family", f"k-hat {diagnosis.khat:.2f}, {diagnosis.family_gap:.2g} nats below the evidence"),
        ("evidence", f"{diagnosis.evidence:.4f} ± {diagnosis.evidence_error:.4f} nats by importance sampling"),
    ]


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.4g}" if array.ndim == 0 else f"array{array.shape}"
