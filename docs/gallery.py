"""The gallery: examples that are run when the pages are built, each in a process of its own, two at a time.

What an example printed and drew is kept in `.gallery/`, by a hash of its text, of the library's source and of the versions
that matter, so that a build runs only what has changed. An example that fails ends the build; one whose package or data are
not here is shown without output, and says so.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from percent import Cell, needs, read_cells

DOCS = Path(__file__).parent
ROOT = DOCS.parent
EXAMPLES = ROOT / "examples" / "gallery"
KEPT = ROOT / ".gallery"
DATA = "QUENCHED_DATA"
_WIDTH = 96  # columns of what is printed
_SECONDS = 1200  # after which an example is stuck, on a busy machine too


class Example(NamedTuple):
    """An example and what came of it."""

    path: Path
    cells: list[Cell]
    missing: list[str]  # why it was not run
    folder: Path  # of its pictures
    result: dict[str, Any]

    @property
    def title(self) -> str:
        return self.cells[0].source.splitlines()[0].removeprefix("# ")

    @property
    def about(self) -> str:
        """The first paragraph."""
        return self.cells[0].source.split("\n\n")[1].replace("\n", " ")

    @property
    def pictures(self) -> list[str]:
        return [output["picture"] for output in self.result.get("outputs", ()) if output["picture"]]


def paths() -> list[Path]:
    """The files of the examples, in their order."""
    return sorted(EXAMPLES.glob("[0-9]*.py"))


def examples() -> list[Example]:
    """Every example, run if need be."""
    source = _hash(*sorted((ROOT / "src" / "quenched").rglob("*.py")), DOCS / "run_example.py", DOCS / "percent.py")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda path: _example(path, source), paths()))
    _forget({example.folder for example in found})
    return found


def page(example: Example) -> str:
    """The example as Markdown."""
    outputs = {output["cell"]: output for output in example.result.get("outputs", ())}
    parts = []
    for number, cell in enumerate(example.cells):
        parts.append(cell.source if cell.kind == "markdown" else f"```python\n{cell.source}\n```")
        if number == 0:
            parts.append(_state(example))
        if number in outputs and outputs[number]["text"].strip():
            parts.append(f"```text\n{_wrapped(outputs[number]['text'])}\n```")
        if number in outputs and outputs[number]["picture"]:
            parts.append(f"![{example.title}]({outputs[number]['picture']})")
    return "\n\n".join(parts) + "\n"


def index(found: list[Example]) -> str:
    """The first page: a card for each, with its last picture and its verdict."""
    cards = []
    for example in found:
        picture = (
            f"[![{example.title}]({example.pictures[-1]})]({example.path.stem}.md)\n\n" if example.pictures else ""
        )
        said = f"*{example.result['answer']}*" if example.result else f"Not run here: {'; '.join(example.missing)}."
        cards.append(
            f'<div class="card" markdown>\n\n{picture}**[{example.title}]({example.path.stem}.md)**\n\n{example.about}\n\n{said}\n\n</div>'
        )
    head = (
        "# Gallery\n\nEvery example is a file in `examples/gallery/` that was run when these pages were built. The sentence in "
        "italics is the verdict on the fit that it ends with; each example says what the first one was, and what was done.\n\n"
    )
    return head + '<div class="cards" markdown>\n\n' + "\n\n".join(cards) + "\n\n</div>\n"


def _wrapped(text: str) -> str:
    """Sentences that are longer than a line of the page, in several; rows of tables stay as they are."""
    return "\n".join(part for line in text.rstrip().splitlines() for part in _parts(line))


def _parts(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= 1.2 * _WIDTH or "  " in line.strip():
        return [line]
    return textwrap.wrap(line, _WIDTH, subsequent_indent=indent)


def _state(example: Example) -> str:
    file = f"`examples/gallery/{example.path.name}`"
    if example.missing:
        return f'!!! warning "Not run"\n    {file} was not run in this build: {"; ".join(example.missing)}.'
    ran = f"{file}, run in {example.result['seconds']:.0f} s with JAX {_version('jax')}"
    return f"*{ran} when this page was built.*"


def _example(path: Path, source: str) -> Example:
    text = path.read_text(encoding="utf-8")
    cells, wanted = read_cells(text), needs(text)
    missing = [reason for name in wanted if (reason := _missing(name))]
    versions = [f"{name} {_version(name)}" for name in ("jax", "numpy", *wanted)]
    key = hashlib.sha256(repr((text, source, versions, missing)).encode()).hexdigest()[:16]
    folder = KEPT / f"{path.stem}-{key}"
    if missing:
        return Example(path, cells, missing, folder, {})
    if not (folder / "result.json").exists():
        _run(path, folder)
    return Example(path, cells, [], folder, json.loads((folder / "result.json").read_text(encoding="utf-8")))


def _run(path: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{DOCS}", "COLUMNS": str(_WIDTH)}
    command = [sys.executable, str(DOCS / "run_example.py"), str(path), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{path} failed:\n{done.stderr[-4000:]}")


def _missing(name: str) -> str | None:
    if name == "data":
        return None if os.environ.get(DATA) else f"{DATA} does not name a folder with the data"
    return None if importlib.util.find_spec(name) else f"the package {name} is not installed"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def _hash(*paths: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _forget(current: set[Path]) -> None:
    """Delete what earlier versions of the examples left, but for those that were not run now."""
    stems = {folder.name.rsplit("-", 1)[0] for folder in current if (folder / "result.json").exists()}
    for folder in KEPT.iterdir() if KEPT.exists() else ():
        if folder not in current and folder.name.rsplit("-", 1)[0] in stems:
            shutil.rmtree(folder)
