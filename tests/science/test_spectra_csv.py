"""Spectra from any CSV file, and files that are none."""

import numpy as np
import pytest

from quenched.science import read_spectra, read_spectra_csv


def test_any_csv_file_can_be_read(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("event,Mw,R,f,fas,soil\n7,5.1,20,0.5,1.25,rock\n7,5.1,20,1.0,1.5,rock\n")
    columns = read_spectra_csv(path)
    assert columns["event"].tolist() == ["7", "7"]
    assert columns["soil"].tolist() == ["rock", "rock"]
    np.testing.assert_array_equal(columns["f"], [0.5, 1.0])


@pytest.mark.parametrize(
    ("text", "message"), [("event,Mw\n", "no rows"), ("event,Mw\nA,5,3\n", "row 1"), ("event,Mw\nA\n", "row 1")]
)
def test_broken_files_are_named(tmp_path, text, message):
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_spectra_csv(path)
    with pytest.raises(ValueError, match="cannot be read"):
        read_spectra_csv(tmp_path / "missing.csv")


@pytest.mark.parametrize("missing", [float("nan"), np.float32("nan"), None])
def test_a_missing_event_among_names_is_refused(missing):
    """NumPy would make it the name "nan"."""
    column = np.ones(3)
    for events in (["a", "a", missing], ("a", missing, "b")):
        with pytest.raises(ValueError, match="event has missing names"):
            read_spectra({"event": events, "Mw": column, "R": column, "f": column, "fas": column})
