"""Whatever numbers a user brings, the same content reaches the kernels, and theirs stays as is."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import umpteen as um
from umpteen import LabelTree
from umpteen.errors import FeaturesError, LabelsError, LabelsShapeError, ParameterError, TextsError
from umpteen.validation import (
    check_features,
    check_label_lists,
    check_label_texts,
    check_labels,
    check_names,
    check_text,
    check_texts,
    is_single_label,
)

FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float32", "float64"]

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
contents = shapes.flatmap(lambda shape: arrays(np.int8, shape, elements=st.integers(0, 3)))
formats = st.sampled_from(FORMATS)
dtypes = st.sampled_from(DTYPES)
kinds = st.sampled_from([sparse.csr_matrix, sparse.csr_array])


def assert_canonical(matrix):
    assert type(matrix) is sparse.csr_matrix
    assert (matrix.dtype, matrix.indices.dtype, matrix.indptr.dtype) == ("f4", "i4", "i4")
    fresh = sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    assert fresh.has_canonical_format


@given(contents, formats, dtypes, kinds)
def test_any_sparse_features_keep_their_content(content, form, dtype, kind):
    content = content.astype(dtype)
    features = check_features(kind(content).asformat(form))
    assert_canonical(features)
    np.testing.assert_array_equal(features.toarray(), content)


@given(contents, formats, dtypes, kinds)
def test_any_sparse_labels_mean_the_same(content, form, dtype, kind):
    content = content.astype(dtype)
    labels = check_labels(kind(content).asformat(form))
    assert_canonical(labels)
    assert labels.data.all()
    np.testing.assert_array_equal(labels.toarray(), content != 0)
    if content.shape[1] > 1:  # one dense column may hold ids, and is refused
        np.testing.assert_array_equal(check_labels(content).toarray(), content != 0)


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3)), min_size=1)


@given(entries, st.sampled_from(["coo", "csr", "csc"]))
def test_unsorted_duplicates_are_added_up_and_the_input_stays(triples, form):
    matrix = _as_written(triples, form)
    owned = [part for part in vars(matrix).values() if isinstance(part, np.ndarray)]
    before = [part.tobytes() for part in owned]
    for part in owned:
        part.flags.writeable = False
    features, labels = check_features(matrix), check_labels(matrix)
    expected = np.zeros((4, 5))
    for row, column, value in triples:
        expected[row, column] += value
    np.testing.assert_array_equal(features.toarray(), expected)
    np.testing.assert_array_equal(labels.toarray(), expected != 0)
    after = [part for part in vars(matrix).values() if isinstance(part, np.ndarray)]
    assert all(now is then for now, then in zip(after, owned, strict=True))
    assert [part.tobytes() for part in owned] == before


def _as_written(triples, form):
    """A matrix with these entries in this order, duplicates and all."""
    rows, columns, values = np.array(triples).T
    if form == "coo":
        return sparse.coo_matrix((values, (rows, columns)), shape=(4, 5))
    major, minor, size = (rows, columns, 4) if form == "csr" else (columns, rows, 5)
    order = np.argsort(major, kind="stable")
    indptr = np.searchsorted(major[order], np.arange(size + 1))
    build = sparse.csr_matrix if form == "csr" else sparse.csc_matrix
    return build((values[order], minor[order], indptr), shape=(4, 5))


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=6))
def test_lists_of_ids_are_indicators_written_shorter(rows):
    labels = check_labels(rows, n_labels=31)
    assert_canonical(labels)
    assert [row.indices.tolist() for row in labels] == [sorted(set(row)) for row in rows]


def test_64_bit_indices_of_the_input_stay_64_bit():
    matrix = sparse.csr_matrix(np.eye(3))
    matrix.indices, matrix.indptr = (
        part.astype(np.int64) for part in (matrix.indices, matrix.indptr)
    )
    indices = matrix.indices
    assert_canonical(check_features(matrix))
    assert matrix.indices is indices


@pytest.mark.parametrize(
    ("form", "part", "content"),
    [
        ("csr", "indptr", np.zeros(0, np.int32)),
        ("csr", "indptr", np.full(4, np.nan)),
        ("csr", "indptr", np.array([0, 2**30, 10 - 2**31, 3], np.int32)),
        ("csc", "indptr", np.array([0, 2**62, 10 - 2**63, 3])),
        ("csr", "indptr", np.array([0, 1, 2**62, 10 - 2**63])),
        ("bsr", "indptr", np.array([0, 1, 2**30, 10 - 2**31], np.int32)),
        ("csr", "indices", np.zeros((3, 1), np.int32)),
        ("coo", "row", np.zeros(1, np.int32)),
        ("csr", "data", None),
        ("coo", "data", None),
        ("bsr", "data", np.ones((3, 0, 0), np.float32)),
        ("bsr", "data", np.ones((3, 2, 1), np.float32)),
        ("lil", "rows", np.array([None] * 3)),
        ("lil", "rows", np.array([[2**40], [0], [1]], object)),
    ],
)
def test_damaged_sparse_matrices_are_named(form, part, content):
    """scipy's own errors, of a look at their size, do not say which input it was."""
    matrix = sparse.eye(3, format=form, dtype=np.float32)
    setattr(matrix, part, content)
    with pytest.raises(FeaturesError, match="X is a damaged sparse matrix"):
        check_features(matrix)


@pytest.mark.parametrize(
    ("form", "part", "content"),
    [
        ("dia", "offsets", np.zeros(0, np.int32)),
        ("dia", "data", np.ones((5000, 3), np.float32)),
        ("dia", "data", np.ones(3, np.float32)),
        ("bsr", "_shape", (4, 3)),
        ("lil", "_shape", (2, 3)),
        ("lil", "_shape", (5000, 3)),
        ("lil", "data", np.array([[1.0], [], [1.0]], object)),
        ("lil", "data", np.array([[1.0] * 5000, [1.0], [1.0]], object)),
    ],
)
@pytest.mark.parametrize("check", [check_features, check_labels])
def test_scipy_never_reads_beyond_the_end_of_damaged_arrays(form, part, content, check):
    """It would end the process of whoever fits or serves, without a message."""
    matrix = sparse.eye(3, format=form, dtype=np.float32)
    if form == "bsr":
        matrix = matrix.tobsr((3, 3))
    setattr(matrix, part, content)
    with pytest.raises((FeaturesError, LabelsError), match="is a damaged sparse matrix"):
        check(matrix)


def test_memory_is_shared_where_nothing_has_to_change():
    """A copy of the largest matrix of the program would double its memory."""
    matrix = sparse.random(50, 40, 0.1, format="csr", dtype=np.float32, random_state=0)
    table = matrix.toarray()
    assert np.shares_memory(check_features(matrix).data, matrix.data)
    assert np.shares_memory(check_features(table), table)
    assert np.shares_memory(check_labels(matrix).indices, matrix.indices)


def test_duplicates_of_opposite_sign_are_still_negative_labels():
    cancelling = sparse.coo_matrix(([1, -1], ([0, 0], [0, 0])), shape=(1, 1))
    with pytest.raises(LabelsError, match="negative"):
        check_labels(cancelling)


def test_small_integers_do_not_wrap_when_duplicates_are_added_up():
    places = np.zeros(200, int)
    counts = sparse.coo_matrix((np.ones(200, np.int8), (places, places)), shape=(1, 1))
    assert check_features(counts).toarray().tolist() == [[200.0]]


@pytest.mark.parametrize(
    ("Y", "single"),
    [
        ([2, 0, 1], True),
        (np.array([2, 0]), True),
        ([[2], [0, 1]], False),
        ([[], []], False),
        (np.array([[1], [2, 3]], dtype=object), False),
        (np.eye(2), False),
        (sparse.eye(2), False),
    ],
)
def test_one_label_per_sample_is_told_from_lists(Y, single):
    assert is_single_label(Y) is single


def test_what_refuses_to_be_an_array_gives_its_own_advice():
    """As tensors with gradients and sparse tensors do, which say what to call."""

    class Tensor:
        def tolist(self):
            return []

        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("Use tensor.detach().numpy() instead.")

    with pytest.raises(FeaturesError, match=r"X cannot be read as an array: Use tensor\.detach"):
        check_features(Tensor())
    with pytest.raises(LabelsError, match=r"Y cannot be read as an array: Use tensor\.detach"):
        check_labels(Tensor(), n_samples=2)


def test_a_setting_that_is_nearly_right_is_guessed():
    with pytest.raises(ParameterError, match=r"'cost' parameter.*Got 'autto'.*mean 'auto'\?"):
        LabelTree(cost="autto").fit(np.eye(2), [[0], [1]])
    with pytest.raises(ParameterError, match=r"Got 'cheap' instead\.$"):
        LabelTree(cost="cheap").fit(np.eye(2), [[0], [1]])


def test_no_samples_and_no_labels_are_no_crash():
    assert check_labels([]).shape == (0, 0)
    assert check_labels([[], []]).shape == (2, 0)
    assert check_features(np.zeros((0, 3))).shape == (0, 3)


def test_ids_beyond_the_known_labels_are_named():
    with pytest.raises(LabelsError, match="ids end at 4"):
        check_labels([[1], [7]], n_labels=5)


def test_the_row_of_a_bad_value_is_named():
    table = np.ones((5, 3))
    table[3, 1] = np.nan
    for features in (table, sparse.csc_array(table)):
        with pytest.raises(FeaturesError, match="row 3"):
            check_features(features)


lists_of_texts = st.lists(st.text(max_size=5), max_size=5)
containers = st.sampled_from([list, tuple, iter, lambda texts: np.array(texts, object)])


@given(lists_of_texts, containers)
def test_texts_in_any_container_are_the_same_list(texts, container):
    found = check_texts(container(texts))
    assert type(found) is list
    assert found == texts


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        ("a text", r"mine is the single text 'a text'; expected a list.*\[text\]"),
        (b"bytes", "mine is the single text b'bytes'"),
        (None, "mine is None, a NoneType"),
        (7, "mine is 7, a int"),
        ({"a": "b"}, "mine is {'a': 'b'}, a dict"),
        (["a", None], r"mine\[1\] is None, a NoneType.*an empty text"),
        (["a", b"b"], r"mine\[1\] is b'b', a bytes"),
        ([["a"]], r"mine\[0\] is \['a'\], a list"),
        ([float("nan")], r"mine\[0\] is nan, a float"),
    ],
)
def test_what_is_no_list_of_texts_is_named(texts, match):
    with pytest.raises(TextsError, match=match):
        check_texts(texts, "mine")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (um.data.Samples(texts=["a"], labels=[["x"]]), "a Samples; .* pass its .texts, and"),
        (um.data.make_extreme(10, 9, 5), "a Dataset; .* pass .train.texts, and .train.labels"),
    ],
)
def test_data_in_place_of_texts_says_where_the_texts_are(data, match):
    with pytest.raises(TextsError, match=match):
        check_texts(data)


def test_one_text_is_not_a_list():
    with pytest.raises(TextsError, match=r"text is \['a'\], a list; expected a single text"):
        check_text(["a"])


def test_a_long_text_is_not_repeated_in_full():
    with pytest.raises(TextsError) as caught:
        check_texts("long " * 1000)
    assert len(str(caught.value)) < 200


some_names = st.one_of(st.text(max_size=3), st.integers(), st.booleans())


@given(st.lists(st.lists(some_names, max_size=5), max_size=5), st.sampled_from([list, tuple]))
def test_label_lists_are_names_in_order_each_once(lists, container):
    found = check_label_lists([container(names) for names in lists], n_texts=len(lists))
    assert found == [list(dict.fromkeys(map(str, names))) for names in lists]
    assert all(type(name) is str for names in found for name in names)
    for names, given_ in zip(found, lists, strict=True):
        assert check_names(given_) == names


ANSWERS = [[("rye", 0.9), ("oats", 0.1)], []]


@pytest.mark.parametrize("labels", [ANSWERS, [ANSWERS[0][0], "rye"]])
def test_answers_in_place_of_labels_are_refused(labels):
    """Otherwise a tagger that learns from its own answers has labels such as "('rye', 0.9)"."""
    with pytest.raises(LabelsError, match=r"labels\[0\] has \('rye', 0.9\).* for name, _ in tags"):
        check_label_lists(labels, 2)


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (["['rye', 'oats']", "[]", "x"], r"2 of 3 labels are lists .*'rye', 'oats'.*literal_eval"),
        (["rye|oats", "rye"], r"1 of 2 labels have '\|' .*'rye\|oats'.*split"),
    ],
)
def test_names_that_are_lists_written_to_a_file_are_doubted(labels, match):
    with pytest.warns(UserWarning, match=match):
        assert check_label_lists(labels, len(labels)) == [[name] for name in labels]


def test_names_in_lists_may_have_any_sign():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_label_lists([["rye|oats", "['rye']"], ["[sic]"]], 2)
        check_label_lists(["rye|oats", *["rye"] * 9], 10)


def test_a_name_alone_is_a_list_of_one():
    assert check_label_lists(["ab", 3, np.int64(4), np.str_("c")], 4) == [
        ["ab"],
        ["3"],
        ["4"],
        ["c"],
    ]
    assert check_label_lists(np.array([1, 2]), 2) == [["1"], ["2"]]
    assert check_label_lists([{"a"}, frozenset("b"), (("a", 1),)], 3) == [
        ["a"],
        ["b"],
        ["('a', 1)"],
    ]
    assert check_names("ab") == ["ab"]


@pytest.mark.parametrize(
    "labels",
    ["ab", b"ab", {"a": 1, "b": 2}, None, 7, [None, "a"], [["a"], [None]], [[["a"]], "b"],
     [float("nan"), "a"], [[np.float64("nan")], "a"], [[np.float32("nan")], "a"], [b"a", "b"],
     [{"a": ["b"]}, [{}]], sparse.eye(2, format="csr")],
)  # fmt: skip
def test_what_is_no_list_of_names_is_refused(labels):
    with pytest.raises(LabelsError, match="label"):
        check_label_lists(labels, n_texts=2)


@pytest.mark.parametrize("n_texts", [0, 1, 3])
def test_every_text_needs_its_labels(n_texts):
    with pytest.raises(LabelsShapeError, match=f"{n_texts} texts but 2 lists of labels"):
        check_label_lists([["a"], ["b"]], n_texts)


def test_texts_of_labels_go_by_name():
    assert check_label_texts({}) == {}
    assert check_label_texts({1: "a", "b": ""}) == {"1": "a", "b": ""}
    for wrong in (["a"], "a", None, {"a": None}, {"a": 1}):
        with pytest.raises(TextsError, match="label_texts"):
            check_label_texts(wrong)
    with pytest.raises(TextsError, match=r"label_texts\['b'\] is None, a NoneType; expected a str"):
        check_label_texts({"a": "x", "b": None})
    with pytest.raises(LabelsError, match="label_texts has '5' twice"):
        check_label_texts({5: "a", "5": "b"})
    with pytest.raises(LabelsError, match="label_texts has None"):
        check_label_texts({None: "a"})


def test_long_features_have_64_bit_indices(monkeypatch):
    """A billion samples have more values than 32 bits can count."""
    monkeypatch.setattr("umpteen.validation.arrays._MOST_SHORT", 8)
    short, long = sparse.csr_matrix(np.eye(4)), sparse.csr_matrix(np.eye(5))
    assert check_features(short).indices.dtype == check_features(short).indptr.dtype == np.int32
    found = check_features(long)
    assert found.indices.dtype == found.indptr.dtype == np.int64
    assert check_features(found) is found
    assert (found != long).nnz == 0
    doubled = sparse.coo_matrix((np.ones(6), ([0] * 6, [2, 1] * 3)), shape=(4, 3))
    assert check_features(doubled).indices.dtype == np.int32  # once added up
    np.testing.assert_array_equal(check_features(doubled).toarray()[0], [0, 3, 3])
