"""From words to rows of TF-IDF weights."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.hashing import find
from umpteen.kernels.ngrams import fold, list_features
from umpteen.kernels.sorting import sort_ids


@kernel
def weigh_texts(
    words: Any, numbers: Any, word_ends: Any, learned: Any, new: Any, longest: int, slots: Any,
    keys: Any, columns: Any, idf: Any, n_first: int, sublinear: bool,
) -> Any:  # fmt: skip
    """Return (indptr, indices, data), a row of length 1 per text: (1 + ln(count)) * `idf`.

    Only the `n_first` columns count for the length, unless a text has none of them. A column is
    the place of a feature's hash in `keys`; without `keys`, it follows from the hash. `columns` has
    those of learned words. One look into the table per feature, and a sort per text. Words are as
    in `kernels.ngrams`.
    """
    hashes, left, _, ends = list_features(words, numbers, word_ends, learned, new, longest)
    found = np.empty(len(hashes), np.int32)
    if len(keys) == 0:
        fold(hashes, left, len(idf))
        for feature in range(len(hashes)):
            found[feature] = hashes[feature]
    else:
        for word in range(len(words)):
            if 0 <= numbers[word] < len(columns):
                found[word] = columns[numbers[word]]
            else:
                found[word] = slots[find(hashes[word], slots, keys)] - 1
        for feature in range(len(words), len(hashes)):
            found[feature] = slots[find(hashes[feature], slots, keys)] - 1
    of_text, spare = np.empty(len(hashes), np.int32), np.empty(len(hashes), np.int32)
    indices, values = np.empty(len(hashes), np.int32), np.empty(len(hashes), np.float32)
    indptr = np.zeros(len(ends) + 1, np.int32)
    n, word, other = 0, 0, len(words)
    for i in range(len(ends)):
        n_known = _append_kept(found, word, word_ends[i], 0, of_text)
        n_known = _append_kept(found, other, ends[i], n_known, of_text)
        sort_ids(of_text[:n_known], spare, len(idf) - 1)
        n += _weigh(of_text[:n_known], idf, n_first, sublinear, indices[n:], values[n:])
        indptr[i + 1], word, other = n, word_ends[i], ends[i]
    return indptr, indices[:n].copy(), values[:n].copy()


@inlined
def _append_kept(columns: Any, start: int, end: int, n: int, kept: Any) -> int:
    """Append those columns that exist to the first n of `kept`; returns how many there are."""
    for place in range(start, end):
        kept[n] = columns[place]
        n += columns[place] >= 0
    return n


@inlined
def _weigh(
    columns: Any, idf: Any, n_first: int, sublinear: bool, different: Any, weights: Any
) -> int:
    """The weight of each different one of the sorted columns; returns how many there are."""
    n, i, squares, others = 0, 0, 0.0, 0.0
    while i < len(columns):
        column, first = columns[i], i
        while i < len(columns) and columns[i] == column:
            i += 1
        count = np.float64(i - first)
        if sublinear and count > 1:
            count = 1 + np.log(count)
        weight = count * idf[column]
        different[n], weights[n] = column, weight
        if column < n_first:
            squares += weight * weight
        else:
            others += weight * weight
        n += 1
    if n > 0:
        scale = np.float32(1 / np.sqrt(squares if squares > 0 else others))
        for place in range(n):
            weights[place] *= scale
    return n
