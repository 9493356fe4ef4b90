"""In how many texts each n-gram occurs."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, kernel, shared
from umpteen.kernels.hashing import number
from umpteen.kernels.tokens import fold, read_ngrams

N_PARTITIONS = 32
_PARTITION_SHIFT: Any = np.uint64(64 - 5)
_NONE: Any = np.uint64(0)  # to the left of a single word


@kernel
def count_texts(
    text: Any, text_ends: Any, letters: Any, stop_words: Any, longest: int, n_columns: int
) -> Any:
    """Return the different n-grams, and in how many of the texts each occurs.

    Returns the n-grams' hashes, their numbers of texts, the hashes of what they are joined of (0
    and its own hash for a single word), and where each partition of them starts: n-grams stand in
    order of the first bits of their hashes. Then the different words: hashes, UTF-8, and where
    each ends.

    With `n_columns` > 0, hashes are folded into so many columns, and nothing tells words apart.
    """
    words, spans, _, shorter, last, ngram_ends, ngrams = read_ngrams(
        text, text_ends, letters, stop_words, longest
    )
    if n_columns > 0:
        ngrams = fold(ngrams, shorter, n_columns)
    counts, starts, order = count_ngrams(words, shorter, last, ngram_ends, ngrams)
    n_bytes = 0
    for word in order:
        n_bytes += spans[word, 1] - spans[word, 0]
    single, ends = np.empty(len(order), np.uint64), np.empty(len(order), np.int64)
    spelled, n_spelled = np.empty(n_bytes, np.uint8), 0
    for i in range(len(order)):
        word = order[i]
        for at in range(spans[word, 0], spans[word, 1]):
            spelled[n_spelled] = text[at]
            n_spelled += 1
        single[i], ends[i] = words[word], n_spelled
    return counts, starts, (single, spelled, ends)


@shared
def count_ngrams(words: Any, shorter: Any, last: Any, ngram_ends: Any, ngrams: Any) -> Any:
    """Return the different n-grams as `count_texts` does, and the words that are n-grams."""
    numbers, firsts = number(ngrams)
    n_texts = _count(numbers, ngram_ends, len(firsts))
    order, starts = _by_partition(ngrams, firsts)
    n = len(firsts)
    keys, counts = np.empty(n, np.uint64), np.empty(n, np.int32)
    left, right = np.empty(n, np.uint64), np.empty(n, np.uint64)
    n_single = 0
    for i in range(n):
        ngram = firsts[order[i]]
        word = last[ngram]
        keys[i], counts[i], right[i] = ngrams[ngram], n_texts[order[i]], words[word]
        left[i] = ngrams[shorter[ngram]] if shorter[ngram] >= 0 else _NONE
        if left[i] == _NONE:
            order[n_single] = word  # read already: `n_single` is `i` at the most
            n_single += 1
    return (keys, counts, left, right), starts, order[:n_single].copy()


@inlined
def _count(numbers: Any, ends: Any, n: int) -> Any:
    """In how many of the texts, which end at `ends`, each of n numbers occurs."""
    counts, last_text = np.zeros(n, np.int32), np.zeros(n, np.int32)
    start = 0
    for i in range(len(ends)):
        for place in range(start, ends[i]):
            one = numbers[place]
            counts[one] += last_text[one] != i + 1
            last_text[one] = i + 1
        start = ends[i]
    return counts


@inlined
def _by_partition(ngrams: Any, firsts: Any) -> Any:
    """The order of the n-grams at `firsts` by partition, where each starts and the last ends."""
    starts, free = np.zeros(N_PARTITIONS + 1, np.int64), np.zeros(N_PARTITIONS + 1, np.int64)
    for i in range(len(firsts)):
        starts[np.int64(ngrams[firsts[i]] >> _PARTITION_SHIFT) + 1] += 1
    for partition in range(N_PARTITIONS):
        starts[partition + 1] += starts[partition]
        free[partition + 1] = starts[partition + 1]
    order = np.empty(len(firsts), np.int64)
    for i in range(len(firsts)):
        of_ngram = np.int64(ngrams[firsts[i]] >> _PARTITION_SHIFT)
        order[free[of_ngram]] = i
        free[of_ngram] += 1
    return order, starts


@kernel
def add_counts(keys: Any, counts: Any, left: Any, right: Any, least: int, least_ngram: int) -> Any:
    """Add up the counts of equal n-grams and return those that reach the least count."""
    numbers, firsts = number(keys)
    sums = np.zeros(len(firsts), np.int32)
    for i in range(len(keys)):
        sums[numbers[i]] += counts[i]
    n = 0
    for i in range(len(firsts)):
        if sums[i] >= (least if left[firsts[i]] == _NONE else least_ngram):
            firsts[n], sums[n] = firsts[i], sums[i]
            n += 1
    kept_keys, kept_counts = np.empty(n, np.uint64), np.empty(n, np.int32)
    kept_left, kept_right = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for i in range(n):
        kept_keys[i], kept_counts[i] = keys[firsts[i]], sums[i]
        kept_left[i], kept_right[i] = left[firsts[i]], right[firsts[i]]
    return kept_keys, kept_counts, kept_left, kept_right
