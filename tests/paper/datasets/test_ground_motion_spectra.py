"""Spectra of ground motion: read from the user's folder; without them, the way to get them."""

import pytest

from quenched.paper import datasets

HEADING = "dataset,event,station,sensor,Mw,R_hyp_km,frequency_hz,fas,usable\n"
ROWS = (
    "kiknet_fksh11,E1,FKSH11,borehole,5.5,30,1,2.5,1\n"
    "kiknet_fksh11,E1,FKSH11,borehole,5.5,30,2,3.5,0\n"
    "kiknet_fksh11,E1,FKSH11,surface,5.5,30,1,9.5,1\n"
)


@pytest.mark.parametrize(("name", "points", "events"), [("fksh11", 2000, 8), ("kmmh14", 1999, 8), ("laquila", 322, 1)])
def test_the_real_sets_have_their_documented_sizes(data, name, points, events):
    columns = datasets.ground_motion(name)
    assert len(columns["fas"]) == points
    assert len(set(columns["event"])) == events
    assert (columns["fas"] > 0).all()
    assert set(columns["usable"]) == {1.0}


def test_the_borehole_comes_before_the_surface(own_folder):
    (own_folder / "groundmotion").mkdir()
    (own_folder / "groundmotion/fas_records_dense.csv").write_text("# a comment\n" + HEADING + ROWS)
    assert datasets.ground_motion("fksh11")["fas"].tolist() == [2.5]  # the unusable row is left out
    with pytest.raises(datasets.DatasetError, match="has no rows with the dataset kiknet_kmmh14"):
        datasets.ground_motion("kmmh14")


@pytest.mark.parametrize(
    ("text", "message"),
    [("event,Mw\nA,5\n", "no rows with the dataset kiknet_fksh11 and a sensor"), ("event,Mw\n", "no rows below")],
)
def test_another_table_is_named_with_what_is_needed(own_folder, text, message):
    (own_folder / "groundmotion").mkdir()
    (own_folder / "groundmotion/fas_records_dense.csv").write_text(text)
    with pytest.raises(datasets.DatasetError, match=rf"fas_records_dense\.csv.*{message}.*with the columns dataset"):
        datasets.ground_motion("fksh11")


def test_without_files_the_error_says_where_records_are_public(own_folder, monkeypatch):
    with pytest.raises(datasets.DatasetError, match=r"kyoshin\.bosai\.go\.jp"):
        datasets.ground_motion("fksh11")
    monkeypatch.delenv("QUENCHED_DATA")
    with pytest.raises(datasets.DatasetError, match="QUENCHED_DATA is not set"):
        datasets.ground_motion("laquila")
    with pytest.raises(ValueError, match="fksh11, kmmh14, laquila"):
        datasets.ground_motion("resorce")
