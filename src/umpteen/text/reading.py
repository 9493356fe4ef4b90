"""Texts as the kernels read them, and tables of hashes."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from umpteen.kernels.compiling import frozen
from umpteen.kernels.hashing import index
from umpteen.kernels.tokens import number_new_words, read_words
from umpteen.shards import Texts, TextShards, batches_of
from umpteen.text.letters import letters
from umpteen.validation import check_texts

Hashes = npt.NDArray[np.uint64]
Table = tuple[npt.NDArray[np.int32], Hashes]  # slots and keys of `kernels.hashing`
Encoded = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]

NO_HASHES: Hashes = np.zeros(0, np.uint64)
EMPTY: Table = np.zeros(1, np.int32), NO_HASHES
NO_WORDS: Hashes = np.zeros((1, 3), np.uint64)  # a table of known words: see `read_words`

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


def tasks_of(texts: Texts) -> list[Any]:
    """Return what tasks read, in order: blocks of a list, or the sources of shards."""
    return list(texts.sources) if isinstance(texts, TextShards) else blocks(texts)


def blocks_of(task: Any) -> Iterator[list[str]]:
    """Yield the blocks of texts that one of `tasks_of` has."""
    if isinstance(task, list):
        yield task
        return
    for batch in batches_of(task):
        yield from blocks(batch)


def utf8(texts: list[str]) -> Encoded:
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


def _joined(encoded: list[bytes]) -> Encoded:
    ends = np.fromiter(accumulate(map(len, encoded)), np.int64, len(encoded))
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _normal(text: str) -> str:
    if len(text) <= 1000:
        text = normalize("NFKC", text)
    else:
        text = _PIECE.sub(lambda piece: normalize("NFKC", piece[0]), text)
    return text.lower() if "Σ" in text or "İ" in text else text


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


def read(
    encoded: Encoded, stop_words: Table = EMPTY, lexicon: Hashes = NO_WORDS
) -> tuple[Any, ...]:
    """Return the words of texts, as `kernels.tokens.read_words` does."""
    return read_words(*frozen((*encoded, letters(), stop_words, lexicon)))  # type: ignore[no-any-return]


def different_words(
    encoded: Encoded, words: tuple[Any, ...], languages: npt.NDArray[np.int64] | None = None,
    n_known: int = 0,
) -> tuple[npt.NDArray[np.uint8], Hashes, npt.NDArray[np.int64]]:  # fmt: skip
    """Return the words that `read` did not know: lines, hashes, languages. They get numbers."""
    if languages is None:
        languages = np.zeros(len(encoded[1]), np.int64)
    return number_new_words(  # type: ignore[no-any-return]
        encoded[0], *words, languages, n_known
    )


def spelled(lines: npt.NDArray[np.uint8]) -> list[str]:
    """Return words in lower case; `utf8` has left no Σ, which depends on its place."""
    return lines.tobytes().decode().lower().split("\n")[:-1]


def hash_words(words: Sequence[str]) -> Hashes:
    """Return the hash of each of these words, which are words as `read` finds them.

    They are not normalised again: lower case may have a normal form that upper case has not.
    """
    hashes, _, _, _, ends = read(_joined([word.encode() for word in words]))
    return np.asarray(hashes[ends - 1])


def stop_table(stop_words: Sequence[str] | None) -> Table:
    """Return the hashes of words to pass over."""
    return table(np.unique(read(utf8(check_texts(stop_words)))[0])) if stop_words else EMPTY
