"""Files as spreadsheets and scripts write them are read as meant, or say what to do."""

import io
import json
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from umpteen.data import Samples, read, read_label_texts, stream, write
from umpteen.errors import DataFormatError

NAME = st.text("abc é", min_size=1, max_size=6).filter(str.strip)
SPACES = st.text(" \t\u00a0", max_size=2)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def parse(content, **options) -> Samples:
    return read(io.BytesIO(content.encode() if isinstance(content, str) else content), **options)


@given(st.lists(st.tuples(SPACES, NAME, SPACES), max_size=4), st.sampled_from(["|", ";", "--"]))
def test_spaces_around_labels_are_not_part_of_them(parts, separator):
    cell = separator.join(map("".join, parts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = parse(f'text,labels\na,"{cell}"\n', format="csv", label_separator=separator)
    assert samples.labels == [[name.strip() for _, name, _ in parts]]


@pytest.mark.parametrize("separator", [";", ","])
def test_a_wrong_separator_is_noticed(separator):
    content = f'text,labels\na,"x{separator} y"\nb,z\nc,\n'
    message = rf"the open file: .*'\|'.* 1 of 2 have '{separator}'.*label_separator='{separator}'"
    with pytest.warns(UserWarning, match=message):
        assert parse(content).labels == [[f"x{separator} y"], ["z"], []]
    with pytest.warns(UserWarning, match="label_separator="):
        list(stream(io.BytesIO(content.encode()), batch_size=1))


@pytest.mark.parametrize(
    "content",
    [
        "text,labels\na,x|y\n" + 'b,"Congo, Republic of"\n' * 5,
        'text,labels\nb,"Congo, Republic of"\n' + "a,x\n" * 5,
        "text,labels\na,x\n",
        "text,labels\n",
    ],
)
def test_names_with_commas_are_not_doubted(content):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        parse(content)
    assert said == []


@pytest.mark.parametrize(
    "content",
    [
        "text;labels;id\r\na, b;x|y;7\r\n",
        '\ufeff"text";"labels";"id"\n"a, b";"x|y";"7"\n',
        "text\tlabels\tid\na, b\tx|y\t7\n",
        '\n\ntext,labels,id\n"a, b",x|y,7\n',
        'text,labels,id,"a;b;c;d;e"\n"a, b",x|y,7,"1;2"\n',
    ],
)
def test_the_header_of_csv_tells_what_is_between_cells(content):
    for options in {}, {"format": "csv"}:
        samples = parse(content, **options)
        assert (samples.texts, samples.labels, samples.ids) == (["a, b"], [["x", "y"]], ["7"])


def test_columns_of_other_names_between_semicolons():
    content = "title;tags\na;x\n"
    with pytest.raises(DataFormatError, match="no 'text' among 'title', 'tags'"):
        parse(content, format="csv")
    samples = parse(content, format="csv", text_field="title", labels_field="tags")
    assert (samples.texts, samples.labels) == (["a"], [["x"]])


ITEM = st.fixed_dictionaries(
    {"text": TEXT, "labels": st.lists(NAME, max_size=3)}, optional={"id": st.integers()}
)


@given(st.lists(ITEM, max_size=5), st.sampled_from([None, 0, 2]), st.booleans())
@example([], None, True)
def test_an_array_holds_what_lines_hold(items, indent, ascii_only):
    array = json.dumps(items, indent=indent, ensure_ascii=ascii_only)
    lines = "".join(json.dumps(item) + "\n" for item in items)
    for prefix in "", "\ufeff", "\n  ":
        one, other = parse(prefix + array + "\n"), parse(lines, format="jsonl")
        assert (one.texts, one.labels, one.ids) == (other.texts, other.labels, other.ids)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[\n  {"text": "a"},\n  {"txt": "b"}\n]', r"line 3 .*no 'text' among 'txt'"),
        ('[{"text": "a"},\n\n7]', r"line 3 .*'7' is not a JSON object"),
        ('[{"text": "a"}\n{"text": "b"}]', r"line 1 .*no comma after"),
        ('[{"text": "a"}', r"line 1 .*no end"),
        ('[{"text": "a"}] and more', r"line 1 .*expected a JSON object"),
        ('[{"text": "\\ud800"}]', r"line 1 .*surrogates"),
        ('[{"text": ' + "[" * 200_000, r"line 1 .*nested too deeply"),
        (b'[\n{"text": "\xff"}]', r"line 2 .*not UTF-8"),
    ],
)
def test_errors_in_an_array_name_the_line(content, message):
    with pytest.raises(DataFormatError, match=message):
        parse(content)


def test_an_array_too_long_to_hold_is_refused(monkeypatch):
    monkeypatch.setattr("umpteen.data.formats.json_objects._LARGEST_ARRAY", 20)
    assert parse('[{"text": "a"}]').texts == ["a"]
    with pytest.raises(DataFormatError, match="an object per line"):
        parse('[{"text": "a"},\n{"text": "b"}]')


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"])
@pytest.mark.parametrize("name", ["texts.xlsx", "texts.csv"])
def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path, start, name):
    (tmp_path / name).write_bytes(start + bytes(100))
    with pytest.raises(DataFormatError, match=rf"{name}: a spreadsheet .*save it as CSV"):
        read(tmp_path / name)


def test_an_empty_name_names_nothing():
    content = '{"text": "a", "labels": ["", "x"]}\n{"text": "b", "labels": ""}\n'
    assert parse(content).labels == [["x"], []]
    with pytest.raises(DataFormatError, match=r"line 2 .*expected its name"):
        read_label_texts(io.BytesIO(b'{"label": "a", "text": "b"}\n{"label": "", "text": "c"}\n'))


@pytest.mark.parametrize("name", ["jsonl", "csv", "tsv", "fasttext"])
def test_an_empty_name_is_not_written(name):
    with pytest.raises(DataFormatError, match="empty name: leave it out"):
        write(Samples(texts=["a"], labels=[["x", ""]]), io.BytesIO(), format=name)


def test_spaces_that_would_be_lost_are_not_written():
    samples = Samples(texts=["a"], labels=[[" x"]])
    with pytest.raises(DataFormatError, match="spaces around names would be lost"):
        write(samples, io.BytesIO(), format="csv")
    file = io.BytesIO()
    write(samples, file, format="jsonl")
    assert parse(file.getvalue()).labels == [[" x"]]


@pytest.mark.parametrize(
    "content", ['{"text": "a", "labels": [{"label": "x"}]}', "text,label\na,x;y\n"]
)
def test_labels_can_be_passed_over(content):
    samples = parse(content, labels_field="")
    assert (samples.texts, samples.labels) == (["a"], None)
