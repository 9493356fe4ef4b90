"""From label names to label ids, the same for every split of a data set."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.data.samples import Samples
from umpteen.errors import FeaturesError, LabelsError
from umpteen.validation import check_labels


def label_vocabulary(splits: Iterable[Samples], label_texts: Mapping[str, str]) -> list[str] | None:
    """Return label names by id: those of train sorted, then what other splits and texts add.

    None where samples come with numbered labels.

    >>> splits = Samples(texts=["a"], labels=[["z", "b"]]), Samples(texts=["b"], labels=[["a"]])
    >>> label_vocabulary(splits, {"c": "text"})
    ['b', 'z', 'a', 'c']
    """
    splits = list(splits)
    if splits[0].labels is None:
        return None
    ids: dict[str, None] = {}
    train, *others = [set(chain.from_iterable(split.labels or [])) for split in splits]
    for names in (train, set().union(*others), set(label_texts)):
        ids.update(dict.fromkeys(sorted(names - ids.keys())))
    return list(ids)


def numbered(splits: list[Samples], names: list[str] | None) -> list[csr_matrix]:
    """Return the label matrix of each split, all equally wide; without labels, rows are empty."""
    if names is None:
        return _as_wide([_given(split) for split in splits])
    ids = {name: i for i, name in enumerate(names)}
    return [_by_name(split, ids) for split in splits]


def widened(features: list[Any]) -> list[Any]:
    """Return features of all splits, equally wide: sparse ones get empty columns."""
    if any(X is None for X in features) or all(sparse.issparse(X) for X in features):
        return _as_wide(features) if sparse.issparse(features[0]) else features
    widths = {np.shape(X)[1:] for X in features}
    if len(widths) > 1:
        raise FeaturesError(f"splits have features of different shapes {sorted(widths)}")
    return features


def _given(split: Samples) -> csr_matrix:
    if split.labels is not None:
        raise LabelsError(
            "train has numbered labels (Y) but another split has label names; use one of the two"
        )
    return _no_labels(len(split), 0) if split.Y is None else check_labels(split.Y)


def _by_name(split: Samples, ids: Mapping[str, int]) -> csr_matrix:
    if split.labels is None and split.Y is not None:
        raise LabelsError(
            "train has label names but another split has numbered labels (Y); use one of the two"
        )
    rows = split.labels if split.labels is not None else [[]] * len(split)
    if not rows:
        return _no_labels(0, len(ids))
    return check_labels([sorted({ids[name] for name in row}) for row in rows], n_labels=len(ids))


def _no_labels(n_samples: int, n_labels: int) -> csr_matrix:
    nothing = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(n_samples + 1, np.int32)
    return csr_matrix(nothing, shape=(n_samples, n_labels))


def _as_wide(matrices: list[csr_matrix]) -> list[csr_matrix]:
    width = max(matrix.shape[1] for matrix in matrices)
    return [
        csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))
        for matrix in matrices
    ]
