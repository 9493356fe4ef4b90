"""From texts to rows of TF-IDF weights."""

from typing import Any

import numpy as np
from numba import njit

from umpteen.kernels.hashing import places
from umpteen.kernels.tokens import fold, hash_runs, plan_runs, read_words

_FEW = 24


@njit(nogil=True, cache=True)
def find_columns(runs: Any, shorter: Any, slots: Any, keys: Any, n_columns: int) -> Any:
    """The column of each run, -1 if it has none; without a vocabulary, as its hash falls."""
    if len(keys) > 0:
        return places(runs, slots, keys)
    return fold(runs, shorter, n_columns).astype(np.int32)


@njit(nogil=True, cache=True)
def weigh_texts(
    text: Any, text_ends: Any, letters: Any, stop_words: Any, longest: int, slots: Any, keys: Any,
    idf: Any, n_first: int, sublinear: bool,
) -> Any:  # fmt: skip
    """(indptr, indices, data) of one row per text, of length 1: 1 + ln(count) times `idf`.

    Only the `n_first` columns count for the length, unless a text has none of them. A column is
    the place of a run's hash in `keys`. One look into the table per run of words,
    and a sort per text.
    """
    words, _, word_ends = read_words(text, text_ends, letters, stop_words)
    shorter, last, run_ends = plan_runs(word_ends, longest)
    runs = hash_runs(words, shorter, last)
    found = find_columns(runs, shorter, slots, keys, len(idf))
    indptr = np.zeros(len(text_ends) + 1, np.int32)
    values, spare = np.empty(len(found), np.float32), np.empty(len(found), np.int32)
    n, start = 0, 0
    for i in range(len(text_ends)):
        n_known = _drop_unknown(found[start : run_ends[i]])
        columns = found[start : start + n_known]
        _sort(columns, spare, len(idf) - 1)
        n += _weigh(columns, idf, n_first, sublinear, found[n:], values[n:])
        indptr[i + 1], start = n, run_ends[i]
    return indptr, found[:n].copy(), values[:n].copy()


@njit(nogil=True, cache=True)
def _drop_unknown(columns: Any) -> int:
    """Move the columns that exist to the front; returns how many there are."""
    n = 0
    for column in columns:
        columns[n] = column
        n += column >= 0
    return n


@njit(nogil=True, cache=True)
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
        weights[:n] *= np.float32(1 / np.sqrt(squares if squares > 0 else others))
    return n


@njit(nogil=True, cache=True)
def _sort(numbers: Any, spare: Any, largest: int) -> None:
    """Sort numbers from 0 to `largest` in place: by insertion if few, else byte by byte."""
    if len(numbers) <= _FEW:
        for i in range(1, len(numbers)):
            number, place = numbers[i], i
            while place > 0 and numbers[place - 1] > number:
                numbers[place] = numbers[place - 1]
                place -= 1
            numbers[place] = number
        return
    for shift in range(0, 32, 8):
        if largest >> shift == 0:
            break
        starts = np.zeros(257, np.int64)
        for number in numbers:
            starts[(number >> shift & 255) + 1] += 1
        starts = np.cumsum(starts)
        for number in numbers:
            byte = number >> shift & 255
            spare[starts[byte]] = number
            starts[byte] += 1
        numbers[:] = spare[: len(numbers)]
