"""Single texts, as the kernels read them and by the names of their n-grams."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from umpteen.kernels.hashing import index
from umpteen.kernels.tokens import hash_ngrams, plan_ngrams, read_words
from umpteen.text.letters import letters
from umpteen.validation import check_texts

_BLOCK = 2**18  # characters: what is counted and looked up stays in the processor's cache

# Pieces that can be normalised by themselves, since neither ASCII nor Chinese characters combine
# with what is before them; else a megabyte of accents on one letter would take minutes.
_PIECE = re.compile(r".{1,1000}(?=[\0-\x7f\u4e00-\u9fff]|\Z)|.{1,1000}", re.DOTALL)


def blocks(texts: list[str]) -> list[list[str]]:
    """Return consecutive blocks of texts of about equally many characters; at least one."""
    if len(texts) <= 1:
        return [texts]
    ends = np.cumsum([0, *map(len, texts)])
    n_blocks = 1 + int(ends[-1]) // _BLOCK
    inner = np.searchsorted(ends, np.arange(1, n_blocks) * int(ends[-1]) // n_blocks)
    cuts = sorted({0, *inner.tolist(), len(texts)})
    return [texts[start:end] for start, end in pairwise(cuts)]


def utf8(texts: list[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return all texts in one array, in normal form (NFKC), and where each ends.

    Case is left to the kernel, but for the two capitals whose lower case it cannot know: that of
    Σ depends on its place in the word, that of İ has two characters.
    """
    return _joined(
        [
            text.encode() if text.isascii() else _normal(text).encode("utf-8", "surrogatepass")
            for text in texts
        ]
    )


def _joined(encoded: list[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _normal(text: str) -> str:
    if len(text) <= 1000:
        text = normalize("NFKC", text)
    else:
        text = _PIECE.sub(lambda piece: normalize("NFKC", piece[0]), text)
    return text.lower() if "Σ" in text or "İ" in text else text


Table = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]  # slots and keys of `kernels.hashing`

EMPTY: Table = np.zeros(1, np.int32), np.zeros(0, np.uint64)


def table(keys: npt.NDArray[np.uint64]) -> Table:
    """Return a table that finds `keys`."""
    return index(keys), keys


def table_faults(table: Table) -> Iterator[str]:
    """Yield what is wrong with a loaded table: without a free slot, no search in it would end."""
    slots, keys = table
    if slots.ndim != 1 or keys.ndim != 1 or len(slots).bit_count() != 1:
        yield f"has a table of {slots.shape} slots, expected a power of two"
    elif slots.min() != 0 or slots.max() > len(keys):
        yield f"has slots that do not lead to its {len(keys)} hashes"


def hash_words(words: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return the hash of each of these words, which are words as `read_words` finds them.

    They are not normalised again: lower case may have a normal form that upper case has not.
    """
    encoded = [word.encode() for word in words]
    hashes, _, ends = read_words(*_joined(encoded), letters(), EMPTY)
    return np.asarray(hashes[ends - 1])


def stop_table(stop_words: Sequence[str] | None) -> Table:
    """Return the hashes of words to pass over."""
    if not stop_words:
        return EMPTY
    words, _, _ = read_words(*utf8(check_texts(stop_words)), letters(), EMPTY)
    return table(np.unique(words))


def named_ngrams(
    text: str, longest: int, stop_words: Table
) -> tuple[list[str], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the words of a text, then its bigrams, and so on; hashes; what they extend.

    >>> named_ngrams("Least squares!", 2, EMPTY)[0]
    ['least', 'squares', 'least squares']
    """
    encoded, ends = utf8(check_texts([text]))
    hashes, spans, word_ends = read_words(encoded, ends, letters(), stop_words)
    content = encoded.tobytes()
    words = [content[start:end].decode().lower() for start, end in spans.tolist()]
    shorter, last, _ = plan_ngrams(word_ends, longest)
    names: list[str] = []
    for prefix, word in zip(shorter.tolist(), last.tolist(), strict=True):
        names.append(words[word] if prefix < 0 else f"{names[prefix]} {words[word]}")
    return names, hash_ngrams(hashes, shorter, last), shorter
