"""Function words of languages in texts."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import kernel
from umpteen.kernels.hashing import find
from umpteen.kernels.tokens import read_words


@kernel
def count_function_words(
    text: Any, text_ends: Any, letters: Any, stop_words: Any, table: Any, masks: Any,
    n_languages: int,
) -> Any:  # fmt: skip
    """Return how many words of each text are in each language's list, and how many there are.

    Bit i of `masks` says that a word of `table` (slots, keys) is in the list of language i.
    """
    slots, keys = table
    words, _, word_ends = read_words(text, text_ends, letters, stop_words)
    counts = np.zeros((len(text_ends), n_languages), np.int64)
    n_words = np.zeros(len(text_ends), np.int64)
    start = 0
    for i in range(len(text_ends)):
        for place in range(start, word_ends[i]):
            slot = slots[find(words[place], slots, keys)]
            if slot > 0:
                mask = masks[slot - 1]
                for language in range(n_languages):
                    counts[i, language] += np.int64((mask >> np.uint64(language)) & np.uint64(1))
        n_words[i] = word_ends[i] - start
        start = word_ends[i]
    return counts, n_words
