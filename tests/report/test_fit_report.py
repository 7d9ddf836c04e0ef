"""The report of a fit."""

import html
import json
import sys
from dataclasses import replace
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from fits import ONE_ROUND, THREE_ROUNDS, make_fit
from quenched.projected import Collapsed
from quenched.report import fit_report, write_report
from quenched.results import Optimum, Round, Status
from quenched.trust import BAD

START = {"mu": 4.0, "tau": 3.0, "eta": np.zeros(8)}


def schools(**options):
    return make_fit(START, transforms={"tau": qd.positive}, **options)


class References(HTMLParser):
    """Whatever a browser would fetch or run."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.feed(page)

    @property
    def pictures(self):
        return [address for address in self.addresses if address.startswith("data:image")]

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]


def test_nothing_is_fetched():
    page = str(fit_report(schools(rounds=THREE_ROUNDS), "title"))
    found = References(page)
    pictures = found.pictures
    assert len(pictures) == 2  # a diagonal posterior has no correlations to show
    assert all(address.startswith("#section-") or address == "data:," for address in {*found.addresses} - {*pictures})
    assert not found.tags & {"iframe", "object"}
    assert "url(" not in page
    assert "@import" not in page
    assert "http:" not in page
    assert "https:" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_the_verdict_comes_first():
    fit = schools()
    page = str(fit_report(fit))
    words, why = fit.verdict.split(": ", 1)
    said = html.escape(why[:1].upper() + why[1:])
    assert page.index(f"<strong>{words}</strong>") < page.index(said) < page.index("<table")


@pytest.mark.parametrize(
    ("options", "level", "heading"),
    [
        ({}, "good", "Trust means and sds"),
        ({"rounds": (Round(64, -30.0, -90.0, 0.01, 1),)}, "bad", "Trust neither means nor sds"),
        ({"status": Status.MAX_SECONDS}, "bad", "Not converged"),
        ({"status": Status.INTERRUPTED}, "bad", "Not converged"),
        ({"status": Status.NO_ASCENT}, "bad", "The fit failed"),
        ({"status": Status.NOT_FINITE, "rounds": ()}, "bad", "The fit failed"),
    ],
)
def test_the_verdict_has_a_level(options, level, heading):
    page = str(fit_report(schools(**options)))
    assert f'class="verdict {level}"' in page
    assert f"<strong>{heading}</strong>" in page


def test_the_numbers_are_there():
    fit = schools(rounds=THREE_ROUNDS, hyper={"noise_precision": 25.5, "lengths": np.array([1.25, 2.5])})
    page = str(fit_report(fit, "Eight schools"))
    assert "<h1>Eight schools</h1>" in page
    for row in fit.summary():
        assert f'<td class="text">{row["name"]}</td><td class="number">{row["mean"]:.4g}</td>' in page
    assert "-31.6000 ± 0.1000" in page
    assert page.count("<tr>") == 1 + 10 + 1 + 3 + 1 + 3
    assert '<td class="text">lengths[1]</td><td class="number">2.5</td>' in page
    assert "<dt>seed</dt><dd>7</dd>" in page
    assert "python 3.11.7, jax 0.10.2" in page
    assert f"quenched {qd.__version__}" in page


def test_several_optima_are_listed():
    optima = (Optimum(-32.1, np.zeros(10), 3), Optimum(-40.25, np.ones(10), 1))
    assert "-40.2500" in str(fit_report(schools(optima=optima)))
    assert "Optima" not in str(fit_report(schools()))


def test_a_fit_that_reached_nothing_has_no_bound():
    page = str(fit_report(schools(rounds=(), status=Status.NOT_FINITE)))
    assert "not reached" in page
    assert "nan" not in page.split("<style>")[0] + page.split("</style>")[1].split("base64")[0]


def test_many_numbers_are_data_for_the_script_with_the_worst_first():
    fit = make_fit({"w": np.zeros(599), "b": 1.0})
    ratios = fit.weighed_ratios + 0.3 * fit.check_draws[:, 7]  # the target is further along the seventh of w
    page = str(fit_report(replace(fit.settled, log_ratios=ratios)))
    rows = json.loads(page.split('<script type="application/json" class="rows">')[1].split("</script>")[0])
    assert len(rows) == 600
    assert rows[0][0] == "w[6]"
    assert float(rows[0][-1]) == pytest.approx(0.3, abs=0.15)
    assert page.count("<tr><td") == 200 + 2 + 1 + 0  # of the numbers, of the arrays, and one round
    assert "The first 200 of 600 rows." in page


def test_a_diagnosis_says_which_numbers_other_draws_would_move_most():
    """Not their check draws, whose noise is largest in some of many numbers that are known exactly."""
    log_density = lambda p: -0.5 * (p["w"] ** 2).sum() - jnp.logaddexp(p["b"], -2.0 * p["b"]).sum()
    fit = qd.fit(log_density, {"b": np.zeros(20), "w": np.zeros(300)}, family="diagonal", progress=False)
    fit.diagnose(progress=False)
    assert fit.khat > BAD  # or importance weights would tell
    page = str(fit_report(fit))
    rows = json.loads(page.split('<script type="application/json" class="rows">')[1].split("</script>")[0])
    assert {row[0].split("[")[0] for row in rows[:20]} == {"b"}
    assert "First those whose mean other draws would move most." in page


def test_where_groups_are_integrated_over_the_weights_are_those_of_what_they_share():
    shift = np.zeros(600)
    shift[8] = 0.7
    collapsed = Collapsed(np.zeros(200), shift, np.ones(600), np.zeros(600), np.zeros(600), n_outer=1)
    fit = replace(make_fit({"b": 1.0, "w": np.zeros(599)}), collapsed=collapsed)
    page = str(fit_report(fit))
    rows = json.loads(page.split('<script type="application/json" class="rows">')[1].split("</script>")[0])
    assert rows[0][0] == "w[7]"
    assert float(rows[0][-1]) == pytest.approx(0.7)


def test_what_the_verdict_names_comes_before_what_moves_more_by_chance():
    shift, ratio, noise = np.zeros(600), np.ones(600), np.full(600, 0.2)
    shift[8], ratio[3], noise[3] = 0.15, 0.6, 0.01
    collapsed = Collapsed(np.zeros(200), shift, ratio, noise, noise, n_outer=1)
    fit = replace(make_fit({"b": 1.0, "w": np.zeros(599)}), collapsed=collapsed)
    page = str(fit_report(fit))
    rows = json.loads(page.split('<script type="application/json" class="rows">')[1].split("</script>")[0])
    assert [row[0] for row in rows[:2]] == ["w[2]", "w[7]"]
    assert "First those that weights find clearly off, then those whose mean" in page


def test_without_matplotlib_the_numbers_are_still_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    page = str(fit_report(schools()))
    assert "pip install &quot;quenched[plots]&quot;" in page
    assert "tau" in page
    assert not References(page).pictures


def test_the_same_fit_gives_the_same_page(tmp_path):
    pages = [write_report(schools(rounds=ONE_ROUND), tmp_path / name).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]
