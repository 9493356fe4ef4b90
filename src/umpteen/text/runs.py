"""Single texts: their words and runs of words by name."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from umpteen.kernels.hashing import index
from umpteen.kernels.tokens import hash_runs, plan_runs, read_words
from umpteen.text.letters import letters
from umpteen.text.reading import utf8
from umpteen.validation import check_texts

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


def stop_table(stop_words: Sequence[str] | None) -> Table:
    """Return the hashes of words to pass over."""
    if not stop_words:
        return EMPTY
    words, _, _ = read_words(*utf8(check_texts(stop_words)), letters(), EMPTY)
    return table(np.unique(words))


def named_runs(
    text: str, longest: int, stop_words: Table
) -> tuple[list[str], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the words of a text, then its bigrams, and so on; hashes; what they extend.

    >>> named_runs("Least squares!", 2, EMPTY)[0]
    ['least', 'squares', 'least squares']
    """
    encoded, ends = utf8(check_texts([text]))
    hashes, spans, word_ends = read_words(encoded, ends, letters(), stop_words)
    content = encoded.tobytes()
    words = [content[start:end].decode().lower() for start, end in spans.tolist()]
    shorter, last, _ = plan_runs(word_ends, longest)
    names: list[str] = []
    for prefix, word in zip(shorter.tolist(), last.tolist(), strict=True):
        names.append(words[word] if prefix < 0 else f"{names[prefix]} {words[word]}")
    return names, hash_runs(hashes, shorter, last), shorter
