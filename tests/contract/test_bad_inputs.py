"""The inputs that crash other libraries, or that those silently misread.

Each line of the tables says what is done to clean input, and either that the answer is that of
the clean input, or which error comes, with which advice.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.errors import FeaturesError, LabelsError, LabelsShapeError

from .cases import N_LABELS, N_SAMPLES, checkerboard, kinds

Change = Callable[[csr_matrix], Any]


class Refused(NamedTuple):
    change: Change
    error: type[Exception]
    advice: str


def _with(attribute: str, position: Any, value: Any) -> Change:
    """Overwrite a part of a matrix behind scipy's back."""

    def change(matrix: csr_matrix) -> csr_matrix:
        matrix = matrix.copy()
        array = getattr(matrix, attribute).copy()
        array[position] = value
        setattr(matrix, attribute, array)
        return matrix

    return change


def _without_indptr(matrix: csr_matrix) -> csr_matrix:
    matrix = matrix.copy()
    matrix.indptr = matrix.indptr[:0]
    return matrix


def _typed(dtype: Any) -> Change:
    return lambda matrix: matrix.astype(dtype)


def _with_64_bit_indices(matrix: csr_matrix) -> csr_matrix:
    matrix = matrix.copy()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def _coo_in_halves(matrix: csr_matrix) -> sparse.coo_matrix:
    """Every entry twice, with half its value."""
    entries = matrix.tocoo()
    rows, columns = np.tile(entries.row, 2), np.tile(entries.col, 2)
    return sparse.coo_matrix((np.tile(entries.data / 2, 2), (rows, columns)), shape=matrix.shape)


def _unsorted_halves(matrix: csr_matrix) -> csr_matrix:
    """Every entry twice, and each row from right to left."""
    indices = np.concatenate([np.repeat(row.indices[::-1], 2) for row in matrix])
    values = np.concatenate([np.repeat(row.data[::-1], 2) / 2 for row in matrix])
    return csr_matrix((values, indices, 2 * matrix.indptr), shape=matrix.shape)


def _extra_zeros(matrix: csr_matrix) -> csr_matrix:
    entries = matrix.tocoo()
    everywhere = np.indices(matrix.shape).reshape(2, -1)
    values = np.concatenate([entries.data, np.zeros(everywhere.shape[1])])
    rows = np.concatenate([entries.row, everywhere[0]])
    columns = np.concatenate([entries.col, everywhere[1]])
    return sparse.coo_matrix((values, (rows, columns)), shape=matrix.shape)


def _int8_duplicates(times: int) -> Change:
    def change(matrix: csr_matrix) -> sparse.coo_matrix:
        entries = matrix.tocoo()
        places = (np.tile(entries.row, times), np.tile(entries.col, times))
        return sparse.coo_matrix((np.ones(len(places[0]), np.int8), places), shape=matrix.shape)

    return change


def _lists(matrix: csr_matrix) -> list[list[int]]:
    return [row.indices.tolist() for row in matrix]


def _objects(matrix: csr_matrix) -> np.ndarray:
    rows = np.empty(matrix.shape[0], dtype=object)
    rows[:] = _lists(matrix)
    return rows


SAME_SPARSE_FEATURES: dict[str, Change] = {
    "float64": _typed(np.float64),
    "int64 counts": _typed(np.int64),
    "bool": _typed(bool),
    "csr_array": sparse.csr_array,
    "CSC": lambda X: X.tocsc(),
    "LIL": lambda X: X.tolil(),
    "DOK": lambda X: X.todok(),
    "BSR": lambda X: X.tobsr(),
    "COO with duplicates": _coo_in_halves,
    "unsorted duplicates": _unsorted_halves,
    "explicit zeros": _extra_zeros,
    "64-bit indices": _with_64_bit_indices,
}

SAME_DENSE_FEATURES: dict[str, Change] = {
    "float64 array": lambda X: X.toarray().astype(np.float64),
    "float16 array": lambda X: X.toarray().astype(np.float16),
    "bool array": lambda X: X.toarray() > 0,
    "big-endian array": lambda X: X.toarray().astype(">f4"),
    "Fortran order": lambda X: np.asfortranarray(X.toarray()),
    "every other row": lambda X: np.repeat(X.toarray(), 2, axis=0)[::2],
    "list of lists": lambda X: X.toarray().tolist(),
    "np.matrix": lambda X: X.todense(),
}

SAME_LABELS: dict[str, Change] = {
    "int8": _typed(np.int8),
    "bool": _typed(bool),
    "csr_array": sparse.csr_array,
    "CSC": lambda Y: Y.tocsc(),
    "COO": lambda Y: Y.tocoo(),
    "64-bit indices": _with_64_bit_indices,
    "counts": lambda Y: 3 * Y,
    "fractions": lambda Y: 0.25 * Y,
    "explicit zeros": _extra_zeros,
    "unsorted duplicates": _unsorted_halves,
    "256 duplicates in int8": _int8_duplicates(256),
    "300 duplicates in int8": _int8_duplicates(300),
    "array": lambda Y: Y.toarray(),
    "bool array": lambda Y: Y.toarray() > 0,
    "lists of ids": _lists,
    "tuples of ids": lambda Y: tuple(map(tuple, _lists(Y))),
    "sets of ids": lambda Y: list(map(set, _lists(Y))),
    "arrays of ids": lambda Y: list(map(np.array, _lists(Y))),
    "repeated ids": lambda Y: [2 * ids for ids in _lists(Y)],
    "object array of lists": _objects,
}

BAD_FEATURES = {
    "NaN": Refused(_with("data", 5, np.nan), FeaturesError, "NaN in row 2 .*SimpleImputer"),
    "infinity": Refused(_with("data", 0, np.inf), FeaturesError, "infinity.*replace or drop"),
    "-infinity": Refused(_with("data", 0, -np.inf), FeaturesError, "infinity.*replace or drop"),
    "NaN in an array": Refused(
        lambda X: np.where(X.toarray() > 0, np.nan, 0),
        FeaturesError,
        "NaN in row 0 .*SimpleImputer",
    ),
    "beyond float32": Refused(
        lambda X: X.astype(np.float64) * 1e300, FeaturesError, "too large for float32"
    ),
    "array beyond float32": Refused(
        lambda X: X.toarray().astype(np.float64) * 1e300, FeaturesError, "too large for float32"
    ),
    "index out of range": Refused(_with("indices", 3, 999), FeaturesError, "build it again"),
    "negative index": Refused(_with("indices", 3, -1), FeaturesError, "build it again"),
    "decreasing indptr": Refused(_with("indptr", 3, 60), FeaturesError, "build it again"),
    "indptr beyond the end": Refused(_with("indptr", -1, 9999), FeaturesError, "build it again"),
    "no indptr": Refused(_without_indptr, FeaturesError, "build it again"),
    "indptr not from 0": Refused(_with("indptr", 0, 1), FeaturesError, "build it again"),
    "negative COO index": Refused(
        lambda X: _with("row", 0, -1)(X.tocoo()), FeaturesError, "build it again"
    ),
    "one dimension": Refused(
        lambda X: X.toarray()[0], FeaturesError, r"X.reshape\(1, -1\) for one sample"
    ),
    "one sparse dimension": Refused(
        lambda X: sparse.coo_array(X.toarray()[0]), FeaturesError, "expected 2 dimensions"
    ),
    "three dimensions": Refused(
        lambda X: X.toarray()[:, :, None], FeaturesError, "Reshape your data"
    ),
    "no columns": Refused(lambda X: X[:, :0], FeaturesError, "vocabulary"),
    "objects": Refused(
        lambda X: X.toarray().astype(object), FeaturesError, r"needs .astype\(float\)"
    ),
    "texts": Refused(lambda X: ["a text"] * X.shape[0], FeaturesError, "Tagger takes texts"),
    "complex": Refused(lambda X: X.astype(np.complex64), FeaturesError, "use real numbers"),
    "ragged": Refused(lambda X: [[1.0], [1.0, 2.0]], FeaturesError, "not a table of numbers"),
    "None": Refused(lambda X: None, FeaturesError, "expected numbers"),
}

BAD_FEATURES_AT_FIT = BAD_FEATURES | {
    "no rows": Refused(lambda X: X[:0], FeaturesError, "minimum of 1 is required"),
    "one row less": Refused(lambda X: X[:-1], LabelsShapeError, "off by one"),
    "half of the rows": Refused(lambda X: X[: N_SAMPLES // 2], LabelsShapeError, "same row of X"),
}

BAD_FEATURES_AT_PREDICT = BAD_FEATURES | {
    "fewer features": Refused(lambda X: X[:, :-1], FeaturesError, "same vectorizer"),
    "more features": Refused(lambda X: sparse.hstack([X, X]), FeaturesError, "same vectorizer"),
}

BAD_LABELS = {
    "no labels at all": Refused(lambda Y: 0 * Y, LabelsError, "nothing to learn"),
    "empty lists": Refused(lambda Y: [[]] * Y.shape[0], LabelsError, "nothing to learn"),
    "None": Refused(lambda Y: None, LabelsError, r"fit\(X, Y\)"),
    "transposed": Refused(lambda Y: Y.T, LabelsShapeError, "pass Y.T"),
    "one row more": Refused(lambda Y: sparse.vstack([Y, Y[:1]]), LabelsShapeError, "drop a header"),
    "negative": Refused(lambda Y: -Y, LabelsError, "use 0"),
    "-1 and 1": Refused(lambda Y: 2 * Y.toarray() - 1, LabelsError, "use 0"),
    "NaN": Refused(_with("data", 0, np.nan), LabelsError, "zero means not"),
    "NaN in an array": Refused(lambda Y: Y.toarray() / 0.0, LabelsError, "zero means not"),
    "index out of range": Refused(_with("indices", 0, N_LABELS), LabelsError, "build it again"),
    "negative index": Refused(_with("indices", 0, -1), LabelsError, "build it again"),
    "decreasing indptr": Refused(_with("indptr", 3, 60), LabelsError, "build it again"),
    "texts in lists": Refused(
        lambda Y: [["red"], *_lists(Y)[1:]], LabelsError, "MultiLabelBinarizer numbers lists"
    ),
    "texts": Refused(lambda Y: ["red"] * Y.shape[0], LabelsError, "Tagger takes .* LabelEncoder"),
    "texts as objects": Refused(
        lambda Y: np.array(["red"] * Y.shape[0], object), LabelsError, "LabelEncoder"
    ),
    "fractions in lists": Refused(lambda Y: [[0.5], *_lists(Y)[1:]], LabelsError, "whole numbers"),
    "a number among lists": Refused(
        lambda Y: [3, *_lists(Y)[1:]], LabelsError, "expected a list of label ids"
    ),
    "id 2**40": Refused(lambda Y: [[2**40], *_lists(Y)[1:]], LabelsError, "fit 32 bits"),
    "id 2**80": Refused(lambda Y: [[2**80], *_lists(Y)[1:]], LabelsError, "count from 0"),
    "negative id": Refused(lambda Y: [[-1], *_lists(Y)[1:]], LabelsError, "ids start at 0"),
    "negative single id": Refused(lambda Y: kinds() - 1, LabelsError, "ids start at 0"),
    "single id as 1e300": Refused(lambda Y: kinds() * 1e300, LabelsError, "fit 32 bits"),
    "single id as 2**63": Refused(
        lambda Y: kinds().astype(np.uint64) + np.uint64(2**63), LabelsError, "fit 32 bits"
    ),
    "single id with a fraction": Refused(lambda Y: kinds() + 0.5, LabelsError, "whole number"),
    "single id NaN": Refused(lambda Y: kinds() * np.nan, LabelsError, "one label id per sample"),
    "indicator as lists": Refused(
        lambda Y: Y.toarray().astype(int).tolist(), LabelsError, r"np.array\(Y\)"
    ),
    "column of ids": Refused(lambda Y: kinds()[:, None], LabelsError, r"Y.ravel\(\)"),
    "three dimensions": Refused(lambda Y: Y.toarray()[:, :, None], LabelsShapeError, "2 dimens"),
    "complex": Refused(lambda Y: Y.astype(np.complex64), LabelsError, "use real numbers"),
}

_SHARED = (
    "one row more", "negative", "NaN", "index out of range", "texts in lists",
    "texts", "fractions in lists", "negative id", "single id with a fraction", "three dimensions",
)  # fmt: skip

BAD_CANDIDATES = {name: BAD_LABELS[name] for name in _SHARED} | {
    "transposed": Refused(lambda Y: Y.T, LabelsShapeError, "pass candidates.T"),
    "None": Refused(lambda Y: None, LabelsError, "candidates"),
    "one column less": Refused(lambda Y: Y[:, :-1], LabelsShapeError, "there are 6 labels"),
    "one column more": Refused(
        lambda Y: sparse.hstack([Y, Y[:, :1]]), LabelsShapeError, "there are 6 labels"
    ),
    "unknown id": Refused(lambda Y: [[N_LABELS], *_lists(Y)[1:]], LabelsError, "ids end at 5"),
}


def _table(lines: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("line", lines.values(), ids=lines)


@_table(SAME_SPARSE_FEATURES)
def test_sparse_features_in_other_clothes_give_the_same_bits(case, line):
    X, Y = checkerboard()
    expected = case.brief.predict_topk(X, k=2)
    assert case.fitted(line(X), Y, **case.briefly).predict_topk(line(X), k=2) == expected


@_table(SAME_DENSE_FEATURES)
def test_dense_features_in_other_clothes_give_the_same_labels(case, line):
    X, Y = checkerboard()
    expected = case.plain.predict_topk(X, k=2)
    top = case.fitted(line(X), Y).predict_topk(line(X), k=2)
    np.testing.assert_array_equal(top.labels, expected.labels)
    np.testing.assert_allclose(top.scores, expected.scores, rtol=1e-5)


@_table(SAME_LABELS)
def test_labels_in_other_clothes_give_the_same_bits(case, line):
    X, Y = checkerboard()
    model = case.fitted(X, line(Y), **case.briefly)
    assert model.n_labels_ == N_LABELS
    assert model.predict_topk(X, k=2) == case.brief.predict_topk(X, k=2)
    assert case.plain.score(X, line(Y)) == 1.0


@_table(SAME_LABELS)
def test_candidates_in_other_clothes_give_the_same_bits(case, line):
    X, Y = checkerboard()
    model = case.plain
    scores, expected = model.score_labels(X, line(Y)), model.score_labels(X, Y)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(scores, part), getattr(expected, part))


@_table(BAD_CANDIDATES)
def test_bad_candidates_are_refused_with_advice(case, line):
    X, Y = checkerboard()
    with pytest.raises(line.error, match=line.advice):
        case.plain.score_labels(X, line.change(Y))


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value encountered in divide")
@_table(BAD_LABELS)
def test_bad_labels_are_refused_with_advice(case, line):
    X, Y = checkerboard()
    with pytest.raises(line.error, match=line.advice):
        case.fitted(X, line.change(Y))


@_table(BAD_FEATURES_AT_FIT)
def test_bad_features_are_refused_in_training(case, line):
    X, Y = checkerboard()
    with pytest.raises(line.error, match=line.advice):
        case.fitted(line.change(X), Y)


@_table(BAD_FEATURES_AT_PREDICT)
def test_bad_features_are_refused_in_prediction(case, line):
    X, _ = checkerboard()
    with pytest.raises(line.error, match=line.advice):
        case.plain.predict_topk(line.change(X))
