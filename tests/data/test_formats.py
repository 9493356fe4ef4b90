"""Files people have: read as they meant them, or refused with the line and what to do."""

import gzip
import io
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import zstandard
from scipy.sparse import csr_matrix, random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from umpteen.data import Samples, read, read_label_texts, stream
from umpteen.errors import DataFormatError, DatasetNotFoundError, ParameterError

PACK = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}
XMC = b"3 5 4\n0,2 0:1 4:0.5\n 3:2\n1\n"
TEXTS = Samples(texts=["a b", "c"], labels=[["x", "y"], []], ids=["1", "2"])
CONTENT = {
    "xmc": XMC,
    "svmlight": b"0,2 1:1 5:0.5\n 4:2\n1 # none\n",
    "fasttext": b"__label__x __label__y a b\nc\n",
    "jsonl": b'{"id": 1, "text": "a b", "labels": ["x", "y"]}\n\n'
    b'{"id": 2, "text": "c", "labels": []}',
    "csv": b"id,text,labels\r\n1,a b,x|y\r\n2,c,\r\n",
    "tsv": b"id\ttext\tlabels\n1\ta b\tx|y\n2\tc\t\n",
}


def parse(content: bytes, **options) -> Samples:
    return read(io.BytesIO(content), **options)


def assert_same_matrices(samples: Samples, X, Y) -> None:
    np.testing.assert_array_equal(samples.X.toarray(), X)
    np.testing.assert_array_equal(samples.Y.toarray(), Y)


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("packing", [None, *PACK])
def test_content_alone_tells_format_and_compression(name, packing):
    content = PACK[packing](CONTENT[name]) if packing else CONTENT[name]
    samples = parse(content)
    if samples.texts is None:
        X = [[1, 0, 0, 0, 0.5], [0, 0, 0, 2, 0], [0, 0, 0, 0, 0]]
        Y = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
        assert_same_matrices(samples, X, Y[:, : samples.Y.shape[1]])
        assert samples.X.dtype == samples.Y.dtype == np.float32
        assert samples.X.indices.dtype == samples.Y.indices.dtype == np.int32
    else:
        assert samples.texts == TEXTS.texts
        assert samples.labels == TEXTS.labels
        assert samples.ids == (None if name == "fasttext" else TEXTS.ids)


@pytest.mark.parametrize("name", CONTENT)
def test_byte_order_mark_and_windows_line_ends_do_no_harm(name):
    windows = b"\xef\xbb\xbf" + CONTENT[name].replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    samples, plain = parse(windows), parse(CONTENT[name])
    assert samples.texts == plain.texts
    assert samples.labels == plain.labels
    assert samples.X is None or (samples.X != plain.X).nnz == 0


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_file_cut_short_is_never_taken_for_whole(tmp_path, packing, cut):
    path = tmp_path / f"cut.jsonl.{packing}"
    path.write_bytes(PACK[packing](CONTENT["jsonl"] * 50)[:-cut])
    with pytest.raises(DataFormatError, match=r"cut\.jsonl.*damaged"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(DataFormatError, match="damaged"):
        read(path)


@pytest.mark.parametrize("packing", PACK)
def test_compressed_parts_one_after_another_are_one_file(packing):
    content = PACK[packing](b"__label__a b\n") + PACK[packing](b"__label__c d\n")
    assert parse(content).texts == ["b", "d"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"3 5 4\n0 0:1\n1 5:1\n2 0:1\n",
            r"line 3 \(read as xmc\): feature '5:1' is not in 0 ... 4",
        ),
        (b"3 5 4\n0 0:1\n1,4 1:1\n2 0:1\n", r"line 3 .*label '4' is not in 0 ... 3"),
        (b"3 5 4\n0 0:1\n", r"line 2 .*ends after 1 rows, but the header announces 3"),
        (b"1 5 4\n0 0:1\n1 0:2\n", r"line 3 .*row too many: the header announces 1"),
        (b"1 5 4\n0 0:nan\n", r"line 2 .*'nan' is not a finite number"),
        (b"1 5 4\n0 0:1e39\n", r"line 2 .*'1e39' is too large for float32"),
        (b"1 5 4\n0 0:\n", r"line 2 .*the end of the line is not a finite number"),
        (b"1 5 4\n0 0:1_0\n", r"line 2 .*'1_0'"),
        (b"1 5 4\n-1 0:1\n", r"line 2 .*'-1' where label ids"),
        (b"1 5 4\n0,,1 0:1\n", r"line 2 .*where label ids"),
        (b"1 5 4\n0 1 0:1\n", r"line 2 .*'1' where a feature:value belongs"),
        (b"1 5\n0 0:1\n", r"line 2 .*announces no labels"),
        (b"1 0 4\n0\n", r"line 1 .*announces no features"),
        (b"1000000000000000000 5 4\n0 0:1\n", r"line 1 .*more than 2,147,483,647"),
        (b"2147483647 2147483647 2147483647\n0 0:1\n", r"line 2 .*ends after 1 rows"),
        (b"9" * 10_000 + b" 5 4\n", r"line 1 .*more than"),
    ],
)
def test_errors_of_the_repository_format_name_the_line(content, message):
    with pytest.raises(DataFormatError, match=message):
        parse(content)


def test_an_error_far_down_the_file_has_its_line_number():
    rows = [b"0 0:1"] * 2_000_000
    rows[1_700_000] = b"0 0:x"
    with pytest.raises(DataFormatError, match=r"line 1,700,002"):
        parse(b"2000000 5 4\n" + b"\n".join(rows))


def test_a_header_of_two_numbers_announces_features_only():
    samples = parse(b"2 3\n0:1\n2:1 0:5\n")
    np.testing.assert_array_equal(samples.X.toarray(), [[1, 0, 0], [5, 0, 1]])
    assert samples.Y is None


def test_blank_lines_are_samples_up_to_the_number_announced():
    samples = parse(b"2 3 1\n\n\n\n\n")
    assert samples.X.shape == (2, 3)


def test_unsorted_and_repeated_ids_become_canonical():
    samples = parse(b"1 5 4\n2,0,2 4:1 0:2 4:3\n")
    assert_same_matrices(samples, [[2, 0, 0, 0, 4]], [[1, 0, 1, 0]])
    assert samples.X.has_canonical_format


def test_svmlight_is_read_as_scikit_learn_reads_it(tmp_path):
    X = csr_matrix(random_array((50, 30), density=0.2, rng=0).astype(np.float32))
    Y = csr_matrix(random_array((50, 8), density=0.3, rng=1) > 0).astype(np.float64)
    for zero_based in (True, False):
        path = tmp_path / "theirs.svm"
        dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=zero_based, comment="é")
        theirs, rows = load_svmlight_file(str(path), multilabel=True)
        ours = read(path)
        assert (theirs.astype(np.float32) != ours.X).nnz == 0
        assert [list(map(float, row.indices)) for row in ours.Y] == [sorted(row) for row in rows]


def test_svmlight_options_fix_what_the_file_does_not_say():
    content = b"0 qid:3 2:1\n1 3:1 # first\n\n# nothing\n"
    kwargs = {"format": "svmlight"}
    assert parse(content).X.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]
    assert parse(content, zero_based=True, **kwargs).X.shape == (2, 4)
    assert parse(content, n_features=9, n_labels=7, **kwargs).X.shape == (2, 9)
    assert parse(content, n_features=9, n_labels=7, **kwargs).Y.shape == (2, 7)
    assert parse(b" 1:1\n").Y is None
    with pytest.raises(DataFormatError, match=r"line 1 .*feature '2:1' is not in 0 ... 1"):
        parse(content, n_features=2, zero_based=True, **kwargs)
    with pytest.raises(DataFormatError, match=r"line 1 .*feature '0:1' is not in 1"):
        parse(b"0 0:1\n", zero_based=False, **kwargs)
    with pytest.raises(DataFormatError, match="too many for n_features=2"):
        parse(b"0 0:1 2:1\n", n_features=2, **kwargs)
    with pytest.raises(ParameterError, match="n_features='2'; expected 1"):
        parse(content, n_features="2", **kwargs)
    with pytest.raises(ParameterError, match="zero_based='yes'"):
        parse(content, zero_based="yes", **kwargs)


def test_fasttext_takes_labels_anywhere_as_fasttext_does():
    samples = parse(b"__label__a one __label__b two\n\nthree\n", format="fasttext")
    assert samples.texts == ["one two", "", "three"]
    assert samples.labels == [["a", "b"], [], []]
    assert parse(b"#a one\n", format="fasttext", prefix="#").labels == [["a"]]


def test_jsonl_labels_may_be_one_name_a_number_or_missing():
    content = b'{"text": "a", "labels": "x"}\n{"text": "b", "labels": [1, 2.50]}\n{"text": "c"}\n'
    assert parse(content).labels == [["x"], ["1", "2.50"], []]
    assert parse(b'{"text": "a"}').labels is None
    assert parse(b'{"t": "a", "l": null}', text_field="t", labels_field="l").labels == [[]]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            b'{"text": "a"}\n{"txt": "b"}\n',
            {},
            r"line 2 .*no 'text' among 'txt'; .*text_field='txt'",
        ),
        (b'{"text": "a", "label": "b"}\n', {}, r"line 1 .*labels_field='label'"),
        (b'{"text": "a"}\n', {"labels_field": "tags"}, r"line 1 .*no 'tags' among 'text'"),
        (b'{"text": "a", "labels": {"b": 1}}\n', {}, r"line 1 .*expected a list of names"),
        (b'{"text": null}\n', {}, r"line 1 .*'text' is None; expected a text"),
        (b'{"text": "a"}\n{"text": "b"\n', {}, r"line 2 .*expected a JSON object"),
        (b'{"text": "a"}\n[1]\n', {}, r"line 2 .*not a JSON object"),
        (b'{"text": "\\ud800"}\n', {}, r"line 1 .*surrogates"),
        (b'{"text": "a"}\n{"text": "\xff"}\n', {}, r"line 2 .*not UTF-8"),
        (b'{"text": ' + b"[" * 200_000, {}, r"line 1 .*nested too deeply"),
    ],
)
def test_jsonl_errors_name_the_line_and_the_fix(content, options, message):
    with pytest.raises(DataFormatError, match=message):
        parse(content, **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"body,tags\na,b\n",
            r"line 1 .*no 'text' among 'body', 'tags'; name one of these with text_field=",
        ),
        (b"text,label\na,b\n", r"line 1 .*did you mean labels_field='label'"),
        (b'text,labels\na,b\n"a\nb",c,d\n', r"line 4 .*3 cells, but the header has 2"),
        (b'text,labels\na,b\n"a,c\n', r"line 3 .*quoted=False"),
    ],
)
def test_csv_errors_name_the_line_and_the_fix(content, message):
    with pytest.raises(DataFormatError, match=message):
        parse(content, format="csv")


def test_csv_options():
    content = b'body,tags\nsay "hi,a;b\n'
    options = {"text_field": "body", "labels_field": "tags", "label_separator": ";"}
    samples = parse(content, format="csv", quoted=False, **options)
    assert (samples.texts, samples.labels) == (['say "hi'], [["a", "b"]])
    assert len(parse(b"text\n" + b"long " * 100_000, format="csv").texts[0]) == 500_000


def test_label_texts_are_read_whatever_else_is_there():
    content = b'{"label": 10, "text": "trade", "parents": ["2"]}\n{"label": "b", "text": "c"}\n'
    assert read_label_texts(io.BytesIO(content)) == {"10": "trade", "b": "c"}
    with pytest.raises(DataFormatError, match=r"line 3 .*'b' is here for the second time"):
        read_label_texts(io.BytesIO(content + b'{"label": "b", "text": "d"}'))


@pytest.mark.parametrize("name", ["fasttext", "jsonl", "csv", "tsv", "svmlight"])
def test_an_empty_file_has_no_samples(tmp_path, name):
    path = tmp_path / f"empty.{name}"
    path.touch()
    assert len(read(path)) == 0
    assert list(stream(path)) == []


def test_what_cannot_be_read_says_why(tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"no file .*gone\.jsonl"):
        read(tmp_path / "gone.jsonl")
    (tmp_path / "folder" / "inside.csv").mkdir(parents=True)
    with pytest.raises(DataFormatError, match=r"is a folder.*inside\.csv"):
        read(tmp_path / "folder")
    with pytest.raises(DataFormatError, match=r"'hello there'.*none of the formats.*xmc, svmlight"):
        parse(b"hello there\n")
    with pytest.raises(DataFormatError, match=r"header is ''"):
        parse(b"", format="xmc")
    with pytest.raises(DataFormatError, match="empty"):
        parse(b"")
    with pytest.raises(ParameterError, match="binary mode"):
        read(io.StringIO("text"))
    with pytest.raises(ParameterError, match="'json' is not a known format"):
        parse(b"{}", format="json")
    with pytest.raises(ParameterError, match="did you mean 'text_field'"):
        parse(b"{}", text_feild="a")


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_a_stream_gives_what_read_gives(tmp_path, name, batch_size):
    path = tmp_path / f"many.{name}"
    rows = CONTENT[name].split(b"\n", 1)[1] if name in ("xmc", "csv", "tsv") else CONTENT[name]
    head = {"xmc": b"15 5 4\n"}.get(name, CONTENT[name].split(b"\n", 1)[0] + b"\n")
    many = (rows + b"\n" * (name == "jsonl")) * 5
    path.write_bytes(head + many if name in ("xmc", "csv", "tsv") else many)
    whole, parts = read(path), list(stream(path, batch_size=batch_size))
    assert [len(part) for part in parts[:-1]] == [batch_size] * (len(parts) - 1)
    assert sum(map(len, parts)) == len(whole)
    if whole.texts is None:
        assert_same_matrices(
            whole,
            np.vstack([part.X.toarray() for part in parts]),
            np.vstack([part.Y.toarray() for part in parts]),
        )
    else:
        assert whole.texts == [text for part in parts for text in part.texts]
        assert whole.labels == [labels for part in parts for labels in part.labels]


def test_a_pipe_cannot_be_looked_at_twice():
    with pytest.raises(ParameterError, match="only once"):
        list(stream(io.BytesIO(CONTENT["svmlight"]), format="svmlight"))
    known = {"zero_based": False, "n_features": 5, "n_labels": 3}
    assert len(next(stream(io.BytesIO(CONTENT["svmlight"]), format="svmlight", **known))) == 3
    with pytest.raises(ParameterError, match="batch_size=0"):
        stream(io.BytesIO(b""), batch_size=0)


@pytest.mark.skipif(not os.environ.get("UMPTEEN_DATA"), reason="needs UMPTEEN_DATA")
@pytest.mark.parametrize(
    ("split", "bibtex", "cooking"), [("train", 4880, 12404), ("test", 2515, 3000)]
)
def test_real_files(split, bibtex, cooking):
    folder = Path(os.environ["UMPTEEN_DATA"])
    matrices = read(folder / "bibtex" / f"{split}.xmc.txt.xz")
    assert (matrices.X.shape, matrices.Y.shape) == ((bibtex, 1836), (bibtex, 159))
    texts = read(folder / "cooking" / f"{split}.jsonl.xz")
    assert len(texts) == len(texts.ids) == cooking
    assert all(texts.labels)
