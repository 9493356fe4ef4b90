"""The features of texts: words, bigrams, ..., and in how many texts each occurs.

Words come as `tokens.read_words` returns them. `new` has the base forms of the words that
`tokens.number_new_words` numbered. `learned` and `new` end with the extra features of words: those
of word i are `extras[starts[i]:starts[i + 1]]`.
"""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, kernel, shared
from umpteen.kernels.hashing import join, number

N_PARTITIONS = 32
_PARTITION_SHIFT: Any = np.uint64(64 - 5)
_NONE: Any = np.uint64(0)  # to the left of a single word


@shared
def list_features(
    words: Any, numbers: Any, word_ends: Any, learned: Any, new: Any, longest: int
) -> Any:
    """Return the features of texts: all words, then of each text its bigrams, ..., extra features.

    Returns the hash of each, the hashes of what it is joined of (0 and its own hash unless it is an
    n-gram of several words), and where the features of each text end that are no words.
    """
    (starts, extras), (new_bases, new_starts, new_extras) = learned, new
    n_learned, ends = len(starts) - 1, np.empty(len(word_ends), np.int64)
    has_extras = len(extras) + len(new_extras) > 0
    n, first = len(words), 0
    for i in range(len(word_ends)):
        end = word_ends[i]
        for length in range(1, min(longest, end - first)):
            n += end - first - length
        for place in range(first, end if has_extras else first):
            word = numbers[place]
            if word >= n_learned:
                n += new_starts[word - n_learned + 1] - new_starts[word - n_learned]
            elif word >= 0:
                n += starts[word + 1] - starts[word]
        ends[i], first = n, end
    keys, left = np.empty(n, np.uint64), np.empty(n, np.uint64)
    right = np.empty(n, np.uint64)
    for n in range(len(words)):
        word = numbers[n] - n_learned
        keys[n] = words[n] if word < 0 else new_bases[word]
        left[n], right[n] = _NONE, keys[n]
    n, first = len(words), 0
    for i in range(len(word_ends)):
        end, shorter = word_ends[i], first
        for length in range(1, min(longest, end - first)):
            longer = n
            for last in range(first + length, end):
                left[n], right[n] = keys[shorter], keys[last]
                keys[n] = join(left[n], right[n])
                n += 1
                shorter += 1
            shorter = longer
        for place in range(first, end if has_extras else first):
            word = numbers[place]
            if word >= n_learned:
                word -= n_learned
                n = _add(new_extras, new_starts[word], new_starts[word + 1], n, keys, left, right)
            elif word >= 0:
                n = _add(extras, starts[word], starts[word + 1], n, keys, left, right)
        first = end
    return keys, left, right, ends


@inlined
def _add(extras: Any, start: int, end: int, n: int, keys: Any, left: Any, right: Any) -> int:
    for place in range(start, end):
        keys[n], left[n], right[n] = extras[place], _NONE, extras[place]
        n += 1
    return n


@inlined
def fold(keys: Any, left: Any, n_columns: int) -> None:
    """Replace hashes by columns: words have the first half of them, longer n-grams the rest."""
    n_single = np.uint64(n_columns // 2)
    for i in range(len(keys)):
        if left[i] == _NONE:
            keys[i] %= n_single
        else:
            keys[i] = n_single + keys[i] % (np.uint64(n_columns) - n_single)


@kernel
def count_texts(
    words: Any, numbers: Any, word_ends: Any, learned: Any, new: Any, longest: int, n_columns: int
) -> Any:
    """Return the different features, and in how many of the texts each occurs.

    Returns their hashes, their numbers of texts, and what they are joined of (see `list_features`);
    then where each partition of them starts: they stand in order of the first bits of their hashes.
    With `n_columns` > 0, columns replace hashes.
    """
    keys, left, right, ends = list_features(words, numbers, word_ends, learned, new, longest)
    if n_columns > 0:
        fold(keys, left, n_columns)
    different, firsts = number(keys)
    n_texts = _count(different, word_ends, ends, len(firsts))
    order, starts = _by_partition(keys, firsts)
    n = len(firsts)
    found, counts = np.empty(n, np.uint64), np.empty(n, np.int32)
    found_left, found_right = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for i in range(n):
        feature = firsts[order[i]]
        found[i], counts[i] = keys[feature], n_texts[order[i]]
        found_left[i], found_right[i] = left[feature], right[feature]
    return (found, counts, found_left, found_right), starts


@inlined
def _count(numbers: Any, word_ends: Any, ends: Any, n: int) -> Any:
    """In how many of the texts each of n numbers occurs: as a word, or as another feature."""
    counts, last_text = np.zeros(n, np.int32), np.zeros(n, np.int32)
    word, other = 0, word_ends[-1] if len(word_ends) > 0 else 0
    for i in range(len(ends)):
        for place in range(word, word_ends[i]):
            one = numbers[place]
            counts[one] += last_text[one] != i + 1
            last_text[one] = i + 1
        for place in range(other, ends[i]):
            one = numbers[place]
            counts[one] += last_text[one] != i + 1
            last_text[one] = i + 1
        word, other = word_ends[i], ends[i]
    return counts


@inlined
def _by_partition(keys: Any, firsts: Any) -> Any:
    """The order of the features at `firsts` by partition, where each starts and the last ends."""
    starts, free = np.zeros(N_PARTITIONS + 1, np.int64), np.zeros(N_PARTITIONS + 1, np.int64)
    for i in range(len(firsts)):
        starts[np.int64(keys[firsts[i]] >> _PARTITION_SHIFT) + 1] += 1
    for partition in range(N_PARTITIONS):
        starts[partition + 1] += starts[partition]
        free[partition + 1] = starts[partition + 1]
    order = np.empty(len(firsts), np.int64)
    for i in range(len(firsts)):
        own = np.int64(keys[firsts[i]] >> _PARTITION_SHIFT)
        order[free[own]] = i
        free[own] += 1
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
