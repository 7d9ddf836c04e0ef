"""The parts of a page: escaped, self-contained, whole or not at all."""

import base64
import hashlib
import json
import os
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from quenched.plots import new_figure
from quenched.report import Document, Markup, facts, figure, picture, table, verdict_box

NASTY = "<script>alert('x')</script> & \"quotes\""


def test_everything_is_escaped():
    page = str(
        Document(NASTY, subtitle=NASTY, footer=NASTY).section(
            NASTY,
            NASTY,
            table([NASTY], [[NASTY]], caption=NASTY),
            facts([(NASTY, NASTY)]),
            verdict_box("good", NASTY, f"Because of {NASTY}"),
            picture(b"", "image/png", NASTY),
        )
    )
    assert page.count("<script") == 1  # ours
    assert page.count("&lt;script&gt;") == 15
    assert 'alt="&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; &quot;quotes&quot;"' in page


def test_only_our_script_may_run():
    page = str(Document("t"))
    script = page.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;" in page


def test_rows_for_the_script_cannot_end_it():
    shown = table(["name"], [[f"</script><img src=x>{i}"] for i in range(300)])
    held = shown.split('class="rows">')[1]
    assert held.index("</script>") == len(held) - len("</script></div>")
    assert json.loads(held.split("</script>")[0])[299] == ["</script><img src=x>299"]


def test_sections_are_listed_from_three_on():
    page = Document("t").section("one", "1").section("two", "2")
    assert "nav" not in str(page).split("</style>")[1].split("<script>")[0]
    assert '<a href="#section-3">three</a>' in str(page.section("three", "3"))
    assert '<h2 id="section-3">three</h2>' in str(page.section("three", "3"))


def test_markup_is_kept():
    assert "<em>yes</em>" in str(Document("t").section("h", Markup("<em>yes</em>")))


def test_sections_keep_their_order_and_do_not_change_the_page_before():
    first = Document("t").section("one", "uno")
    both = first.section("two", "dos")
    assert "dos" not in str(first)
    assert str(both).index("uno") < str(both).index("dos")


def test_a_number_that_is_missing_leaves_its_column_one_of_numbers():
    assert '<td class="number">–</td>' in table(["x"], [["12"], ["–"]])


def test_columns_of_numbers_are_aligned_to_the_right():
    shown = table(["name", "value", "mixed", "±"], [["a", 1.23456, None, "1 ± 2"], ["b", 2, "x", "-3 ± 0.1"]])
    assert (
        '<td class="text">a</td><td class="number">1.235</td><td class="text">–</td><td class="number">1 ± 2</td>'
        in shown
    )


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"has 1 cells, but there are 2 columns"):
        table(["a", "b"], [[1]])


def test_a_figure_is_a_picture_inside_the_page():
    drawn = new_figure(2, 1)
    drawn.subplots().plot([0, 1], [0, 1])
    shown = figure(drawn, "A line.")
    assert "<figcaption>A line.</figcaption>" in shown
    encoded = shown.split("data:image/svg+xml;base64,")[1].split('"')[0]
    root = ElementTree.fromstring(base64.b64decode(encoded))
    links = [v for e in root.iter() for key, v in e.attrib.items() if key.endswith("href")]
    assert links
    assert all(link.startswith("#") for link in links)


def test_only_charts_are_inverted_on_a_dark_screen():
    assert '<figure class="chart">' in picture(b"", "image/svg+xml", chart=True)
    assert "<figure>" in picture(b"", "image/jpeg")


def test_numbers_of_numpy_are_rounded_like_others():
    assert '<td class="number">0.3333</td>' in table(["x"], [[np.float64(1 / 3)]])


def test_a_failed_write_leaves_the_old_page(tmp_path, monkeypatch):
    path = Document("old").write(tmp_path / "page.html")

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Document("new").write(path)
    assert "<title>old</title>" in path.read_text(encoding="utf-8")
    assert os.listdir(tmp_path) == ["page.html"]
