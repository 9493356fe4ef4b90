"""A few bytes in a long text of many short entries."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, kernel

BLOCK = 64  # bytes that are compared together, by vector instructions


@inlined
def _may_hold(begins: Any, ends: Any, first: int, last: int) -> bool:
    """Whether the needle may begin in a block: its first byte and, further on, its last are there.

    Slices of fixed length and no branches are what a compiler turns into vector instructions.
    """
    hit = np.uint8(0)
    for i in range(BLOCK):
        hit |= np.uint8(begins[i] == first) & np.uint8(ends[i] == last)
    return bool(hit > 0)


@inlined
def _in_word(byte: int) -> bool:
    """Letters and digits of ASCII in lower case, and all bytes of other letters."""
    return byte >= 0x80 or 0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39


@kernel
def find_infix(text: Any, starts: Any, needle: Any) -> Any:
    """Return the entries that contain `needle`, in order, and where each has it first.

    Entry i is `text[starts[i]:starts[i + 1]]`, and its last byte is in no needle. After the last
    entry, `text` goes on for `BLOCK` bytes and a needle. Where: 0 at the beginning of the entry, 1
    at the beginning of a word, 2 elsewhere; the lowest counts. Costs a look at every byte.
    """
    n_bytes, gap = starts[-1], len(needle) - 1
    first, last = needle[0], needle[gap]
    found, where = np.empty(len(starts) - 1, np.int32), np.empty(len(starts) - 1, np.uint8)
    n_found, entry = 0, 0
    for block in range(0, n_bytes, BLOCK):
        begins, ends = text[block : block + BLOCK], text[block + gap : block + gap + BLOCK]
        if not _may_hold(begins, ends, first, last):
            continue
        for i in range(BLOCK):
            if begins[i] != first or ends[i] != last:
                continue
            at, same = block + i, 1
            while same < gap and text[at + same] == needle[same]:
                same += 1
            if same < gap:
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
