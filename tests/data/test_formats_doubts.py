"""What can be read in two ways is an error, or a warning that says how it was read."""

import io
import json
import warnings

import pytest

from umpteen.data import read, read_label_texts, stream
from umpteen.errors import DataFormatError


def parse(content, **options):
    return read(io.BytesIO(content.encode()), **options)


def quietly(content, **options):
    """The samples of a file that nothing is said about."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return parse(content, **options)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("text,labels,labels", "the columns 2 and 3 are both called 'labels'"),
        ("text,text,labels", "the columns 1 and 2 are both called 'text'"),
        ("id,text,id", "the columns 1 and 3 are both called 'id'"),
        ("text,labels,text,text", "the columns 1, 3 and 4 are all called 'text'"),
    ],
)
def test_a_column_that_is_there_twice_is_refused(header, columns):
    cells = ",".join("a" * len(header.split(",")))
    with pytest.raises(DataFormatError, match=rf"line 1 .*{columns}; rename or remove one"):
        parse(f"{header}\n{cells}\n")


def test_columns_that_are_not_read_may_be_there_twice():
    assert quietly("text,labels,x,x,,\na,y,1,2,3,4\n").labels == [["y"]]
    assert quietly("text,labels,labels\na,y,z\n", labels_field="").texts == ["a"]


@pytest.mark.parametrize("name", ["text", "labels", "id"])
@pytest.mark.parametrize("form", ["{}\n", "[{}]"])
def test_a_field_that_is_there_twice_is_refused(name, form):
    item = f'{{"text": "a", "labels": ["x"], "id": 1, "{name}": "b"}}'
    with pytest.raises(DataFormatError, match=rf"line 1 .*has '{name}' more than once"):
        parse(form.format(item))


def test_fields_that_are_not_read_may_be_there_twice():
    content = '{"text": "a", "labels": ["x"], "n": 1, "n": 2, "more": {"text": 1, "text": 2}}\n'
    assert quietly(content).labels == [["x"]]
    assert quietly('{"text": "a", "labels": 1, "labels": 2}\n', labels_field="").texts == ["a"]


@pytest.mark.parametrize("name", ["label", "text"])
def test_a_field_of_label_texts_that_is_there_twice_is_refused(name):
    content = f'{{"label": "a", "text": "b", "{name}": "c"}}\n'
    with pytest.raises(DataFormatError, match=f"has '{name}' more than once"):
        read_label_texts(io.BytesIO(content.encode()))


def test_a_parquet_column_that_is_there_twice_is_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="needs umpteen[parquet]")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs umpteen[parquet]")
    column = arrow.array(["a"])
    table = arrow.Table.from_arrays([column] * 3, names=["text", "labels", "text"])
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DataFormatError, match="columns 1 and 3 are both called 'text'"):
        read(tmp_path / "x.parquet")


@pytest.mark.parametrize("other", [" rye ", "rye ", "\u00a0rye"])
def test_cells_that_differ_in_spaces_only_are_one_label_and_said_to_be(other):
    message = f"'rye' and {other!r} are read as the same label"
    with pytest.warns(UserWarning, match="differ only in spaces") as said:
        samples = parse(f"text,labels\na,rye\nb,{other}\n")
    assert samples.labels == [["rye"], ["rye"]]
    assert [message in str(one.message) for one in said] == [True]


def test_lists_that_pandas_wrote_to_csv_are_doubted():
    content = "text,labels\na,\"['rye', 'oats']\"\nb,['rye']\nc,[]\nd,rye\n"
    with pytest.warns(UserWarning, match=r"3 of 4 cells are lists .*\.str\.join\('\|'\)"):
        parse(content)
    with pytest.warns(UserWarning, match=r"2 of 2 cells are lists .*\.str\.join\(','\)"):
        parse("text,labels\na,\"['rye', 'oats']\"\nb,['rye']\n", label_separator=",")
    assert quietly("text,labels\na,[sic]\n").labels == [["[sic]"]]


def test_columns_that_pandas_wrote_to_json_are_told_from_rows():
    with pytest.raises(DataFormatError, match=r"'text' is \{'0': 'a'\}; .*orient=\"records\""):
        parse('{"text": {"0": "a"}, "labels": {"0": ["x"]}}')
    with pytest.raises(DataFormatError, match=r"expected a text$"):
        parse('{"text": null, "labels": ["x"]}')


def test_spaces_that_are_always_there_or_stand_at_a_separator_are_not_doubted():
    content = "text,labels\na,rye|wheat\nb,rye | wheat\nc,wheat | rye\n"
    assert quietly(content).labels == [["rye", "wheat"]] * 2 + [["wheat", "rye"]]
    assert quietly("text,labels\na, rye\nb, rye\n").labels == [["rye"], ["rye"]]


@pytest.mark.parametrize("other", [" rye bread", "rye  bread", "rye\tbread"])
def test_names_in_json_that_differ_in_spaces_only_are_two_labels_and_said_to_be(other):
    items = [{"text": "a", "labels": ["rye bread"]}, {"text": "b", "labels": ["rye bread", other]}]
    content = "".join(json.dumps(item) + "\n" for item in items)
    with pytest.warns(UserWarning, match="'rye bread' and .* are read as two labels"):
        assert parse(content).labels == [["rye bread"], ["rye bread", other]]
    with pytest.warns(UserWarning, match="are read as two labels"):
        list(stream(io.BytesIO(content.encode()), batch_size=1))


def test_how_many_more_spellings_there_are_is_said():
    content = "text,labels\na,x\nb,x \nc,y\nd,y \n"
    with pytest.warns(UserWarning, match=r"'x' and 'x ' .* \(and 1 more\)"):
        parse(content)


def test_a_text_that_looks_like_a_list_is_one_label_and_said_to_be():
    items = [{"text": "a", "labels": "x|y"}, *[{"text": "b", "labels": "z"}] * 20]
    content = "".join(json.dumps(item) + "\n" for item in items)
    message = (
        r"1 of 21 labels given as a text, .* contain '\|', such as 'x\|y'; each was read as one"
    )
    with pytest.warns(UserWarning, match=message):
        assert parse(content).labels[0] == ["x|y"]


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_text_with_commas_is_doubted_only_where_there_are_many(separator):
    many = [{"text": "a", "labels": f"x{separator} y"}] * 3 + [{"text": "b", "labels": "z"}]
    content = "".join(json.dumps(item) + "\n" for item in many)
    with pytest.warns(UserWarning, match=f"3 of 4 labels .* contain '{separator}'"):
        parse(content)
    few = many[:1] + many[-1:] * 9
    quietly("".join(json.dumps(item) + "\n" for item in few))


def test_lists_may_have_names_with_any_sign():
    item = {"text": "a", "labels": ["x|y", "Congo, Republic of", "a;b"]}
    assert quietly(json.dumps(item) + "\n").labels == [["x|y", "Congo, Republic of", "a;b"]]
