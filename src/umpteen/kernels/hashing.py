"""Hashes of 64 bits, and a table that finds the place of a key in an array.

The table is an array of slots, a power of two long and never full: 0 is a free slot, any other
number 1 + the place of a key. Hashes are part of saved models, so they must stay as they are.
They are taken for unique: a million keys all differ but for one time in 37 million.
"""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import elementwise, inlined, kernel

SEED: Any = np.uint64(0x243F6A8885A308D3)  # digits of pi
_FACTOR: Any = np.uint64(0x9E3779B97F4A7C15)  # of the golden ratio
_LEFT_FACTOR: Any = np.uint64(0xB7E151628AED2A6B)  # of e
_HALF: Any = np.uint64(32)
_ONE: Any = np.uint64(1)


@elementwise
def stir(key: Any, number: Any) -> Any:
    """Return the unfinished hash `key` with one more number in it."""
    key = (key ^ number) * _FACTOR
    return key ^ (key >> _HALF)


@elementwise
def finish(key: Any) -> Any:
    """Return the hash whose every bit depends on all that was stirred into `key`."""
    return stir(stir(key, _HALF), _ONE)


@elementwise
def join(left: Any, right: Any) -> Any:
    """Return the hash of two hashes in this order."""
    return finish(stir(left * _LEFT_FACTOR, right))


@inlined
def free_slots(n_keys: int) -> Any:
    """Return a table in which `n_keys` will take two thirds of the slots at the most."""
    size = 1
    while 2 * size <= 3 * n_keys:
        size *= 2
    return np.zeros(size, np.int32)


@inlined
def find(key: Any, slots: Any, keys: Any) -> Any:
    """Return the slot of `key`, or the free one where it would go."""
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while slots[slot] != 0 and keys[slots[slot] - 1] != key:
        slot = (slot + _ONE) & mask
    return slot


@inlined
def places(wanted: Any, slots: Any, keys: Any) -> Any:
    """Return where each wanted key stands in `keys`; -1 where it does not."""
    found = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        found[i] = slots[find(wanted[i], slots, keys)] - 1
    return found


@kernel
def index(keys: Any) -> Any:
    """Return the table of `keys`; of equal ones, the last can be found."""
    slots = free_slots(len(keys))
    for place in range(len(keys)):
        slots[find(keys[place], slots, keys)] = place + 1
    return slots


@inlined
def number(keys: Any) -> Any:
    """Give equal keys equal numbers, counted from 0 by first occurrence.

    Returns the number of each key, and where each number occurs first.
    """
    slots = free_slots(len(keys))
    different = np.empty(len(keys), np.uint64)
    numbers, firsts = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    n = 0
    for i in range(len(keys)):
        slot = find(keys[i], slots, different)
        if slots[slot] == 0:
            different[n], firsts[n] = keys[i], i
            n += 1
            slots[slot] = n
        numbers[i] = slots[slot] - 1
    return numbers, firsts[:n].copy()
