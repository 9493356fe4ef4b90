"""What is written comes back, in every format and compression, or is refused while writing."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from umpteen.data import Samples, read, write
from umpteen.errors import (
    DataFormatError,
    LabelsShapeError,
    NotWritableError,
    ParameterError,
    UmpteenError,
)

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINE = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=20
)
NAME = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="|"), min_size=1
)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
ENDINGS = ["", ".gz", ".xz", ".zst"]


def through(samples: Samples, ending: str, folder, **options) -> Samples:
    path = folder / f"samples{ending}"
    write(samples, path, **options)
    assert [entry.name for entry in folder.iterdir()] == [path.name]
    return read(path, **options)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("written")


@pytest.mark.parametrize("name", ["jsonl", "csv", "tsv", "parquet", "fasttext"])
@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_texts_come_back(folders, name, ending, data):
    text = LINE if name == "fasttext" else ANY_TEXT
    rows = data.draw(st.lists(st.tuples(text, st.lists(NAME, max_size=3)), max_size=5))
    with_ids = name != "fasttext" and bool(rows) and data.draw(st.booleans())
    samples = Samples(
        texts=[row[0] for row in rows],
        labels=[row[1] for row in rows],
        ids=[str(i) for i in range(len(rows))] if with_ids else None,
    )
    back = through(samples, f".{name}{ending}", folders())
    assert (back.texts, back.labels, back.ids) == (samples.texts, samples.labels, samples.ids)


@pytest.mark.parametrize("name", ["jsonl", "csv", "tsv", "parquet"])
def test_fields_may_have_other_names_and_labels_may_be_absent(folders, name):
    assert through(Samples(texts=["", "b"]), f".{name}", folders()).labels is None
    samples = Samples(texts=["a"], labels=[["x"]])
    back = through(samples, f".{name}", folders(), text_field="body", labels_field="tags")
    assert (back.texts, back.labels) == (samples.texts, samples.labels)


@pytest.mark.parametrize("name", ["xmc.txt", "svm"])
@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_matrices_come_back_to_the_bit(folders, name, ending, data):
    n_rows, n_features, n_labels = 3, 4, 5
    cells = st.one_of(st.just(0.0), FLOATS)
    values = data.draw(st.lists(cells, min_size=12, max_size=12))
    relevant = data.draw(st.lists(st.booleans(), min_size=15, max_size=15))
    X = np.array(values, np.float32).reshape(n_rows, n_features)
    Y = csr_matrix(np.array(relevant).reshape(n_rows, n_labels))
    path = folders() / f"samples.{name}{ending}"
    write(Samples(X=X, Y=Y), path)
    options = {"n_features": n_features, "n_labels": n_labels} if name == "svm" else {}
    back = read(path, **options)
    np.testing.assert_array_equal(back.X.toarray(), X)
    np.testing.assert_array_equal(back.Y.toarray(), Y.toarray())


@pytest.mark.parametrize("ending", [".xmc", ".libsvm"])
def test_matrices_without_labels(tmp_path, ending):
    X = random_array((20, 9), density=0.5, rng=0).astype(np.float32)
    back = through(Samples(X=csr_matrix(X)), ending, tmp_path)
    assert back.Y is None
    np.testing.assert_array_equal(back.X.toarray(), X.toarray())


@pytest.mark.parametrize(
    ("samples", "name", "message"),
    [
        (Samples(texts=["a\nb"], labels=[[]]), "fasttext", "several lines"),
        (Samples(texts=["a __label__b"], labels=[[]]), "fasttext", "take for a label"),
        (Samples(texts=["a"], labels=[["b c"]]), "fasttext", "with spaces"),
        (Samples(texts=["a"], labels=[[""]]), "fasttext", "empty"),
        (Samples(texts=["a"], labels=[["b|c"]]), "csv", "choose another label_separator="),
        (Samples(texts=["a"], labels=[[""]]), "tsv", "empty name"),
        (Samples(texts=["a"]), "xmc", "holds matrices, but these samples are texts"),
        (Samples(X=np.ones((1, 1))), "jsonl", "holds texts, but these samples are matrices"),
        (Samples(texts=["\ud800"]), "jsonl", "UTF-8"),
        (Samples(texts=["\ud800"]), "csv", "UTF-8"),
        (Samples(texts=["\ud800"]), "parquet", "UTF-8"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_leaves_no_file(tmp_path, samples, name, message):
    path = tmp_path / f"out.{name}"
    path.write_text("before")
    with pytest.raises(DataFormatError, match=message):
        write(samples, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_what_was_there(tmp_path):
    class Interrupting(list):
        def __iter__(self):
            yield "first"
            raise KeyboardInterrupt

    path = tmp_path / "out.jsonl.gz"
    write(Samples(texts=["before"]), path)
    with pytest.raises(KeyboardInterrupt):
        write(Samples(texts=Interrupting(["a", "b"])), path)
    assert read(path).texts == ["before"]
    assert list(tmp_path.iterdir()) == [path]


def test_where_to_write_must_be_clear(tmp_path):
    samples = Samples(texts=["a"], labels=[["b"]])
    with pytest.raises(DataFormatError, match="does not end like any format"):
        write(samples, tmp_path / "out.bin")
    with pytest.raises(NotWritableError, match="does not exist"):
        write(samples, tmp_path / "gone" / "out.csv")
    with pytest.raises(NotWritableError, match="is a folder"):
        write(samples, tmp_path, format="csv")
    with pytest.raises(ParameterError, match="no option 'quoted'"):
        write(samples, tmp_path / "out.csv", quoted=False)
    file = io.BytesIO()
    write(samples, file, format="fasttext")
    assert file.getvalue() == b"__label__b a\n"


def test_values_are_written_with_all_digits_of_float32(tmp_path):
    X = np.float32([[-1.2345679e15, 1.1754944e-38, -3.4028235e38, 1e-45, 16777217.0]])
    np.testing.assert_array_equal(through(Samples(X=X), ".xmc", tmp_path).X.toarray(), X)


def test_texts_and_labels_must_be_equally_many():
    with pytest.raises(LabelsShapeError, match="2 texts but 1 labels"):
        write(Samples(texts=["a", "b"], labels=[["x"]]), io.BytesIO(), format="jsonl")


def test_the_same_samples_give_the_same_bytes(tmp_path):
    for ending in ENDINGS:
        paths = [tmp_path / f"{i}.jsonl{ending}" for i in range(2)]
        for path in paths:
            write(Samples(texts=["a"] * 100), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_every_refusal_is_ours():
    with pytest.raises(UmpteenError):
        write(Samples(X=np.array([[np.nan]])), io.BytesIO(), format="xmc")
