"""Reading words. What a word is in each script is tested in tests/text."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from umpteen.kernels.compiling import frozen
from umpteen.kernels.hashing import index
from umpteen.kernels.tokens import (
    ALONE,
    KIND_SHIFT,
    LETTER,
    MARK,
    SEPARATOR,
    read_words,
)

NO_WORDS = np.zeros(1, np.int32), np.zeros(0, np.uint64)

# Characters of each kind, of one to four bytes.
KINDS = {
    "a": LETTER, "A": LETTER, "é": LETTER, "中": ALONE, "𠀀": ALONE, "\u0301": MARK, "\u20d0": MARK,
    "𝅥": MARK, " ": SEPARATOR, "\0": SEPARATOR, "…": SEPARATOR, "😀": SEPARATOR,
}  # fmt: skip
LETTERS = np.zeros(0x110000, np.uint32)
for character, kind in KINDS.items():
    LETTERS[ord(character)] = kind << KIND_SHIFT | ord(character.lower())

texts = st.lists(st.text(st.sampled_from(list(KINDS))), max_size=5)


def read(texts, stop_words=NO_WORDS):
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    content = b"".join(encoded)
    words, spans, numbers, n_new, word_ends = read_words(
        *frozen((np.frombuffer(content, np.uint8), ends, LETTERS, stop_words)),
        frozen(np.zeros((1, 3), np.uint64)),
    )
    assert n_new == len(words) == -numbers.sum()  # no word is in an empty table
    spelled = [content[start:end].decode().lower() for start, end in spans]
    return words, spelled, word_ends


@given(texts)
def test_texts_one_after_another_are_read_as_each_alone(texts):
    words, spelled, ends = read(texts)
    alone = [read([text]) for text in texts]
    assert words.tolist() == [word for part in alone for word in part[0].tolist()]
    assert spelled == [word for part in alone for word in part[1]]
    assert np.diff(ends, prepend=0).tolist() == [len(part[1]) for part in alone]


@given(texts)
def test_words_have_the_same_hash_if_they_are_the_same(texts):
    words, spelled, _ = read(texts)
    assert (
        len(set(words.tolist())) == len(set(spelled)) == len(set(zip(words, spelled, strict=True)))
    )


def test_letters_marks_and_those_that_stand_alone():
    text = "aA\u0301a\u20d0 \u0301 a中\u0301中a𠀀𝅥𝅥…a\0a😀éA"
    assert read([text])[1] == ["aa\u0301a\u20d0", "a", "中\u0301", "中", "a", "𠀀𝅥𝅥", "a", "a", "éa"]


def test_as_many_words_as_bytes_allow():
    assert read(["a a a", "a", "", "a中a中a"])[2].tolist() == [3, 4, 4, 9]


@given(texts)
def test_stop_words_are_left_out(texts):
    words, spelled, _ = read(texts)
    dropped = np.unique(words[::2])
    kept = [word for word, key in zip(spelled, words, strict=True) if key not in dropped]
    assert read(texts, (index(dropped), dropped))[1] == kept
