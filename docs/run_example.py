"""Runs one example of the gallery, cell by cell, and writes what it printed and drew: `run_example.py EXAMPLE.py FOLDER`."""

import ast
import contextlib
import io
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from percent import read_cells


def main(example: Path, folder: Path) -> None:
    """Run the cells in one namespace; `result.json` appears only when all of them have run."""
    warnings.simplefilter("ignore")
    names: dict[str, Any] = {"__name__": "__example__", "__file__": str(example)}
    outputs, began = [], time.perf_counter()
    for number, cell in enumerate(read_cells(example.read_text(encoding="utf-8"))):
        if cell.kind == "code":
            outputs.append({"cell": number, **_run(cell.source, names, example, folder, number)})
    if "fit" not in names:
        raise SystemExit(f"{example}: an example must leave the fit that it ends with as `fit`.")
    result = {
        "outputs": outputs,
        "answer": str(names["fit"].answer),
        "seconds": time.perf_counter() - began,
    }
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


def _run(source: str, names: dict[str, Any], example: Path, folder: Path, number: int) -> dict[str, Any]:
    """Run a cell; its last line, if an expression, is shown."""
    tree = ast.parse(source, str(example))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(example), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(example), "eval"), names)
    figure = _figure(value)
    picture = None
    if figure is not None:
        picture = f"{example.stem}_{number}.png"
        figure.savefig(folder / picture, dpi=110)
    elif value is not None:
        printed.write(f"{value}\n")
    return {"text": printed.getvalue(), "picture": picture}


def _figure(value: Any) -> Any:
    """The figure of what a plot has returned: of axes, of several, or itself."""
    from matplotlib.artist import Artist

    value = value.flat[0] if hasattr(value, "flat") and len(value.flat) else value
    return value.get_figure(root=True) if isinstance(value, Artist) else None


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
