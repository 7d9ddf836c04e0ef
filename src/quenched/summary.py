"""A fit as a table: for reading in a terminal, and as rows for anything else."""

import io
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from quenched.result import Fit

_ROWS_SHOWN = 30


def rows(fit: "Fit") -> list[dict[str, Any]]:
    """One row per number in natural units."""
    table = []
    for leaf, mean, sd in zip(fit.space.leaves, jax.tree.leaves(fit.mean), jax.tree.leaves(fit.sd), strict=True):
        for index in np.ndindex(leaf.shape):
            name = leaf.name + (f"[{','.join(map(str, index))}]" if index else "")
            table.append({"name": name, "mean": float(mean[index]), "sd": float(sd[index])})
    return table


def render(fit: "Fit") -> str:
    """The table, the bound with its check, and the verdict."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100)
    print_summary(fit, console)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # pyright: ignore


def print_summary(fit: "Fit", console) -> None:
    """Print to a rich console."""
    from rich.table import Table
    from rich.text import Text  # plain: names and messages may hold square brackets, which rich takes for styles

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("parameter")
    for column in ("mean", "sd"):
        table.add_column(column, justify="right")
    everything = rows(fit)
    for row in everything[:_ROWS_SHOWN]:
        table.add_row(Text(row["name"]), f"{row['mean']:.4g}", f"{row['sd']:.4g}")
    if len(everything) > _ROWS_SHOWN:
        table.add_row(f"... {len(everything) - _ROWS_SHOWN} more", "", "")
    console.print(table)
    console.print()
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    for name, value in describe(fit):
        facts.add_row(name, Text(value))
    console.print(facts)
    console.print()
    console.print(Text(fit.verdict), style=None if fit.converged and not fit.overfits else "bold")


def describe(fit: "Fit") -> list[tuple[str, str]]:
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
    return facts


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.4g}" if array.ndim == 0 else f"array{array.shape}"
