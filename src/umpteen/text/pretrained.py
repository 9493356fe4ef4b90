"""Pretrained vectors of words, from files of an installed package: nothing is downloaded."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.errors import MissingExtraError, ModelNotFoundError
from umpteen.extras import how_to_install, require
from umpteen.validation import check_texts, unit_rows

FloatArray = npt.NDArray[np.float32]

WORD_DIM = 256
_FILES = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
_SPECIAL = 3  # tokens that stand for no letters: unknown, begin, end


def pretrained_vectors(words: Sequence[str]) -> FloatArray:
    """Return unit vectors `(n, 256)` of words or n-grams; zeros for an empty string.

    They come from the package `wordllama` (`pip install 'umpteen[words]'`), which has static
    vectors of word pieces; the vector of a word is the mean of its pieces. Words in other alphabets
    are split into letters, whose vectors mean little. With `Tagger.fit(...,
    word_vectors=pretrained_vectors)`, a `SiameseXML` starts from them.
    """
    tokenizer, table = _read()
    codes = tokenizer.encode_batch(list(check_texts(words, "words")), add_special_tokens=False)
    found = np.zeros((len(codes), table.shape[1]), np.float32)
    for row, code in enumerate(codes):
        pieces = [piece for piece in code.ids if piece >= _SPECIAL]
        if pieces:
            found[row] = table[pieces].mean(axis=0)
    return np.asarray(unit_rows(found), np.float32)


@cache
def _read() -> tuple[Any, FloatArray]:
    """The tokenizer and the vectors of its tokens; the package's own loader looks elsewhere."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            "pretrained vectors of words need 'wordllama', which is not installed: "
            f"{how_to_install('words')}"
        )
    weights, tokens = (Path(spec.submodule_search_locations[0]) / name for name in _FILES)
    for path in (weights, tokens):
        if not path.is_file():
            raise ModelNotFoundError(
                f"{path} is not there: this version of wordllama keeps its files elsewhere; "
                "pip install wordllama==0.4.0.post1"
            )
    tokenizer = require("tokenizers", "words").Tokenizer.from_file(str(tokens))
    table = require("safetensors.numpy", "words").load_file(str(weights))["embedding.weight"]
    return tokenizer, np.asarray(table, np.float32)
