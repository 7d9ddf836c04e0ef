"""What `quenched reproduce` says where it cannot write."""

import pytest


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_misuse(out, call, write):
    write("file", "not a folder")
    code, _, complaints = call("reproduce", "bivariate", "--out", out)
    assert code == 2
    assert "--out" in complaints
    assert "no files can be written into that folder" in complaints
