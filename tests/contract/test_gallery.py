"""The gallery: examples are whole, say what their verdict was, and are run again only when something has changed."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def gallery(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS))
    module = importlib.import_module("gallery")
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept")
    yield module
    for name in ("gallery", "percent"):
        sys.modules.pop(name, None)


EXAMPLES = sorted((DOCS.parent / "examples" / "gallery").glob("[0-9]*.py"))


def test_there_are_fifteen():
    assert len(EXAMPLES) == 15


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_names_its_data_shows_a_picture_and_tells_of_its_verdict(path, gallery):
    text = path.read_text(encoding="utf-8")
    cells = gallery.read_cells(text)
    assert cells[0].kind == "markdown"
    assert cells[0].source.startswith("# ")
    assert "Data: " in cells[0].source
    assert any(cell.source.startswith("## What the verdict was, and what was done") for cell in cells)
    assert "plot_" in text or "new_figure" in text
    assert ("QUENCHED_DATA" in text or "datasets." in text) == ("data" in gallery.needs(text))
    compile("\n".join(cell.source for cell in cells if cell.kind == "code"), str(path), "exec")


def test_a_plot_that_is_seen_in_an_example_is_drawn_there():
    rows = [line for line in (DOCS / "plots.md").read_text(encoding="utf-8").splitlines() if "(gallery/" in line]
    seen = [(re.findall(r"`(plot_\w+)", row)[0], re.findall(r"gallery/(\w+)", row)[0]) for row in rows]
    assert len(seen) > 5
    examples = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES}
    assert [(plot, name) for plot, name in seen if f"{plot}(" not in examples[name]] == []


def test_what_was_printed_and_drawn_is_kept_by_content(gallery, monkeypatch, tmp_path):
    path = tmp_path / "01_toy.py"
    code = "from types import SimpleNamespace as N\nfit = N(answer='Trust it.')\nprint('one', 6 * 7)\nfit.answer"
    path.write_text(f"# %% [markdown]\n# # A toy\n#\n# About it.\n\n# %%\n{code}\n", encoding="utf-8")
    monkeypatch.setattr(gallery, "paths", lambda: [path])
    ran = []
    run = gallery._run
    monkeypatch.setattr(gallery, "_run", lambda *given: (ran.append(given), run(*given)))
    for _ in range(2):
        (found,) = gallery.examples()
        assert "one 42\nTrust it." in gallery.page(found)
    assert len(ran) == 1
    assert "*Trust it.*" in gallery.index([found])
    path.write_text(path.read_text(encoding="utf-8").replace("6 * 7", "7 * 7"), encoding="utf-8")
    (found,) = gallery.examples()
    assert "one 49" in gallery.page(found)
    assert len(list(gallery.KEPT.iterdir())) == 1  # what is out of date is gone
    assert json.loads((found.folder / "result.json").read_text(encoding="utf-8"))["answer"] == "Trust it."


def test_an_example_without_its_package_says_so_and_one_that_fails_ends_the_build(gallery, monkeypatch, tmp_path):
    path = tmp_path / "01_toy.py"
    monkeypatch.setattr(gallery, "paths", lambda: [path])
    path.write_text(
        "# needs: nosuchpackage\n\n# %% [markdown]\n# # A toy\n#\n# About.\n\n# %%\n1 / 0\n", encoding="utf-8"
    )
    (found,) = gallery.examples()
    assert "was not run in this build: the package nosuchpackage is not installed" in gallery.page(found)
    path.write_text(path.read_text(encoding="utf-8").replace("# needs: nosuchpackage\n", ""), encoding="utf-8")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        gallery.examples()


def test_every_finding_and_room_has_its_line(gallery):
    from quenched.diagnostics.verdict import FINDINGS

    hooks = importlib.import_module("hooks")
    assert list(hooks.FOUND) == [finding.name for finding in FINDINGS]
    rooms = importlib.import_module("rooms")
    assert {room.name for room in rooms.rooms()} >= {
        "draws",
        "families",
        "fitting",
        "targets",
        "plots",
        "report",
        "files",
    }
    assert "plot_pair" in rooms.page(next(room for room in rooms.rooms() if room.name == "plots"))
    messages = importlib.import_module("messages")
    assert any("matched draws" in message.text for message in messages.messages())
    by_name = ("it was loaded without its model", "its messages are none", "has waited … s for the others")
    for text in by_name:  # a constant, what is handed to a function that raises it, and what a function returns
        assert any(text in message.text for message in messages.messages()), text
    for name in ("hooks", "rooms", "messages"):
        sys.modules.pop(name, None)
