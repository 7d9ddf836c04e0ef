"""Spectra of ground motion: read from the user's folder or from any CSV file; without them, the way to get them."""

import numpy as np
import pytest

from quenched import datasets

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


def test_the_sensor_can_be_chosen(own_folder):
    (own_folder / "groundmotion").mkdir()
    (own_folder / "groundmotion/fas_records_dense.csv").write_text("# a comment\n" + HEADING + ROWS)
    assert datasets.ground_motion("fksh11")["fas"].tolist() == [2.5]  # the unusable row is left out
    assert datasets.ground_motion("fksh11", sensor="surface")["fas"].tolist() == [9.5]
    with pytest.raises(ValueError, match="sensor='deep': fksh11 has borehole and surface"):
        datasets.ground_motion("fksh11", sensor="deep")


def test_without_files_the_error_says_where_records_are_public(own_folder, monkeypatch):
    with pytest.raises(datasets.DatasetError, match=r"kyoshin\.bosai\.go\.jp"):
        datasets.ground_motion("fksh11")
    monkeypatch.delenv("QUENCHED_DATA")
    with pytest.raises(datasets.DatasetError, match="QUENCHED_DATA is not set"):
        datasets.ground_motion("laquila")
    with pytest.raises(ValueError, match="fksh11, kmmh14, laquila"):
        datasets.ground_motion("resorce")


def test_any_csv_file_can_be_read(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("event,Mw,R,f,fas,soil\n7,5.1,20,0.5,1.25,rock\n7,5.1,20,1.0,1.5,rock\n")
    columns = datasets.read_spectra_csv(path)
    assert columns["event"].tolist() == ["7", "7"]
    assert columns["soil"].tolist() == ["rock", "rock"]
    np.testing.assert_array_equal(columns["f"], [0.5, 1.0])


@pytest.mark.parametrize(
    ("text", "message"), [("event,Mw\n", "no rows"), ("event,Mw\nA,5,3\n", "row 1"), ("event,Mw\nA\n", "row 1")]
)
def test_broken_files_are_named(tmp_path, text, message):
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(datasets.DatasetError, match=message):
        datasets.read_spectra_csv(path)
    with pytest.raises(datasets.DatasetError, match="cannot be read"):
        datasets.read_spectra_csv(tmp_path / "missing.csv")
