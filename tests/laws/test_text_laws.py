"""Names from elsewhere are shown harmless, everywhere."""

import errno
import os
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quenched as qd
from quenched.files import read_path_to_write, write_whole
from quenched.text import harmless


@given(st.text(alphabet=st.one_of(st.characters(codec=None), st.sampled_from("\x1b\x07\r\n‮ ]["))))
def test_what_is_harmless_has_no_control_character_and_stays_so(text):
    shown = harmless(text)
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert harmless(shown) == shown
    if text.isprintable():
        assert shown == text


def test_a_name_moves_no_cursor_and_breaks_no_plot(tmp_path):
    pytest.importorskip("matplotlib")
    names = ("\x1b[2Jgone", "$x^$", "two\nlines", "<b>bold</b>")
    fit = qd.fit(lambda p: -0.5 * sum(p[name] ** 2 for name in names), dict.fromkeys(names, 0.0), progress=False)
    assert set(fit.mean) == set(names)
    shown = str(fit)
    assert "\x1b" not in shown
    assert "two\\nlines" in shown
    fit.plot(tmp_path / "fit.svg")
    assert "\x1b" not in (tmp_path / "fit.svg").read_text(encoding="utf-8")
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    assert set(loaded.mean) == set(names)


def test_a_full_disk_says_which_file_it_was_for(tmp_path):
    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"No space left on device: '.*file'") as raised:
        write_whole(tmp_path / "file", full)
    assert raised.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_behind_is_swept_away(tmp_path):
    old, new, other = (tmp_path / name for name in (".quenched-a-1.part", ".quenched-b-2.part", "mine.part"))
    for path in (old, new, other):
        path.write_bytes(b"")
    os.utime(old, (time.time() - 7200,) * 2)
    write_whole(tmp_path / "file", lambda file: file.write(b"whole"))
    assert sorted(os.listdir(tmp_path)) == sorted(["file", new.name, other.name])


def test_a_file_takes_the_place_of_a_file_alone(tmp_path):
    """Not of a device or a pipe, whoever may do that; and what a link leads to is written, not the link."""
    pipe, link, file = (tmp_path / name for name in ("pipe", "link", "file"))
    os.mkfifo(pipe)
    link.symlink_to(file)
    for write in (
        lambda path: write_whole(path, lambda file: file.write(b"")),
        lambda path: read_path_to_write("path", path),
    ):
        with pytest.raises(ValueError, match="is a device or a pipe"):
            write(pipe)
    assert write_whole(link, lambda file: file.write(b"whole")) == link
    assert link.is_symlink()
    assert file.read_bytes() == b"whole"


@pytest.mark.parametrize("what", ["compressed", "pipe", "folder", "another size", "twice"])
def test_files_that_are_no_saved_fit_are_refused_before_they_are_read(what, tmp_path):
    path = tmp_path / "fit.npz"
    fit = qd.fit(lambda w: -0.5 * (w @ w), np.zeros(2), progress=False)
    if what == "compressed":
        np.savez_compressed(path, **{"fit.json": np.zeros(10**6)})
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        with np.load(fit.save(path)) as archive:
            arrays = {name: archive[name] for name in archive.files}
        if what == "another size":
            arrays["fit.json"] = np.array(str(arrays["fit.json"]).replace('"shape": [2]', '"shape": [3]', 1))
            np.savez(path, **arrays)
        else:
            import zipfile

            with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
                archive.writestr(archive.namelist()[0], b"")
    with pytest.raises(ValueError, match="path="):
        qd.load(path)
