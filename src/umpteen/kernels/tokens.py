"""Words in UTF-8, each as a hash and as a number."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.hashing import SEED, find, finish, free_slots, join, stir

# The kinds of characters. `letters[code point]` is kind << KIND_SHIFT | code point in lower case.
SEPARATOR, MARK, LETTER, ALONE = range(4)
KIND_SHIFT = 24
NEW_LINE = 10
_CODE_POINT = (1 << KIND_SHIFT) - 1
_ONE: Any = np.uint64(1)


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


@kernel
def read_words(text: Any, text_ends: Any, letters: Any, stop_words: Any, lexicon: Any) -> Any:
    """Return the words of texts that stand one after another in `text`, valid UTF-8.

    A word begins with a letter and goes on with letters and marks; a letter that stands alone is
    a word, with the marks behind it. Words in the table `stop_words` (slots, keys) are left out.
    `lexicon` is a table with a row (hash, hash of the base form, number + 1) in each slot, so that
    one look into memory is enough. Returns the hash of each word, its (start, end), its number, -1
    for new words, and how many these are; then where the words of each text end. A known word has
    the hash of its base form instead of its own.
    """
    stop_slots, stop_keys = stop_words
    room = (len(text) + len(text_ends)) // 2  # words of a single byte are a byte apart
    words, spans = np.empty(room, np.uint64), np.empty((room, 2), np.int64)
    numbers, word_ends = np.empty(room, np.int32), np.empty(len(text_ends), np.int64)
    n_words, n_new, at = 0, 0, 0
    mask = np.uint64(len(lexicon) - 1)
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
    for i in range(n_words):  # by itself: the processor looks up several words at a time
        slot = words[i] & mask
        while lexicon[slot, 2] != 0 and lexicon[slot, 0] != words[i]:
            slot = (slot + _ONE) & mask
        numbers[i] = np.int64(lexicon[slot, 2]) - 1
        if numbers[i] >= 0:
            words[i] = lexicon[slot, 1]
        else:
            n_new += 1
    return words[:n_words], spans[:n_words], numbers[:n_words], n_new, word_ends


@kernel
def number_new_words(
    text: Any, words: Any, spans: Any, numbers: Any, n_new: int, word_ends: Any, languages: Any,
    n_known: int,
) -> Any:  # fmt: skip
    """Give new words, whose number is -1, the numbers after `n_known`, equal words the same one.

    Words are different if they stand in texts of different `languages`, which are numbers. Returns
    of each different word a line of UTF-8, its hash, and the number of its language.
    """
    slots = free_slots(n_new)
    keys, hashes = np.empty(n_new, np.uint64), np.empty(n_new, np.uint64)
    firsts, of_words = np.empty(n_new, np.int64), np.empty(n_new, np.int64)
    n, start, n_bytes = 0, 0, 0
    for i in range(len(word_ends)):
        for place in range(start, word_ends[i]):
            if numbers[place] >= 0:
                continue
            key = join(np.uint64(languages[i]), words[place])
            slot = find(key, slots, keys)
            if slots[slot] == 0:
                keys[n], hashes[n], of_words[n], firsts[n] = key, words[place], languages[i], place
                n_bytes += spans[place, 1] - spans[place, 0] + 1
                n += 1
                slots[slot] = n
            numbers[place] = n_known + slots[slot] - 1
        start = word_ends[i]
    lines, n_written = np.full(n_bytes, NEW_LINE, np.uint8), 0
    for i in range(n):
        for at in range(spans[firsts[i], 0], spans[firsts[i], 1]):
            lines[n_written] = text[at]
            n_written += 1
        n_written += 1
    return lines, hashes[:n], of_words[:n]


@kernel
def hash_lines(lines: Any, salts: Any) -> Any:
    """Return the hash of each line of UTF-8, each with its salt; every line has an end."""
    hashes, at = np.empty(len(salts), np.uint64), 0
    for i in range(len(salts)):
        hashes[i], at = _hash_line(lines, at, salts[i])
    return hashes


@kernel
def base_forms(words: Any, stems: Any, salts: Any, table: Any, bases: Any) -> Any:
    """Return the base form of each word: that of its stem if `table` has it, else itself.

    `stems` are lines as in `hash_lines`; `bases` has the base form of each stem in `table`.
    """
    slots, keys = table
    found, at = np.empty(len(words), np.uint64), 0
    for i in range(len(words)):
        stem, at = _hash_line(stems, at, salts[i])
        place = slots[find(stem, slots, keys)] - 1
        found[i] = bases[place] if place >= 0 else words[i]
    return found


@inlined
def _hash_line(lines: Any, at: int, salt: Any) -> Any:
    """The hash of the line at `at`, and where the next one begins."""
    key = SEED
    while lines[at] != NEW_LINE:
        key = stir(key, np.uint64(lines[at]))
        at += 1
    return join(salt, finish(key)), at + 1
