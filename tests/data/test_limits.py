"""A line without an end is an error that says so, before it has filled the memory."""

import gzip
import io
import lzma
import tracemalloc

import pytest
import zstandard

from umpteen.data import read, read_label_texts
from umpteen.errors import DataFormatError, ParameterError
from umpteen.limits import VARIABLE, max_line_bytes

LEAST = 100_000
GOOD = {
    "jsonl": b'{"text": "a", "labels": ["x"]}\n',
    "csv": b"text,labels\na,x\n",
    "tsv": b"text\tlabels\na\tx\n",
    "fasttext": b"__label__x a\n",
    "xmc": b"2 3 4\n0 0:1\n",
    "svmlight": b"0 1:1\n",
}
LONG = {
    "jsonl": b'{"text": "%s"}\n' % (b"a" * LEAST),
    "csv": b"a%s,x\n" % (b"a" * LEAST),
    "tsv": b"a%s\tx\n" % (b"a" * LEAST),
    "fasttext": b"__label__x %s\n" % (b"a" * LEAST),
    "xmc": b"0 0:1%s\n" % (b" 1:1" * (LEAST // 4)),
    "svmlight": b"0 1:1%s\n" % (b" 2:1" * (LEAST // 4)),
}
PACKED = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture
def least(monkeypatch):
    """The smallest limit that may be set."""
    monkeypatch.setenv(VARIABLE, "100kB")


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("packing", PACKED)
def test_a_long_line_names_file_line_and_limit(tmp_path, least, monkeypatch, name, packing):
    path = tmp_path / "some"
    path.write_bytes(PACKED[packing](GOOD[name] + LONG[name]))
    line = 1 + GOOD[name].count(b"\n")
    with pytest.raises(DataFormatError) as caught:
        read(path, format=name)
    assert f"{path}, line {line} (read as {name}): longer than 100kB" in str(caught.value)
    assert f"{VARIABLE}=1GB" in str(caught.value)
    monkeypatch.setenv(VARIABLE, "1GB")
    assert len(read(path, format=name)) == 2


@pytest.mark.parametrize("size", [LEAST - 1, LEAST, LEAST + 1, 5 * LEAST])
@pytest.mark.parametrize("before", [b"", b"x\n", b"x" * 65_530 + b"\n"])
def test_the_limit_is_exact(least, size, before):
    file = io.BytesIO(before + b"y" * size + b"\nz\n")
    if size <= LEAST:
        assert len(read(file, format="fasttext")) == 2 + bool(before)
    else:
        with pytest.raises(DataFormatError, match=f"line {1 + bool(before)} "):
            read(file, format="fasttext")


class Endless(io.RawIOBase):
    """A file without an end, which counts what is taken."""

    name = "endless"

    def __init__(self, start, more):
        self.start, self.more, self.taken = start, more, 0

    def read(self, size):
        first = self.taken
        self.taken += size
        enough = self.start + self.more * (self.taken // len(self.more) + 1)
        return enough[first : self.taken]


@pytest.mark.parametrize(
    ("name", "start", "more"),
    [
        ("jsonl", b"", b"\0"),
        ("fasttext", b"", b"a"),
        ("jsonl", b'{"text": "', b"a"),
        ("jsonl", b'[{"text": "', b"a"),
        ("csv", b'text\n"', b"a"),
        ("csv", b'text\n"', b"a\n"),
        ("csv", b'text\n"a"', b',"a\n"'),
        ("xmc", b"", b"1"),
        ("svmlight", b"0 ", b"1:1 "),
    ],
)
def test_a_file_without_an_end_is_left_early(least, name, start, more):
    file = Endless(start, more)
    with pytest.raises(DataFormatError, match=r"line .*limit"):
        read(file, format=name)
    assert file.taken < 5_000_000


def test_texts_of_labels_have_the_same_limit(least):
    with pytest.raises(DataFormatError, match=r"line 1 .*limit"):
        read_label_texts(io.BytesIO(b'{"label": "%s"' % (b"a" * LEAST)))


def test_a_small_file_that_unpacks_to_much_takes_little_memory(tmp_path):
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(b'{"text": "')
        for _ in range(300):
            file.write(b"a" * 1_000_000)
    assert path.stat().st_size < 400_000
    tracemalloc.start()
    try:
        with pytest.raises(DataFormatError, match=r"line 1 .*longer than 64MB"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("given", ["much", "-1", "0", "99kB", "1 line"])
def test_a_limit_that_is_none_is_refused(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(ParameterError, match=rf"{VARIABLE} is '{given}'.*256MB"):
        read(io.BytesIO(b'{"text": "a"}\n'))


@pytest.mark.parametrize("given", ["", "64MB", "64 mb", "64000000", "64000kB"])
def test_limits_as_people_write_them(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    assert max_line_bytes() == 64_000_000
