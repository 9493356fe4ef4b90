"""From texts to rows of TF-IDF weights."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, kernel, shared
from umpteen.kernels.hashing import find
from umpteen.kernels.sorting import sort_ids
from umpteen.kernels.tokens import fold, read_ngrams


@inlined
def find_columns(ngrams: Any, shorter: Any, slots: Any, keys: Any, n_columns: int) -> Any:
    """Return the column of each n-gram, -1 if it has none; without a vocabulary, by its hash."""
    columns = np.empty(len(ngrams), np.int32)
    if len(keys) > 0:
        for ngram in range(len(ngrams)):
            columns[ngram] = slots[find(ngrams[ngram], slots, keys)] - 1
    else:
        folded = fold(ngrams, shorter, n_columns)
        for ngram in range(len(ngrams)):
            columns[ngram] = folded[ngram]
    return columns


@kernel
def weigh_texts(
    text: Any, text_ends: Any, letters: Any, stop_words: Any, longest: int, slots: Any, keys: Any,
    idf: Any, n_first: int, sublinear: bool,
) -> Any:  # fmt: skip
    """Return (indptr, indices, data), a row of length 1 per text: (1 + ln(count)) * `idf`.

    Only the `n_first` columns count for the length, unless a text has none of them. A column is
    the place of an n-gram's hash in `keys`. One look into the table per n-gram,
    and a sort per text.
    """
    _, _, _, shorter, _, ngram_ends, ngrams = read_ngrams(
        text, text_ends, letters, stop_words, longest
    )
    return weigh_ngrams(shorter, ngram_ends, ngrams, slots, keys, idf, n_first, sublinear)


@shared
def weigh_ngrams(
    shorter: Any, ngram_ends: Any, ngrams: Any, slots: Any, keys: Any, idf: Any, n_first: int,
    sublinear: bool,
) -> Any:  # fmt: skip
    """Return the rows of texts whose n-grams were read."""
    found = find_columns(ngrams, shorter, slots, keys, len(idf))
    return weigh_columns(found, ngram_ends, idf, n_first, sublinear)


@shared
def weigh_columns(found: Any, ngram_ends: Any, idf: Any, n_first: int, sublinear: bool) -> Any:
    """Return the rows of texts whose n-grams have these columns, which are overwritten."""
    indptr = np.zeros(len(ngram_ends) + 1, np.int32)
    values, spare = np.empty(len(found), np.float32), np.empty(len(found), np.int32)
    n, start = 0, 0
    for i in range(len(ngram_ends)):
        n_found = _drop_unknown(found[start : ngram_ends[i]])
        columns = found[start : start + n_found]
        sort_ids(columns, spare, len(idf) - 1)
        n += _weigh(columns, idf, n_first, sublinear, found[n:], values[n:])
        indptr[i + 1], start = n, ngram_ends[i]
    return indptr, found[:n].copy(), values[:n].copy()


@inlined
def _drop_unknown(columns: Any) -> int:
    """Move the columns that exist to the front; returns how many there are."""
    n = 0
    for i in range(len(columns)):
        columns[n] = columns[i]
        n += columns[i] >= 0
    return n


@inlined
def _weigh(
    columns: Any, idf: Any, n_first: int, sublinear: bool, different: Any, weights: Any
) -> int:
    """The weight of each different one of the sorted columns; `different` may overwrite them."""
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
