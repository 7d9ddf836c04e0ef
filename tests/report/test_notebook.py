"""What notebooks show: verdict, table and picture, escaped; and the line of a running fit."""

import itertools
import re
import sys
import types
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from fits import make_fit
from quenched.fitting import display

EVIL = "<script>alert(1)</script>&"


def parsed(markup):
    """HTML that is well formed is XML, but for its entities."""
    return ElementTree.fromstring(markup)


def text_of(markup):
    return " ".join("".join(parsed(markup).itertext()).split())


def sharpened(w, data):
    """Right with a factor of one half, too narrow with more."""
    y, factor = data
    return -factor * jnp.sum((y - w) ** 2) - 0.5 * w**2


@pytest.fixture(scope="module")
def fits():
    data = np.random.default_rng(0).normal(size=(30, 4))
    data[3] = np.nan
    with pytest.warns(UserWarning, match="1 of 30 fits failed"):
        return qd.fit_many(lambda w, y: -0.5 * jnp.sum((y - w) ** 2), np.zeros(()), data, progress=False)


@pytest.fixture(scope="module")
def diagnosed():
    fit = qd.fit(lambda p: -0.5 * jnp.sum(p[EVIL] ** 2), {EVIL: np.zeros(3)}, progress=False)
    fit.diagnose(progress=False)
    return fit


def test_a_fit_shows_its_verdict_its_numbers_and_a_picture(diagnosed):
    plain = make_fit({"mu": 4.0, "w": np.zeros(40)})._repr_html_()
    assert "... 30 more" in text_of(plain)
    assert plain.count("<svg") > 5
    for markup in (diagnosed._repr_html_(), diagnosed.diagnosis._repr_html_()):
        said = text_of(markup)
        assert diagnosed.diagnosis.answer.trust.words in said
        assert f"{EVIL}[0]" in said
        assert "<script" not in markup
        assert "#009E73" in markup
        assert {len(row) for row in parsed(markup).find(".//thead/..").iter("tr")} == {9}


def test_many_fits_show_those_that_failed_first(fits):
    markup = fits._repr_html_()
    rows = [[cell.text for cell in row] for row in parsed(markup).iter("tr")]
    assert rows[1][:2] == ["3", "not_finite"]
    assert "29 of 30 fits converged" in text_of(markup)
    widths = [float(rect.get("width")) for rect in parsed(markup).iter("rect")]
    assert widths == pytest.approx([260 * 29 / 30, 0.0, 260 / 30], abs=0.1)


@pytest.mark.parametrize(("factor", "colour"), [(0.5, "#009E73"), (4.0, "#D55E00")])
def test_a_calibration_shows_its_ranks(factor, colour):
    def simulate(random):
        w = random.normal()
        return np.asarray(w), (random.normal(w, 1.0, 4), factor)

    calibration = qd.calibrate(simulate, sharpened, np.zeros(()), n=60, progress=False)
    markup = calibration._repr_html_()
    assert text_of(markup).startswith("✓ Calibrated" if factor == 0.5 else "✕ Not calibrated")
    assert colour in markup
    curve = parsed(markup).find(".//polyline").get("points").split()
    assert len(curve) == len(calibration.band.points)


def test_a_log_file_gets_whole_lines_ever_more_rarely(monkeypatch, capsys):
    clock = iter(np.arange(0.0, 1000.0, 1.0))
    monkeypatch.setattr(display.time, "perf_counter", lambda: next(clock))
    log = display.display_for(True)
    log.start()
    for place in range(300):
        log.update(f"at {place}")
    log.stop()
    lines = capsys.readouterr().err.splitlines()
    seconds = [int(re.search(r"(\d+) s$", line).group(1)) for line in lines]
    assert seconds[0] == 10
    assert 5 < len(seconds) < 12
    assert all(later >= 1.5 * earlier for earlier, later in itertools.pairwise(seconds))
    assert not re.search("[\x1b\r]", "".join(lines))


def test_a_notebook_has_one_output_that_is_emptied(monkeypatch):
    shown = []

    class Handle:
        def update(self, value):
            shown.append(value._repr_html_())

    kernel = types.SimpleNamespace(kernel=object())
    notebook = types.ModuleType("IPython.display")
    notebook.display = lambda value, display_id: shown.append(value._repr_html_()) or Handle()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython, ipython.display = lambda: kernel, notebook
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    monkeypatch.setattr(display, "_REFRESH", -1.0)  # a quick fit is over before it is shown twice
    qd.fit(lambda w: -jnp.cosh(w), 0.0)
    assert "starting" in shown[0]
    assert shown[-1] == ""
    assert any("nats" in line for line in shown)


def test_silence_is_silent(capsys):
    qd.fit(lambda w: -0.5 * w**2, 0.0, progress=False)
    qd.fit(lambda w: -0.5 * w**2, 0.0)
    assert capsys.readouterr() == ("", "")
