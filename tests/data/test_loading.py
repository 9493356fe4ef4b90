"""If these fail, people cannot load their own data, or get another file than they named."""

import gzip
import json

import numpy as np
import pytest

from umpteen.data.finding import find_files
from umpteen.data.images import read_idx
from umpteen.data.loading import load
from umpteen.errors import DataFormatError, DatasetNotFoundError, ParameterError


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "images" / "tiny"
    place.mkdir(parents=True)
    pixels = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    (place / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels)))
    (place / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.array([7, 3]))))
    (place / "t10k-images-idx3-ubyte").write_bytes(idx(pixels[:1]))
    (place / "t10k-labels-idx1-ubyte").write_bytes(idx(np.array([3])))
    return tmp_path


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_name_that_is_too_long_is_no_file():
    """The system's own error does not say to check the path."""
    with pytest.raises(DatasetNotFoundError, match="check the path"):
        find_files("a" * 5000 + ".jsonl")


@pytest.mark.parametrize("name", ["tiny", "images/tiny"])
def test_images_are_loaded_by_either_name(folder, name):
    dataset = load(name, folder)
    assert dataset.train.X.shape == (2, 1, 3, 4)
    assert dataset.train.X.dtype == np.float32
    assert dataset.train.X[0, 0, 0, 1] == pytest.approx(1 / 255)
    assert dataset.label_names == ["3", "7"]
    assert dataset.train.y.tolist() == [1, 0]
    assert dataset.test.labels == [["3"]]


def test_folder_comes_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv("UMPTEEN_DATA", str(folder))
    assert len(load("tiny").train) == 2


def test_texts_are_loaded_with_their_label_texts(tmp_path):
    write_lines(tmp_path / "mine" / "train.jsonl", [{"text": "a b", "labels": ["x", "y"]}])
    write_lines(tmp_path / "mine" / "test.jsonl", [{"text": "c", "labels": ["z"]}])
    write_lines(tmp_path / "mine" / "labels.jsonl", [{"label": "y", "text": "why"}])
    dataset = load("mine", tmp_path)
    assert dataset.train.texts == ["a b"]
    assert dataset.dev is None
    assert dataset.label_names == ["x", "y", "z"]
    assert dataset.label_texts == ["", "why", ""]


def test_missing_set_says_where_it_looked_and_what_is_there(folder):
    with pytest.raises(DatasetNotFoundError) as caught:
        load("absent", folder)
    message = str(caught.value)
    for expected in (str(folder / "absent"), "images/tiny", "pydocs", "train.jsonl"):
        assert expected in message


def test_no_folder_at_all_says_what_to_set(monkeypatch):
    monkeypatch.delenv("UMPTEEN_DATA", raising=False)
    with pytest.raises(DatasetNotFoundError, match="UMPTEEN_DATA"):
        load("absent")


def test_a_path_in_place_of_a_name_says_what_to_call(tmp_path, monkeypatch):
    monkeypatch.delenv("UMPTEEN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "sets" / "own"
    place.mkdir(parents=True)
    (place / "train.jsonl").write_text('{"text": "a", "labels": ["b"]}\n')
    with pytest.raises(DatasetNotFoundError, match=r"umpteen.data.read\('sets/own/train.jsonl'\)"):
        load("sets/own/train.jsonl")
    with pytest.raises(DatasetNotFoundError, match=r"load\('own', folder='sets'\)"):
        load("sets/own")
    assert len(load("own", folder="sets").train) == 1


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc", "", "..\\x", "C:\\x", "a\0b"])
def test_names_stay_inside_the_folder(folder, name):
    with pytest.raises(ParameterError, match="is not the name of a data set"):
        load(name, folder)


def test_two_files_for_one_part_are_refused(tmp_path):
    write_lines(tmp_path / "mine" / "train.jsonl", [])
    write_lines(tmp_path / "mine" / "train.csv", [])
    with pytest.raises(DataFormatError, match=r"train\.csv and train\.jsonl"):
        load("mine", tmp_path)


GOOD = idx(np.zeros((2, 3, 4)))


@pytest.mark.parametrize(
    "damaged", [b"", b"PNG", GOOD[:10], GOOD[:-1], GOOD + b"0", b"\0\0\x0d" + GOOD[3:]]
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_damaged_image_files_are_refused(tmp_path, damaged, suffix):
    path = tmp_path / f"train-images-idx3-ubyte{suffix}"
    path.write_bytes(gzip.compress(damaged) if suffix else damaged)
    with pytest.raises(DataFormatError, match="train-images"):
        read_idx(path, n_dimensions=3)


def test_damaged_compression_and_missing_labels_are_refused(folder):
    place = folder / "images" / "tiny"
    images = place / "train-images-idx3-ubyte.gz"
    images.write_bytes(images.read_bytes()[:-9])
    with pytest.raises(DataFormatError, match="get it again"):
        load("tiny", folder)
    images.write_bytes(gzip.compress(GOOD))
    (place / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataFormatError, match="is missing"):
        load("tiny", folder)


def test_images_and_labels_of_different_number_are_refused(folder):
    labels = folder / "images" / "tiny" / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(idx(np.array([1]))))
    with pytest.raises(DataFormatError, match="2 images but"):
        load("tiny", folder)
