"""Groups of samples, and the labels that are given per group only."""

from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.errors import GroupsError, LabelsError
from umpteen.validation.arrays import as_array, canonical_csr
from umpteen.validation.columns import plain
from umpteen.validation.labels import check_labels, is_gappy, is_list_of_lists, list_counts

_MOST = 2**31 - 1  # of a count: there are no more samples

# What messages about labels say, and what is meant here; the longer ones first.
_WORDS_OF_GROUPS = {
    "Tagger takes texts and label names": "Names become numbers by np.unique(names, "
    "return_inverse=True)[1]",
    "A sample without labels has an empty list": "A group without samples has an empty list",
    " (Unknown label type: continuous)": "",
    "a list of label-id lists": "a list with the sample numbers of each group",
    "(samples x labels)": "(groups x samples)",
    "one label id": "one group number",
    "for one label": "for one sample",
    "label id": "sample number",
    "labels": "samples",
    "relevant": "in the group",
}
_WORDS_OF_GROUP_LABELS = {
    "A sample without": "A group without",
    "lists are read as label ids: pass an indicator as an array, np.array(group_labels)": "it is "
    "not clear whether they are label ids or counts: pass counts as an array, "
    "np.array(group_labels), and ids as their counts, "
    "np.array([np.bincount(ids, minlength=2) for ids in group_labels])",
}


def check_groups(groups: Any, *, n_samples: int) -> csr_matrix:
    """Return `groups` as canonical CSR of float32 ones `(n_groups, n_samples)`.

    Accepted are such a matrix, a list with the sample numbers of each group, or, where no
    sample is in two groups, a 1-D array with the group number of each sample. Groups may
    overlap and may be empty; a sample must be in at least one.

    >>> check_groups([0, 1, 0], n_samples=3).toarray()
    array([[1., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """
    _check_ordered(groups, "groups", "sample numbers", GroupsError)
    try:
        members = _members(plain(groups, "groups", GroupsError), n_samples)
    except LabelsError as error:
        raise GroupsError(_in_other_words(str(error), _WORDS_OF_GROUPS)) from None
    if members.shape[1] != n_samples:
        raise GroupsError(
            f"groups has {members.shape[1]:,} columns, but X has {n_samples:,} rows: row j of "
            "groups marks the samples of group j"
            + ("; it looks transposed: pass groups.T" if members.shape[0] == n_samples else "")
        )
    missing = np.flatnonzero(np.bincount(members.indices, minlength=n_samples) == 0)
    if len(missing):
        raise GroupsError(
            f"sample {missing[0]:,} is in no group ({len(missing):,} such samples in all): nothing "
            "is given about it. Leave such samples out of X, or make each a group of its own"
        )
    return members


def check_group_labels(
    group_labels: Any, *, n_groups: int, n_labels: int | None = None
) -> csr_matrix:
    """Return `group_labels` as canonical CSR of float32 counts `(n_groups, n_labels)`.

    Accepted are a matrix that says how often a label occurs in a group, or a list with the
    label ids of each group, where a label that occurs twice counts twice. Without `n_labels`,
    those of a model, some group must have a label.

    >>> check_group_labels([[0, 0, 2], [1]], n_groups=2).toarray()
    array([[2., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """
    _check_ordered(group_labels, "group_labels", "label ids", LabelsError)
    group_labels = plain(group_labels, "group_labels", LabelsError)
    as_lists = is_list_of_lists(group_labels)
    counts = _list_counts(list(group_labels), n_labels) if as_lists else _count_matrix(group_labels)
    if n_labels is not None and counts.shape[1] != n_labels:
        raise GroupsError(
            f"group_labels has {counts.shape[1]:,} labels, but the model was fitted on {n_labels:,}"
        )
    if counts.shape[0] != n_groups:
        transposed = counts.shape[1] == n_groups and not as_lists
        raise GroupsError(
            f"groups has {n_groups:,} rows but group_labels has {counts.shape[0]:,}: row j of "
            "group_labels holds the labels of the group in row j of groups"
            + ("; it looks transposed: pass group_labels.T" if transposed else "")
        )
    if counts.nnz == 0 and n_labels is None:
        raise LabelsError("group_labels has no label at all; there is nothing to learn")
    return counts


def _check_ordered(
    values: Any, name: str, what: str, error: type[GroupsError] | type[LabelsError]
) -> None:
    if isinstance(values, str | bytes | Mapping | Set | Iterator):
        raise error(
            f"{name} is {values!r:.60}, a {type(values).__name__}; expected a list with the {what} "
            "of each group, in order, or a matrix with a row for each"
        )


def _members(groups: Any, n_samples: int) -> csr_matrix:
    if sparse.issparse(groups):
        return check_labels(groups, name="groups")
    if is_list_of_lists(groups):
        return check_labels(list(groups), n_labels=n_samples, name="groups")
    array = as_array(groups, "groups", LabelsError)
    if array.ndim != 1:
        return check_labels(array, name="groups")
    if len(array) != n_samples:
        raise GroupsError(
            f"groups has {len(array):,} entries, but X has {n_samples:,} rows: as a 1-D array it "
            "holds the group number of each sample"
        )
    if array.size and array.min() < 0:
        raise GroupsError(
            f"groups holds the group number {array.min():g}; groups are numbered from 0. Leave "
            "samples of no group out of X, or make each a group of its own"
        )
    if array.size and np.isfinite(array.max()) and is_gappy(int(array.max()), len(array)):
        raise GroupsError(
            f"groups holds the group number {int(array.max()):,}, but X has {n_samples:,} rows; "
            "groups are numbered from 0. Number yours by np.unique(groups, return_inverse=True)[1]"
        )
    return csr_matrix(check_labels(array, name="groups").T.tocsr())


def _list_counts(lists: list[Any], n_labels: int | None) -> csr_matrix:
    try:
        return list_counts(lists, n_labels, "group_labels", repeats=True)
    except LabelsError as error:
        message = _in_other_words(str(error), _WORDS_OF_GROUP_LABELS)
        raise LabelsError(message.replace("minlength=2", f"minlength={n_labels or 2}")) from None


def _count_matrix(group_labels: Any) -> csr_matrix:
    if not sparse.issparse(group_labels):
        array = as_array(group_labels, "group_labels", LabelsError)
        if array.ndim != 2:
            raise GroupsError(
                f"group_labels has shape {array.shape}; expected 2 dimensions (groups x labels), "
                "or a list with the label ids of each group"
            )
        group_labels = csr_matrix(array)
    counts = canonical_csr(group_labels, _whole_counts, "group_labels", LabelsError)
    if counts.data.size and not counts.data.all():
        counts = counts.copy()
        counts.eliminate_zeros()
    return counts


def _whole_counts(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    numbers = values.astype(np.float64)
    is_count = (numbers >= 0) & (numbers <= _MOST) & (np.floor(numbers) == numbers)
    wrong = numbers[~is_count]
    if len(wrong):
        raise LabelsError(
            f"group_labels holds {wrong[0]:g}; expected how often a label occurs in a group: "
            "a whole number below 2^31, 0 where it does not"
        )
    return numbers.astype(np.float32)


def _in_other_words(message: str, words: dict[str, str]) -> str:
    for word, ours in words.items():
        message = message.replace(word, ours)
    return message
