"""If these fail, people cannot load images as they have them: a folder for each class."""

import io
import zipfile

import numpy as np
import pytest

pytest.importorskip("PIL", reason="needs umpteen[images]")
from PIL import Image

import umpteen as um
from umpteen.errors import DataFormatError, ParameterError


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png")
    return file.getvalue()


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(256, size=(5, 6, 4, 3)).astype(np.uint8)


@pytest.fixture(params=["folder", "zip", "zip-in-a-folder"])
def place(request, tmp_path, pixels):
    names = ["cat/1.png", "cat/2.png", "dog/1.PNG", "dog/2.png", "dog/3.png"]
    files = dict(zip(names, map(png, pixels), strict=True)) | {"notes.txt": b"-", "cat/a.txt": b"-"}
    if request.param == "folder":
        for name, content in files.items():
            (tmp_path / "pets" / "train" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "pets" / "train" / name).write_bytes(content)
        return tmp_path / "pets" / "train"
    (tmp_path / "pets").mkdir()
    with zipfile.ZipFile(tmp_path / "pets" / "train.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(f"all/{name}" if "in-a" in request.param else name, content)
    return tmp_path / "pets" / "train.zip"


def test_images_are_read_with_the_names_of_their_folders(place, pixels):
    samples = um.data.read_image_folder(place)
    assert samples.labels == [["cat"], ["cat"], ["dog"], ["dog"], ["dog"]]
    assert samples.X.dtype == np.float32
    np.testing.assert_allclose(samples.X, pixels.transpose(0, 3, 1, 2) / 255, rtol=1e-6)
    assert len(samples.ids) == 5


def test_data_sets_are_found_by_name(place):
    dataset = um.data.load("pets", place.parent.parent)
    assert dataset.label_names == ["cat", "dog"]
    assert dataset.train.y.tolist() == [0, 0, 1, 1, 1]
    assert "pets" in um.data.names(place.parent.parent)


def test_some_of_each_class(place):
    assert um.data.read_image_folder(place, per_class=1).labels == [["cat"], ["dog"]]
    with pytest.raises(ParameterError, match="per_class=0"):
        um.data.read_image_folder(place, per_class=0)


def test_sizes_differ(tmp_path, pixels):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(png(pixels[0]))
    (tmp_path / "a" / "2.png").write_bytes(png(pixels[0, :3]))
    with pytest.raises(DataFormatError, match=r"a/2\.png has \(3, 4\)"):
        um.data.read_image_folder(tmp_path)
    assert um.data.read_image_folder(tmp_path, size=(7, 5)).X.shape == (2, 3, 7, 5)


def test_grey_images_have_one_channel_unless_others_have_colours(tmp_path, pixels):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(png(pixels[0, :, :, 0]))
    X = um.data.read_image_folder(tmp_path).X
    np.testing.assert_allclose(X[0, 0], pixels[0, :, :, 0] / 255, rtol=1e-6)
    (tmp_path / "a" / "2.png").write_bytes(png(pixels[0]))
    X = um.data.read_image_folder(tmp_path).X
    assert X.shape == (2, 3, 6, 4)
    assert (X[0] == X[0, 0]).all()


@pytest.mark.parametrize("content", [b"", b"no image", None])
def test_what_is_no_image_is_named(tmp_path, pixels, content):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(png(pixels[0])[:60] if content is None else content)
    with pytest.raises(DataFormatError, match=r"a/1\.png is no image"):
        um.data.read_image_folder(tmp_path)


def test_nothing_to_read(tmp_path):
    for path in (tmp_path, tmp_path / "absent.zip"):
        with pytest.raises(DataFormatError, match="no images"):
            um.data.read_image_folder(path)
