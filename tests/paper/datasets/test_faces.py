"""Faces: the official folder, the files at hand, and what is no face at all. No image is in the repository."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from quenched.paper import datasets
from quenched.paper.datasets.faces import halve, read_cropped_yale, read_pgm


def write_pgm(path: Path, image: np.ndarray, header: str = "P5\n{w} {h}\n255\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = image.shape
    path.write_bytes(header.format(w=width, h=height).encode() + image.astype(np.uint8).tobytes())


@pytest.fixture
def official(own_folder: Path) -> Path:
    """A folder of the official layout with random images: two people, an ambient image and a bad one."""
    random = np.random.default_rng(0)
    folder = own_folder / "yaleb" / "CroppedYale"
    for person, name in ((2, "P00A+000E+00"), (2, "P00A-130E+20"), (1, "P00A+035E-20"), (1, "P00_Ambient")):
        image = random.integers(0, 256, (192, 168))
        write_pgm(folder / f"yaleB{person:02d}" / f"yaleB{person:02d}_{name}.pgm", image)
    write_pgm(folder / "yaleB01" / "yaleB01_P00A+000E+20.pgm.bad", np.zeros((192, 168)))
    return folder


def test_the_official_folder(official: Path) -> None:
    loaded = datasets.faces()
    assert loaded.images.shape == (3, 96, 84)
    assert loaded.images.dtype == np.uint8
    assert loaded.people.tolist() == [1, 2, 2]
    assert loaded.origin == "CroppedYale"
    assert datasets.faces([2]).people.tolist() == [2, 2]


@pytest.mark.parametrize("other", ["folder", "cache"])
def test_the_official_folder_comes_first_wherever_it_is(
    other: str, official: Path, own_folder: Path, empty_cache: Path
) -> None:
    place = own_folder if other == "folder" else empty_cache
    if other == "cache":
        (place / "yaleb").mkdir(parents=True)
        shutil.move(official, place / "yaleb" / "CroppedYale")
    (place / "yaleb" / "yaleb_96x84_uint8.npz").write_bytes(b"not looked at")
    assert datasets.faces().people.tolist() == [1, 2, 2]


def test_the_official_folder_of_four_people_equals_the_file_of_all(data: Path, tmp_path: Path) -> None:
    archive = data / "yaleb" / "CroppedYale_subset_B01-B04.zip"
    if not archive.is_file():
        pytest.skip("the zip of four people is not at hand")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "CroppedYale")
    four, same = read_cropped_yale(tmp_path / "CroppedYale"), datasets.faces([1, 2, 3, 4])
    np.testing.assert_array_equal(four.people, same.people)
    np.testing.assert_array_equal(four.images, same.images)
    assert np.unique(four.people).tolist() == [1, 2, 3, 4]


def test_all_people_are_there(data: Path) -> None:
    if not (data / "yaleb").is_dir():
        pytest.skip("the faces are not at hand")
    everybody = datasets.faces()
    assert everybody.images.shape == (2414, 96, 84)
    assert np.unique(everybody.people).tolist() == [n for n in range(1, 40) if n != 14]
    assert datasets.faces([39]).images.shape == (64, 96, 84)


def test_the_small_images_are_the_same_faces(data: Path, own_folder: Path) -> None:
    """Fetched when nothing else is there: the same people, in the same order, as bright as the large ones."""
    if not (data / "yaleb").is_dir():
        pytest.skip("the faces are not at hand")
    large = np.load(data / "yaleb" / "yaleb_96x84_uint8.npz")
    (own_folder / "yaleb").mkdir()
    shutil.copyfile(data / "yaleb" / "YaleB_32x32.mat", own_folder / "yaleb" / "YaleB_32x32.mat")
    small = datasets.faces()
    assert small.origin == "32 × 32"
    assert small.images.shape == (2414, 32, 32)
    counts = lambda numbers: dict(zip(*np.unique(numbers, return_counts=True), strict=True))
    assert counts(small.people) == counts(large["subject"])
    # The mean face of a person is upright: brighter and darker in the same places.
    reduced = large["images"][large["subject"] == 20].mean(axis=0).reshape(32, 3, 28, 3).mean(axis=(1, 3))
    columns = np.linspace(0, 27, 32).round().astype(int)
    assert np.corrcoef(small.images[small.people == 20].mean(axis=0).ravel(), reduced[:, columns].ravel())[0, 1] > 0.9


def test_damaged_file_is_named(data: Path, own_folder: Path) -> None:
    (own_folder / "yaleb").mkdir()
    (own_folder / "yaleb" / "yaleb_96x84_uint8.npz").write_bytes(b"damaged")
    with pytest.raises(datasets.DatasetError, match=r"yaleb_96x84_uint8\.npz.*7 bytes.*official folder"):
        datasets.faces()


def test_halving_takes_means_and_rounds_a_half_up() -> None:
    assert halve(np.array([[0, 1, 9], [0, 1, 9], [7, 7, 7]], dtype=np.uint8)).tolist() == [[1]]
    assert halve(np.full((4, 2), 255, dtype=np.uint8)).tolist() == [[255], [255]]


def test_comments_in_a_header_are_skipped(tmp_path: Path) -> None:
    image = np.arange(6).reshape(2, 3)
    write_pgm(tmp_path / "a.pgm", image, "P5 # made by hand\n{w} # wide\n{h}\n255\n")
    np.testing.assert_array_equal(read_pgm((tmp_path / "a.pgm").read_bytes(), "a.pgm"), image)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"P2\n2 2\n255\n1 2 3 4", "not a binary pgm"),
        (b"P5\n2 2\n255\n123", "3 bytes follow"),
        (b"", "not a binary pgm"),
    ],
)
def test_what_is_no_image_is_named(content: bytes, message: str) -> None:
    with pytest.raises(datasets.DatasetError, match=rf"odd\.pgm.*{message}"):
        read_pgm(content, "odd.pgm")


def test_folders_without_faces_are_named(official: Path) -> None:
    with pytest.raises(datasets.DatasetError, match=r"no image of people \[7\] named like"):
        datasets.faces([7])
    write_pgm(official / "yaleB02" / "yaleB02_P00A+010E+00.pgm", np.zeros((100, 100)))
    with pytest.raises(datasets.DatasetError, match="several sizes"):
        datasets.faces()


def test_people_who_are_not_in_the_file_are_named(data: Path) -> None:
    if not (data / "yaleb").is_dir():
        pytest.skip("the faces are not at hand")
    with pytest.raises(datasets.DatasetError, match=r"people=\[14\]: the file has no image"):
        datasets.faces([14])
