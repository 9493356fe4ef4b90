"""Texts as the kernels read them: in blocks, in UTF-8."""

import re
from itertools import pairwise
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

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
    encoded = [
        text.encode() if text.isascii() else _normal(text).encode("utf-8", "surrogatepass")
        for text in texts
    ]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _normal(text: str) -> str:
    if len(text) <= 1000:
        text = normalize("NFKC", text)
    else:
        text = _PIECE.sub(lambda piece: normalize("NFKC", piece[0]), text)
    return text.lower() if "Σ" in text or "İ" in text else text
