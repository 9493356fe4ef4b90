"""A few bytes in a long text of many short entries."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import kernel

_BLOCK = 256  # bytes that are looked at together, which compilers turn into vector instructions


@kernel
def find_infix(text: Any, starts: Any, needle: Any) -> Any:
    """Return the entries that contain `needle`, in order, and where each has it first.

    Entry i is `text[starts[i]:starts[i + 1]]`, and the last byte of an entry is in no needle.
    `text` goes on for at least `_BLOCK` bytes and a needle after the last entry. Where: 0 at the
    beginning of the entry, 1 at the beginning of a word, 2 elsewhere; the lowest counts.
    Costs one look at every byte, whatever the needle.
    """
    n_bytes, gap = starts[-1], len(needle) - 1
    first, last = needle[0], needle[gap]
    found, where = np.empty(len(starts) - 1, np.int32), np.empty(len(starts) - 1, np.uint8)
    n_found, entry = 0, 0
    for block in range(0, n_bytes, _BLOCK):
        hit = np.uint8(0)
        for at in range(block, block + _BLOCK):
            hit |= np.uint8(text[at] == first) & np.uint8(text[at + gap] == last)
        if hit == 0:
            continue
        for at in range(block, min(block + _BLOCK, n_bytes)):
            if text[at] != first or text[at + gap] != last:
                continue
            same = True
            for i in range(1, gap):
                if text[at + i] != needle[i]:
                    same = False
                    break
            if not same:
                continue
            while starts[entry + 1] <= at:
                entry += 1
            place = np.uint8(2)
            if at == starts[entry]:
                place = np.uint8(0)
            elif not _in_word(text[at - 1]):
                place = np.uint8(1)
            if n_found > 0 and found[n_found - 1] == entry:
                where[n_found - 1] = min(where[n_found - 1], place)
            else:
                found[n_found], where[n_found] = entry, place
                n_found += 1
    return found[:n_found], where[:n_found]


@kernel
def _in_word(byte: int) -> bool:
    """Letters and digits of ASCII in lower case, and all bytes of other letters."""
    return byte >= 0x80 or 0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39
