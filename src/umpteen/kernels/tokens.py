"""Words in UTF-8, and runs of words, each as a hash."""

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
def plan_runs(word_ends: Any, longest: int) -> Any:
    """Return all n-grams up to `longest` words: of each text its words, then its bigrams, ...

    Returns which run becomes which by one more word (-1 for single words), that last word, and
    where the runs of each text end.
    """
    run_ends = np.empty(len(word_ends), np.int64)
    n_runs, start = 0, 0
    for i in range(len(word_ends)):
        n_words = word_ends[i] - start
        for length in range(min(longest, n_words)):
            n_runs += n_words - length
        run_ends[i], start = n_runs, word_ends[i]
    shorter, last = np.empty(n_runs, np.int64), np.empty(n_runs, np.int64)
    run, start = 0, 0
    for i in range(len(word_ends)):
        end = word_ends[i]
        for length in range(min(longest, end - start)):
            n_shorter = end - start - length + 1
            for word in range(start + length, end):
                shorter[run] = run - n_shorter if length > 0 else -1
                last[run] = word
                run += 1
        start = end
    return shorter, last, run_ends


@inlined
def hash_runs(words: Any, shorter: Any, last: Any) -> Any:
    """Return the hash of each n-gram: that without its last word, joined with that word's."""
    runs = np.empty(len(last), np.uint64)
    for run in range(len(last)):
        word = words[last[run]]
        runs[run] = word if shorter[run] < 0 else join(runs[shorter[run]], word)
    return runs


@shared
def read_runs(text: Any, text_ends: Any, letters: Any, stop_words: Any, longest: int) -> Any:
    """Return what `read_words`, `plan_runs` and `hash_runs` return of the same texts."""
    words, spans, word_ends = read_words(text, text_ends, letters, stop_words)
    shorter, last, run_ends = plan_runs(word_ends, longest)
    return words, spans, word_ends, shorter, last, run_ends, hash_runs(words, shorter, last)


@inlined
def fold(runs: Any, shorter: Any, n_columns: int) -> Any:
    """Return hashes folded into columns: words into the first half, longer n-grams after them."""
    n_words = n_columns // 2
    folded = np.empty(len(runs), np.uint64)
    for run in range(len(runs)):
        if shorter[run] < 0:
            folded[run] = runs[run] % np.uint64(n_words)
        else:
            folded[run] = np.uint64(n_words) + runs[run] % np.uint64(n_columns - n_words)
    return folded
