"""Texts whose words stand for other words, or for several features each."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.hashing import SEED, find, finish, free_slots, join, stir
from umpteen.kernels.ngrams import count_ngrams
from umpteen.kernels.tfidf import weigh_columns
from umpteen.kernels.tokens import hash_ngrams, plan_ngrams, read_words

_NEW_LINE = 10


@kernel
def number_words(
    text: Any, text_ends: Any, letters: Any, stop_words: Any, table: Any, languages: Any
) -> Any:
    """Return the words of texts as numbers: places in `table` (slots, keys), then new words.

    New words are different ones if they stand in texts of different `languages`, which are numbers.
    Returns the number of each word, where the words of each text end, and of the new words in the
    order of their numbers: a line of UTF-8 for each, hash, language.
    """
    slots, keys = table
    words, spans, word_ends = read_words(text, text_ends, letters, stop_words)
    numbers = np.empty(len(words), np.int32)
    n_unknown = 0
    for i in range(len(words)):
        numbers[i] = slots[find(words[i], slots, keys)] - 1
        n_unknown += numbers[i] < 0
    new_slots = free_slots(n_unknown)
    new, firsts = np.empty(n_unknown, np.uint64), np.empty(n_unknown, np.int64)
    hashes, of_new = np.empty(n_unknown, np.uint64), np.empty(n_unknown, np.int64)
    n_new, start, n_bytes = 0, 0, 0
    for text_number in range(len(text_ends) if n_unknown > 0 else 0):
        language = languages[text_number]
        for i in range(start, word_ends[text_number]):
            if numbers[i] >= 0:
                continue
            key = join(np.uint64(language), words[i])
            slot = find(key, new_slots, new)
            if new_slots[slot] == 0:
                new[n_new], hashes[n_new], of_new[n_new], firsts[n_new] = key, words[i], language, i
                n_bytes += spans[i, 1] - spans[i, 0] + 1
                n_new += 1
                new_slots[slot] = n_new
            numbers[i] = len(keys) + new_slots[slot] - 1
        start = word_ends[text_number]
    lines, n_written = np.full(n_bytes, _NEW_LINE, np.uint8), 0
    for i in range(n_new):
        for at in range(spans[firsts[i], 0], spans[firsts[i], 1]):
            lines[n_written] = text[at]
            n_written += 1
        n_written += 1
    return numbers, word_ends, (lines, hashes[:n_new], of_new[:n_new])


@inlined
def _ngrams(numbers: Any, word_ends: Any, learned: Any, new: Any, longest: int) -> Any:
    """What `read_ngrams` returns, of words that stand for others; extra features are last.

    `learned` and `new` are (base forms, where their extra features begin, extra features).
    """
    bases, starts, extras = learned
    new_bases, new_starts, new_extras = new
    n_learned = len(bases)
    words = np.empty(len(numbers), np.uint64)
    n_extra = 0
    for i in range(len(numbers)):
        number = numbers[i]
        if number < n_learned:
            words[i] = bases[number]
            n_extra += starts[number + 1] - starts[number]
        else:
            words[i] = new_bases[number - n_learned]
            n_extra += new_starts[number - n_learned + 1] - new_starts[number - n_learned]
    shorter, last, ngram_ends = plan_ngrams(word_ends, longest)
    hashes = hash_ngrams(words, shorter, last)
    if n_extra == 0:
        return words, shorter, last, ngram_ends, hashes
    n = len(hashes) + n_extra
    all_shorter, all_last = np.empty(n, np.int64), np.empty(n, np.int64)
    all_hashes, all_ends = np.empty(n, np.uint64), np.empty(len(word_ends), np.int64)
    at, first, first_word = 0, 0, 0
    for i in range(len(word_ends)):
        moved = at - first
        for ngram in range(first, ngram_ends[i]):
            is_single = shorter[ngram] < 0
            all_shorter[at] = -1 if is_single else shorter[ngram] + moved
            all_last[at], all_hashes[at] = last[ngram], hashes[ngram]
            at += 1
        for word in range(first_word, word_ends[i]):
            number = numbers[word]
            if number < n_learned:
                for place in range(starts[number], starts[number + 1]):
                    all_shorter[at], all_last[at], all_hashes[at] = -1, word, extras[place]
                    at += 1
            else:
                for place in range(
                    new_starts[number - n_learned], new_starts[number - n_learned + 1]
                ):
                    all_shorter[at], all_last[at], all_hashes[at] = -1, word, new_extras[place]
                    at += 1
        all_ends[i], first, first_word = at, ngram_ends[i], word_ends[i]
    return words, all_shorter, all_last, all_ends, all_hashes


@kernel
def count_forms(numbers: Any, word_ends: Any, learned: Any, new: Any, longest: int) -> Any:
    """Return what `kernels.ngrams.count_texts` returns first: n-grams, and their partitions."""
    words, shorter, last, ngram_ends, ngrams = _ngrams(numbers, word_ends, learned, new, longest)
    counts, starts, _ = count_ngrams(words, shorter, last, ngram_ends, ngrams)
    return counts, starts


@kernel
def weigh_forms(
    numbers: Any, word_ends: Any, learned: Any, new: Any, longest: int, slots: Any, keys: Any,
    idf: Any, n_first: int, sublinear: bool, columns: Any,
) -> Any:  # fmt: skip
    """Return what `kernels.tfidf.weigh_texts` returns, of words that stand for others.

    If words have no extra features, `columns` may have the column of each learned word.
    """
    _, shorter, last, ngram_ends, ngrams = _ngrams(numbers, word_ends, learned, new, longest)
    found = np.empty(len(ngrams), np.int32)
    for i in range(len(ngrams)):
        if shorter[i] < 0 and numbers[last[i]] < len(columns):
            found[i] = columns[numbers[last[i]]]
        else:
            found[i] = slots[find(ngrams[i], slots, keys)] - 1
    return weigh_columns(found, ngram_ends, idf, n_first, sublinear)


@kernel
def hash_lines(lines: Any, salts: Any) -> Any:
    """Return the hash of each line of UTF-8, each with its salt; every line has an end."""
    hashes = np.empty(len(salts), np.uint64)
    n, key = 0, SEED
    for at in range(len(lines)):
        if lines[at] == _NEW_LINE:
            hashes[n], key = join(salts[n], finish(key)), SEED
            n += 1
        else:
            key = stir(key, np.uint64(lines[at]))
    return hashes


@kernel
def base_forms(words: Any, stems: Any, table: Any, bases: Any) -> Any:
    """Return the base form of each word: that of its stem if `table` has it, else itself."""
    slots, keys = table
    found = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        place = slots[find(stems[i], slots, keys)] - 1
        found[i] = bases[place] if place >= 0 else words[i]
    return found


@kernel
def salted(hashes: Any, salt: Any) -> Any:
    """Return other hashes, one for each and for each salt."""
    made = np.empty(len(hashes), np.uint64)
    for i in range(len(hashes)):
        made[i] = join(salt, hashes[i])
    return made
