"""The page on troubleshooting has every sentence that a fit says: those of real fits are looked up in it."""

import importlib
import re
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.diagnostics.verdict import FINDINGS
from quenched.trust import RULES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "troubleshooting.md"
END = re.compile(r"(?<=[.?…]) (?=[A-Z])")  # of a sentence


@pytest.fixture
def messages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module("messages")
    sys.modules.pop("messages", None)


def by_hand() -> list[str]:
    """What the tables of the page explain in words of their own."""
    cells = re.findall(r"^\| (\*.+?\*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [text.replace("...", "…") + "…" for cell in cells for text in re.findall(r"\*(.+?)\*", cell)]


def is_listed(text: str, known: list[str]) -> bool:
    """Whether it is one of these, with values in the place of `…`."""
    ways = [way for one in known for way in one.split(" (or) ") if way.replace("…", "").strip(" .:;,")]
    return any(re.fullmatch(re.escape(way.removesuffix(".")).replace("…", ".*") + r"\.?", text) for way in ways)


def two_modes(w):
    return jnp.logaddexp(-0.5 * ((w - 4.0) / 0.5) ** 2, -0.5 * ((w + 4.0) / 0.5) ** 2)


def wide_logarithm(w):
    return -0.5 * (jnp.log(w) / 4.0) ** 2 - jnp.log(w)


def diagnosed(log_density, start, **options):
    fit = qd.fit(log_density, start, progress=False, **options)
    fit.diagnose(progress=False)
    return fit


FITS = {
    "starts": lambda: qd.fit(lambda w: -0.5 * w**2, 0.0, starts=3, progress=False),
    "another mode": lambda: qd.fit(two_modes, 4.0, progress=False),
    "a large constant": lambda: qd.fit(lambda w: 1e15 - 0.5 * w**2, 0.0, progress=False),
    "a wide logarithm": lambda: qd.fit(wide_logarithm, 1.0, transforms=qd.positive, progress=False),
    "diagnosed": lambda: diagnosed(lambda p: p["t"] - jnp.exp(p["t"]) - 0.5 * p["w"] ** 2, {"t": 0.0, "w": 0.0}),
    "diagnosed and warped": lambda: diagnosed(lambda t: t - jnp.exp(t), 0.0, family="warped"),
    "diagnosed, with few draws": lambda: diagnosed(lambda w: -0.5 * w @ w - jnp.sum(w**4), np.zeros(3), draws=16),
    "few draws": lambda: qd.fit(
        lambda w: -0.5 * w @ w - jnp.sum(w**4), np.zeros(4), draws=qd.iid(8, 4), progress=False
    ),
}


@pytest.mark.parametrize("case", FITS)
@pytest.mark.filterwarnings("ignore")
def test_what_a_fit_says_is_listed(case, messages):
    fit = FITS[case]()
    known = [text for _, text in messages.sentences()] + [message.text for message in messages.messages()]
    for remark in fit.all_remarks:
        assert is_listed(remark, known), remark
    rest = fit.verdict.removeprefix(str(fit.answer)).strip()
    known += [status.message for status in qd.Status] + by_hand()
    known += messages.reasons("diagnostics/verdict.py", "Finding", 2).values()
    whole = [sentence for one in known for sentence in END.split(one)]
    for sentence in filter(None, END.split(rest)):
        assert is_listed(sentence, whole), sentence
    more = ["", *(text.removeprefix("…") for text in by_hand() if text.startswith("…;"))]
    reasons = messages.reasons("trust/answer.py", "Rule", 3).values()
    assert is_listed(fit.answer.why, [reason + end for reason in reasons for end in more]), fit.answer.why


@pytest.mark.parametrize(
    ("path", "kind", "place", "names"),
    [
        ("trust/answer.py", "Rule", 3, [rule.name for rule in RULES]),
        ("diagnostics/verdict.py", "Finding", 2, [finding.name for finding in FINDINGS]),
    ],
)
def test_every_rule_and_finding_has_its_words(path, kind, place, names, messages):
    found = messages.reasons(path, kind, place)
    assert set(found) == set(names)
    assert all(re.search("[a-z]{4}", text) for text in found.values())


def test_the_page_asks_for_all_tables():
    page = PAGE.read_text(encoding="utf-8")
    for part in ("rules", "findings", "statuses", "messages", "sentences"):
        assert f"<!-- {part} -->" in page
