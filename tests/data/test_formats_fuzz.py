"""No bytes, however broken, give anything but samples or one of our errors."""

import io
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from umpteen.data import Samples, read, read_label_texts, stream, write
from umpteen.data.formats.compression import compressed
from umpteen.data.formats.files import FORMATS
from umpteen.errors import UmpteenError
from umpteen.kernels.text_parsing import parse_rows

TEXTS = Samples(
    texts=["a b", "é\U0001f600 c", ""], labels=[["x", "y"], ["z"], []], ids=["1", "2", "3"]
)
MATRICES = Samples(X=np.array([[0, 1.5, 0], [2e-7, 0, -3]]), Y=np.array([[1, 0], [1, 1]]))
SOUP = st.lists(
    st.sampled_from(
        b'0 1 7 99999999999 : , . e - + # qid: nan inf 1:2 " { } [ "text" "labels"'.split()
        + rb"text labels | __label__ \ud800".split()
        + [b" ", b"\n", b"\t", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf"]
    ),
    max_size=40,
).map(b"".join)
BYTES = st.one_of(st.binary(max_size=200), SOUP)
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def valid(name: str, packing: str | None = None) -> bytes:
    file = io.BytesIO()
    with compressed(file, packing) as inner:
        write(MATRICES if name in ("xmc", "svmlight") else TEXTS, inner, format=name)
    return file.getvalue()


@st.composite
def mutated(draw, name):
    content = bytearray(valid(name, draw(st.sampled_from([None, None, "gz", "xz", "zst"]))))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        content[at : at + draw(st.integers(0, 3))] = draw(BYTES.map(lambda some: some[:4]))
    return bytes(content)


def read_or_refuse(content: bytes, name: str | None) -> None:
    try:
        samples = read(io.BytesIO(content), format=name)
        options = (
            {"zero_based": True, "n_features": 99, "n_labels": 99} if name == "svmlight" else {}
        )
        parts = list(stream(io.BytesIO(content), format=name, batch_size=2, **options))
    except UmpteenError:
        return
    assert sum(map(len, parts)) == len(samples)
    if samples.X is not None:
        assert np.isfinite(samples.X.data).all()
        assert samples.X.has_canonical_format


@pytest.mark.parametrize("name", [*FORMATS, None])
@FUZZ
@given(content=BYTES)
def test_arbitrary_bytes(name, content):
    read_or_refuse(content, name)


@pytest.mark.parametrize("name", FORMATS)
@FUZZ
@given(data=st.data())
def test_damaged_files(name, data):
    read_or_refuse(data.draw(mutated(name)), name)


@FUZZ
@given(rows=SOUP, svmlight=st.booleans())
def test_damaged_rows(rows, svmlight):
    content = rows if svmlight else b"%d 9 9\n" % rows.count(b"\n") + rows
    read_or_refuse(content, "svmlight" if svmlight else "xmc")


@FUZZ
@given(content=BYTES)
def test_label_texts(content):
    with suppress(UmpteenError):
        read_label_texts(io.BytesIO(content))


def parsed(number: str) -> float:
    text = np.frombuffer(f"0:{number}\n".encode(), np.uint8)
    starts, columns, values = np.zeros(2, np.int64), np.zeros(1, np.int32), np.zeros(1, np.float32)
    status, _, _ = parse_rows(text, False, 0, 9, 9, starts, columns, values, starts.copy(), columns)
    return float(values[0]) if status == 0 else np.nan


NUMBERS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e37, 1e37).map(repr),
    st.floats(-1e6, 1e6).map("{:.25f}".format),
    st.floats(-1e30, 1e30).map("{:.6e}".format),
    st.from_regex(r"[-+]?(\d{1,30}\.?\d{0,30}|\.\d{1,40})([eE][-+]?\d{1,2})?", fullmatch=True),
)


@settings(max_examples=300, deadline=None)
@given(number=NUMBERS.filter(str.isascii))
@example("0." + "0" * 400 + "1")
@example("1" + "0" * 30 + "e-30")
@example("0." + "0" * 300 + "1e310")
@example("3.4028235e+38")
@example("1e-45")
def test_numbers_are_within_one_step_of_float32(number):
    with np.errstate(over="ignore"):
        expected = np.float32(float(number))
    if np.isinf(expected):
        assert np.isnan(parsed(number))
    else:
        step = abs(np.nextafter(expected, np.float32(0)) - expected) or np.float32(1e-45)
        assert abs(parsed(number) - float(expected)) <= step


@pytest.mark.parametrize(
    "number", ["", ".", "-", "e5", "1e", "1e+", "1..2", "--1", "0x1", "1 e5", "1:2"]
)
def test_what_is_no_number_is_refused(number):
    assert np.isnan(parsed(number))
