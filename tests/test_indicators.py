"""Lists of 0 and 1 may be a matrix: read as ids, they would train a wrong model without a word."""

import warnings

import numpy as np
import pytest

import umpteen as um
from umpteen.errors import GroupsError, LabelsError
from umpteen.validation import (
    check_group_labels,
    check_groups,
    check_label_lists,
    check_labels,
)

MATRIX = [[1, 0], [0, 1], [1, 1]]
HONEST = [
    [[0], [1], [0]],
    [[0, 1], [0, 1]],
    [[1, 0], [0], [1]],
    [[1, 0], [0, 1], [0, 2]],
    [[1, 0], [], [0, 1]],
    [[], []],
    [[2, 1, 0], [0, 1, 2]],
]
READERS = {
    "Y": check_labels,
    "group_labels": lambda rows: check_group_labels(rows, n_groups=len(rows)),
    "names": lambda rows: check_label_lists(rows, len(rows)),
    "names as texts": lambda rows: check_label_lists([list(map(str, r)) for r in rows], len(rows)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("rows", [rows for rows in HONEST if any(rows)])
def test_honest_lists_pass_without_a_word(reader, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        READERS[reader](rows)


@pytest.mark.parametrize("reader", ["Y", "names", "names as texts"])
@pytest.mark.parametrize("rows", [MATRIX, [[0, 0], [0, 1]], np.eye(3, dtype=int).tolist()])
def test_ids_that_repeat_themselves_are_a_matrix(reader, rows):
    with pytest.raises(LabelsError, match="list of lists of 0 and 1"):
        READERS[reader](rows)


@pytest.mark.parametrize("reader", READERS)
def test_pairs_that_may_be_either_are_warned_of(reader):
    with pytest.warns(UserWarning, match="pairs of 0 and 1, which are read as"):
        READERS[reader]([[1, 0], [0, 1]])


def test_repeated_ids_of_groups_are_counts_and_only_warned_of():
    with pytest.warns(UserWarning, match="read as label ids"):
        assert check_group_labels(MATRIX, n_groups=3).toarray().tolist() == [[1, 1], [1, 1], [0, 2]]
    with pytest.raises(LabelsError, match="not clear whether they are label ids or counts"):
        check_group_labels([[1, 0, 1], [0, 1, 1]], n_groups=2)


def test_samples_of_groups_are_asked_the_same():
    with pytest.raises(GroupsError, match=r"read as sample numbers: pass .*np.array\(groups\)"):
        check_groups(MATRIX, n_samples=2)
    with pytest.raises(GroupsError, match="list of lists of 0 and 1"):
        check_groups([[1, 0, 0], [0, 1, 1]], n_samples=3)
    with pytest.warns(UserWarning, match="read as sample numbers"):
        check_groups([[1, 0], [0, 1]], n_samples=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_groups([[0, 1], [1, 0], [2, 2]], n_samples=3)


def test_where_the_number_of_labels_is_known_it_must_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_labels([[1, 0], [0, 1]], n_labels=5).shape == (2, 5)
    with pytest.raises(LabelsError, match="list of lists of 0 and 1"):
        check_labels([[1, 0, 0], [0, 1, 1]], n_labels=3)


def test_a_classifier_does_not_learn_from_a_matrix_as_lists():
    with pytest.raises(LabelsError, match=r"np.array\(Y\)"):
        um.NearestCentroid().fit(np.eye(3), MATRIX)
    model = um.NearestCentroid().fit(np.eye(3), np.array(MATRIX))
    assert model.predict(np.eye(3)[:1]).toarray().tolist() == [[1, 0]]
