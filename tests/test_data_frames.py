"""Columns and tables of pandas, polars and Arrow go in as they are; answers come out as such."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

import umpteen as um
from umpteen.errors import FeaturesError, LabelsError, TextsError, UmpteenError
from umpteen.validation import check_features, check_label_lists, check_labels, check_texts
from umpteen.validation.labels import is_single_label

pd = pytest.importorskip("pandas", reason="needs umpteen[test]")
pl = pytest.importorskip("polars", reason="needs umpteen[test]")
pa = pytest.importorskip("pyarrow", reason="needs umpteen[parquet]")

TEXTS = ["dough and flour", "green tea", "", "flour, again"]
LABELS = [["bread", "oven"], ["tea"], [], ["bread"]]


class OnlyAStream:
    """What speaks Arrow and nothing else, as the relations of some databases do."""

    def __init__(self, arrow):
        self._arrow = arrow

    def __arrow_c_stream__(self, requested_schema=None):
        return self._arrow.__arrow_c_stream__(requested_schema)


COLUMNS = {
    "pandas": pd.Series,
    "pandas, object": lambda values: pd.Series(values, dtype=object),
    "pandas, other index": lambda values: pd.Series(values, index=range(50, 50 - len(values), -1)),
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow, chunks": lambda values: pa.chunked_array([(whole := pa.array(values))[:1], whole[1:]]),
    "a stream": lambda values: OnlyAStream(pa.chunked_array([values])),
}
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Arrow": pa.table}

each_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@each_column
def test_columns_are_texts_and_labels(column):
    assert check_texts(column(TEXTS)) == TEXTS
    assert check_label_lists(column(LABELS), len(TEXTS)) == LABELS


@pytest.mark.parametrize("dtype", ["string", "category", "string[pyarrow]"])
def test_texts_may_have_the_other_types_of_pandas(dtype):
    assert check_texts(pd.Series(TEXTS, dtype=dtype)) == TEXTS


def test_cells_of_a_parquet_file_in_pandas_are_arrays(tmp_path):
    pd.DataFrame({"labels": LABELS}).to_parquet(tmp_path / "x.parquet")
    column = pd.read_parquet(tmp_path / "x.parquet")["labels"]
    assert isinstance(column[0], np.ndarray)
    assert check_label_lists(column, 4) == LABELS


@each_column
@pytest.mark.parametrize("row", [0, 2])
def test_a_missing_text_is_refused_with_its_row(column, row):
    texts = [*TEXTS[:row], None, *TEXTS[row + 1 :]]
    with pytest.raises(TextsError, match=rf"texts\[{row}\] is (None|nan|<NA>).*empty text"):
        check_texts(column(texts))


@each_column
@pytest.mark.parametrize("missing", [None, ["bread", None]], ids=["cell", "name"])
def test_missing_labels_are_refused_with_their_row(column, missing):
    """Otherwise there would be a label called 'nan', and a tagger that predicts it."""
    with pytest.raises(LabelsError, match=r"labels\[1\] has (None|nan|<NA>)"):
        check_label_lists(column([LABELS[0], missing, *LABELS[2:]]), 4)


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, float("nan"), np.float32("nan"), None])
def test_nothing_that_is_missing_becomes_a_name(missing):
    for labels in ([["a"], missing], [["a"], ["b", missing]]):
        with pytest.raises(LabelsError, match=r"labels\[1\]"):
            check_label_lists(pd.Series(labels, dtype=object), 2)


@each_table
def test_a_table_is_no_column(table):
    """A frame iterates over the names of its columns: two texts, if nobody looks."""
    frame = table({"text": TEXTS, "labels": LABELS})
    with pytest.raises(TextsError, match=r"columns 'text', 'labels'; expected one column"):
        um.Tagger().fit(frame, LABELS)
    with pytest.raises(LabelsError, match=r"expected one column, such as table\['text'\]"):
        um.Tagger().fit(TEXTS, frame)


def test_a_lazy_frame_is_to_be_collected():
    lazy = pl.LazyFrame({"a": [1, 2]})
    for check, error in ((check_texts, TextsError), (check_features, FeaturesError)):
        with pytest.raises(error, match=r"\.collect\(\)"):
            check(lazy)


@each_column
def test_columns_of_ids_are_labels(column):
    ids, lists = column([2, 0, 1]), column([[2, 0], [], [1]])
    np.testing.assert_array_equal(check_labels(ids).indices, [2, 0, 1])
    np.testing.assert_array_equal(check_labels(lists).toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert is_single_label(ids)
    assert not is_single_label(lists)


@pytest.mark.parametrize(
    "ids",
    [pd.Series([0, None, 2]), pd.Series([0, None, 2], dtype="Int64"),
     pl.Series([0, None, 2]), pa.array([0, None, 2])],
    ids=["pandas", "pandas, Int64", "polars", "Arrow"],
)  # fmt: skip
def test_a_missing_id_is_refused_with_its_row(ids):
    with pytest.raises(LabelsError, match="in row 1; expected one label id"):
        check_labels(ids)


@each_table
def test_tables_of_numbers_are_features_and_indicators(table):
    columns = {"a": [1, 0, 3], "b": [0.5, 0.0, 2.0], "c": [True, False, True]}
    expected = np.column_stack([np.asarray(values, np.float32) for values in columns.values()])
    found = check_features(table(columns))
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(check_labels(table(columns)).toarray(), expected != 0)


@each_table
def test_what_is_no_number_is_refused_with_its_column(table):
    frame = table({"a": [1, 2], "title": ["x", "y"]})
    with pytest.raises(FeaturesError, match=r"the column 'title' of X holds 'x' in row 0"):
        check_features(frame)


@each_table
def test_missing_features_are_refused_with_their_row(table):
    with pytest.raises(FeaturesError, match="X holds NaN in row 2"):
        check_features(table({"a": [1.5, 2.0, None]}))
    if table is pd.DataFrame:
        with pytest.raises(FeaturesError, match="X holds NaN in row 2"):
            check_features(pd.DataFrame({"a": [1, 2, None]}, dtype="Int64"))


def test_sparse_columns_of_pandas_stay_sparse():
    """A frame of 20,000 labels would not fit memory otherwise."""
    kinds = pd.Series([f"kind {i % 997}" for i in range(20_000)])
    frame = pd.get_dummies(kinds, sparse=True, dtype="float32")
    for found in (check_features(frame), check_labels(frame)):
        assert issparse(found)
        assert found.nnz == 20_000
        np.testing.assert_array_equal(found[:3].toarray(), frame.iloc[:3].to_numpy())


def test_columns_with_the_same_name_stay_two():
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]).astype("Int64")
    np.testing.assert_array_equal(check_features(frame), [[1, 2], [3, 4]])


@each_table
def test_a_model_learns_from_a_table_what_it_learns_from_arrays(table):
    draws = np.random.default_rng(0).random((40, 3)).astype(np.float32)
    ids = np.argmax(draws, axis=1)
    frame = table({f"column {j}": draws[:, j] for j in range(3)})
    labels = table({"id": ids})["id"]
    model = um.LabelTree(random_state=0).fit(frame, labels)
    assert model.predict_topk(frame, 3) == um.LabelTree(random_state=0).fit(
        draws, ids
    ).predict_topk(draws, 3)
    assert model.single_label_


@pytest.fixture(scope="module")
def tagger():
    return um.Tagger().fit(TEXTS * 20, LABELS * 20)


@each_table
def test_a_tagger_learns_from_columns(table, tagger):
    frame = table({"text": TEXTS * 20, "labels": LABELS * 20})
    learned = um.Tagger().fit(frame["text"], frame["labels"])
    assert learned.predict(frame["text"]) == tagger.predict(TEXTS * 20)
    assert learned.score(frame["text"], frame["labels"]) == tagger.score(TEXTS * 20, LABELS * 20)


def rows(answers, ids):
    """The literal version of a table."""
    return [
        {"sample": own, "rank": rank, "label": label, "score": score}
        for own, tags in zip(ids, answers, strict=True)
        for rank, (label, score) in enumerate(tags, 1)
    ]


def test_answers_become_data_frames(tagger):
    answers = tagger.predict(TEXTS, k=2)
    assert [] in answers
    expected = rows(answers, range(4))
    table = um.to_table(answers)
    assert pd.DataFrame(table).to_dict("records") == expected
    assert pl.DataFrame(table).to_dicts() == expected
    assert pa.table(table).to_pylist() == expected
    assert pa.table(OnlyAStream(table)).to_pylist() == expected


@each_column
def test_answers_keep_ids(tagger, column):
    answers = tagger.predict(TEXTS, k=2)
    ids = ["a", "b", "c", "d"]
    table = um.to_table(answers, ids=column(ids))
    assert pl.DataFrame(table).to_dicts() == rows(answers, ids)
    joined = pd.DataFrame({"sample": ids, "text": TEXTS}).merge(pd.DataFrame(table))
    assert joined["label"].tolist() == table["label"]


def test_a_topk_becomes_a_table():
    top = um.TopK(labels=[[2, 0], [1, -1]], scores=[[0.9, 0.5], [0.7, -np.inf]])
    assert um.to_table(top)["label"] == [2, 0, 1]
    named = um.to_table(top, label_names="abc")
    assert named["label"] == ["c", "a", "b"]
    assert named["rank"].tolist() == [1, 2, 1]


def test_no_answers_are_an_empty_table():
    empty = um.to_table([[], []])
    assert list(pd.DataFrame(empty).columns) == ["sample", "rank", "label", "score"]
    assert len(pl.DataFrame(empty)) == 0


@pytest.mark.parametrize(
    ("answers", "more", "message"),
    [([("bread", 0.5)], {}, r"for one text, pass \[answer\]"),
     ([["bread"]], {}, r"expected pairs \(label, score\)"),
     ([[("bread", 0.5)]], {"ids": [1, 2]}, "1 answers but 2 ids"),
     ([[("bread", 0.5)]], {"ids": "a"}, "expected one id for each sample"),
     ([[("bread", 0.5)]], {"ids": 5}, "expected one id for each sample"),
     ([[("bread", None)]], {}, "the score None"),
     ([[("bread", "high")]], {}, "the score 'high'"),
     ({"bread": 0.5}, {}, "a dict; expected a list"),
     (None, {}, "expected a list of answers")],
)  # fmt: skip
def test_what_is_no_answer_is_refused(answers, more, message):
    with pytest.raises(UmpteenError, match=message):
        um.to_table(answers, **more)


def test_answers_of_a_generator_are_a_table():
    table = um.to_table(tags for tags in [[("bread", 0.5)], [("tea", 0.4)]])
    assert {len(column) for column in table.values()} == {2}


@pytest.mark.parametrize("column", [pa.array, pl.Series, list])
def test_names_of_fields_are_not_labels(column):
    with pytest.raises(LabelsError, match=r"labels\[0\] is .*expected a list of label names"):
        check_label_lists(column([{"topic": "bread"}, {"topic": "tea"}]), 2)


def test_one_text_in_an_array_is_not_its_characters():
    with pytest.raises(TextsError, match="expected a list of texts"):
        check_texts(np.array("a text"))


def test_sparse_input_is_not_looked_at_as_a_column():
    X = csr_matrix(np.eye(3, dtype=np.float32))
    assert check_features(X) is X
