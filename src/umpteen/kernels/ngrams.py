"""In how many texts each run of words occurs."""

from typing import Any

import numpy as np
from numba import njit

from umpteen.kernels.hashing import number
from umpteen.kernels.tokens import fold, hash_runs, plan_runs, read_words

N_PARTITIONS = 32
_PARTITION_SHIFT: Any = np.uint64(64 - 5)


@njit(nogil=True, cache=True)
def count_texts(
    text: Any, text_ends: Any, letters: Any, stop_words: Any, longest: int, n_columns: int
) -> Any:
    """The different runs of words, and in how many of the texts each occurs.

    Returns the runs' hashes, their numbers of texts, the hashes of what they are joined of (0 and
    its own hash for a single word), and where each partition of them starts: runs stand in order
    of the first bits of their hashes. Then the different words: hashes, UTF-8, and where each ends.

    With `n_columns` > 0, hashes are folded into so many columns, and nothing tells words apart.
    """
    words, spans, word_ends = read_words(text, text_ends, letters, stop_words)
    shorter, last, run_ends = plan_runs(word_ends, longest)
    runs = hash_runs(words, shorter, last)
    if n_columns > 0:
        runs = fold(runs, shorter, n_columns)
    numbers, firsts = number(runs)
    counts = _count(numbers, run_ends, len(firsts))
    order, starts = _by_partition(runs[firsts])
    firsts, counts = firsts[order], counts[order]
    left = np.zeros(len(firsts), np.uint64)
    for i in range(len(firsts)):
        if shorter[firsts[i]] >= 0:
            left[i] = runs[shorter[firsts[i]]]
    single = last[firsts[left == 0]]
    return (
        (runs[firsts], counts, left, words[last[firsts]]), starts,
        (words[single], *_cut(text, spans, single)),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _count(numbers: Any, ends: Any, n: int) -> Any:
    """In how many of the texts, which end at `ends`, each of n numbers occurs."""
    counts, last_text = np.zeros(n, np.int32), np.full(n, -1, np.int32)
    start = 0
    for i in range(len(ends)):
        for one in numbers[start : ends[i]]:
            counts[one] += last_text[one] != i
            last_text[one] = i
        start = ends[i]
    return counts


@njit(nogil=True, cache=True)
def _by_partition(keys: Any) -> Any:
    """The order of keys by partition, and where each starts, with the end of the last."""
    starts = np.zeros(N_PARTITIONS + 1, np.int64)
    for key in keys:
        starts[np.int64(key >> _PARTITION_SHIFT) + 1] += 1
    starts = np.cumsum(starts)
    order, free = np.empty(len(keys), np.int64), starts.copy()
    for i in range(len(keys)):
        partition = keys[i] >> _PARTITION_SHIFT
        order[free[partition]] = i
        free[partition] += 1
    return order, starts


@njit(nogil=True, cache=True)
def _cut(text: Any, spans: Any, wanted: Any) -> Any:
    """The bytes of the wanted spans one after another, and where each ends."""
    ends = np.cumsum(spans[wanted, 1] - spans[wanted, 0])
    letters = np.empty(ends[-1] if len(ends) else 0, np.uint8)
    at = 0
    for i in range(len(wanted)):
        start, end = spans[wanted[i]]
        letters[at : ends[i]] = text[start:end]
        at = ends[i]
    return letters, ends


@njit(nogil=True, cache=True)
def add_counts(keys: Any, counts: Any, left: Any, right: Any, least: int, least_run: int) -> Any:
    """Counts of equal runs added up; only those that reach the least count are returned."""
    numbers, firsts = number(keys)
    sums = np.zeros(len(firsts), np.int32)
    for i in range(len(keys)):
        sums[numbers[i]] += counts[i]
    is_word = left[firsts] == 0
    kept = np.flatnonzero(sums >= np.where(is_word, least, least_run))
    firsts = firsts[kept]
    return keys[firsts], sums[kept], left[firsts], right[firsts]
