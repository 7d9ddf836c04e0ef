"""README, start and guide cannot rot: the code of the guide runs, and the first examples print what is shown."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
GUIDE = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guide.md").read_text(encoding="utf-8"), re.DOTALL)


def posterior(text: str) -> list[str]:
    """The lines that do not depend on the machine: the answer, and the table of means and standard deviations."""
    lines = [line.rstrip() for line in text.splitlines()]
    first = lines.index("")
    return lines[: lines.index("", first + 1)]


def test_the_first_example_prints_what_is_shown(capsys):
    shown = re.findall(r"```text\n(.*?)```", README, re.DOTALL)[0]
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    assert posterior(capsys.readouterr().out) == posterior(shown)


def test_the_first_page_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    names: dict = {}
    for block, shown in re.findall(r"```python\n(.*?)```\s*(?:```text\n(.*?)```)?", page, re.DOTALL):
        exec(compile(block, "start.md", "exec"), names)
        printed = capsys.readouterr().out
        assert printed.startswith(shown.removesuffix("...\n")) if shown.endswith("...\n") else printed == shown
    assert (tmp_path / "seals.png").exists()
    assert (tmp_path / "seals.npz").exists()


def test_the_tables_of_the_guide_are_those_that_the_example_prints(capsys):
    """All but the last column: how many gradients it takes hangs on rounding."""
    runpy.run_path(str(ROOT / "examples" / "families.py"), run_name="__main__")
    printed = [line.rsplit("|", 2)[0] for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    assert len(printed) == 7
    assert [line for line in printed if line not in guide] == []


def test_the_first_example_has_ten_lines():
    assert len([line for line in BLOCKS[0].splitlines() if line]) <= 10


def test_every_block_runs_after_the_ones_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in GUIDE:
        exec(compile(block, "guide.md", "exec"), names)
    assert (tmp_path / "fit.png").exists()
    assert names["fit"].converged
    assert set(names["curve"].hyper) == {"prior_precision", "noise_precision"}
    assert names["host"].mean == pytest.approx([3.0, 3.0])
    means = [fit.mean["mu"] for fit in names["fits"]]
    assert means[1] > means[0]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("name", re.findall(r"`?((?:examples/\w+\.py)|(?:[A-Z]+\.(?:md|cff)))\b", README))
def test_files_that_are_named_exist(name):
    assert (ROOT / name).exists()


def test_every_sentence_of_the_verdict_has_its_remedy_in_the_documents():
    import importlib.util

    from quenched.trust import RULES

    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    assert list(hooks.REMEDIES) == [rule.name for rule in RULES]
    assert all(f"| {rule.name} |" in hooks.rules() for rule in RULES)
