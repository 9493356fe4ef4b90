"""Words in UTF-8, and n-grams, each as a hash."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, shared
from umpteen.kernels.hashing import SEED, find, finish, join, stir

# The kinds of characters. `letters[code point]` is kind << KIND_SHIFT | code point in lower case.
SEPARATOR, MARK, LETTER, ALONE = range(4)
KIND_SHIFT = 24
_CODE_POINT = (1 << KIND_SHIFT) - 1


@inlined
def _next_letter(text: Any, at: int, letters: Any) -> Any:
    """Lower case and kind of the character at `at`, and where the next one begins."""
    byte = np.int64(text[at])
    if byte < 0x80:
        code, after = byte, at + 1
    elif byte < 0xE0:
        code, after = (byte & 0x1F) << 6 | text[at + 1] & 0x3F, at + 2
    elif byte < 0xF0:
        code = (byte & 0x0F) << 12 | (text[at + 1] & 0x3F) << 6 | text[at + 2] & 0x3F
        after = at + 3
    else:
        code = (byte & 0x07) << 18 | (text[at + 1] & 0x3F) << 12
        code, after = code | (text[at + 2] & 0x3F) << 6 | text[at + 3] & 0x3F, at + 4
    letter = np.int64(letters[code])
    return np.uint64(letter & _CODE_POINT), letter >> KIND_SHIFT, after


@inlined
def read_words(text: Any, text_ends: Any, letters: Any, stop_words: Any) -> Any:
    """Return the words of texts that stand one after another in `text`, valid UTF-8.

    A word begins with a letter and goes on with letters and marks; a letter that stands alone is
    a word, with the marks behind it. Words in the table `stop_words` (slots, keys) are left out.
    Returns the hash of each word, its (start, end), and where the words of each text end.
    """
    stop_slots, stop_keys = stop_words
    room = (len(text) + len(text_ends)) // 2  # words of a single byte are a byte apart
    words, spans = np.empty(room, np.uint64), np.empty((room, 2), np.int64)
    word_ends = np.empty(len(text_ends), np.int64)
    n_words, at = 0, 0
    for i in range(len(text_ends)):
        end = text_ends[i]
        while at < end:
            start = at
            letter, kind, at = _next_letter(text, at, letters)
            if kind < LETTER:
                continue
            word, alone = stir(SEED, letter), kind == ALONE
            while at < end:
                letter, kind, after = _next_letter(text, at, letters)
                if kind in (SEPARATOR, ALONE) or (alone and kind == LETTER):
                    break
                word, at = stir(word, letter), after
            word = finish(word)
            if stop_slots[find(word, stop_slots, stop_keys)] == 0:
                words[n_words], spans[n_words, 0], spans[n_words, 1] = word, start, at
                n_words += 1
        word_ends[i] = n_words
    return words[:n_words], spans[:n_words], word_ends


@inlined
def plan_ngrams(word_ends: Any, longest: int) -> Any:
    """Return all n-grams up to `longest` words: of each text its words, then its bigrams, ...

    Returns which n-gram becomes which by one more word (-1 for single words), that last word, and
    where the n-grams of each text end.
    """
    ngram_ends = np.empty(len(word_ends), np.int64)
    n_ngrams, start = 0, 0
    for i in range(len(word_ends)):
        n_words = word_ends[i] - start
        for length in range(min(longest, n_words)):
            n_ngrams += n_words - length
        ngram_ends[i], start = n_ngrams, word_ends[i]
    shorter, last = np.empty(n_ngrams, np.int64), np.empty(n_ngrams, np.int64)
    ngram, start = 0, 0
    for i in range(len(word_ends)):
        end = word_ends[i]
        for length in range(min(longest, end - start)):
            n_shorter = end - start - length + 1
            for word in range(start + length, end):
                shorter[ngram] = ngram - n_shorter if length > 0 else -1
                last[ngram] = word
                ngram += 1
        start = end
    return shorter, last, ngram_ends


@inlined
def hash_ngrams(words: Any, shorter: Any, last: Any) -> Any:
    """Return the hash of each n-gram: that without its last word, joined with that word's."""
    ngrams = np.empty(len(last), np.uint64)
    for ngram in range(len(last)):
        word = words[last[ngram]]
        ngrams[ngram] = word if shorter[ngram] < 0 else join(ngrams[shorter[ngram]], word)
    return ngrams


@shared
def read_ngrams(text: Any, text_ends: Any, letters: Any, stop_words: Any, longest: int) -> Any:
    """Return what `read_words`, `plan_ngrams` and `hash_ngrams` return of the same texts."""
    words, spans, word_ends = read_words(text, text_ends, letters, stop_words)
    shorter, last, ngram_ends = plan_ngrams(word_ends, longest)
    return words, spans, word_ends, shorter, last, ngram_ends, hash_ngrams(words, shorter, last)


@inlined
def fold(ngrams: Any, shorter: Any, n_columns: int) -> Any:
    """Return hashes folded into columns: words into the first half, longer n-grams after them."""
    n_words = n_columns // 2
    folded = np.empty(len(ngrams), np.uint64)
    for ngram in range(len(ngrams)):
        if shorter[ngram] < 0:
            folded[ngram] = ngrams[ngram] % np.uint64(n_words)
        else:
            folded[ngram] = np.uint64(n_words) + ngrams[ngram] % np.uint64(n_columns - n_words)
    return folded
