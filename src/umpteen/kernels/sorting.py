"""Orders of numbers, in loops that are quick to compile; numpy's own take seconds."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import inlined, shared

_FEW = 24


@inlined
def sort_ids(numbers: Any, spare: Any, largest: int) -> None:
    """Sort numbers from 0 to `largest` in place: by insertion if few, else byte by byte."""
    if len(numbers) <= _FEW:
        for i in range(1, len(numbers)):
            number, place = numbers[i], i
            while place > 0 and numbers[place - 1] > number:
                numbers[place] = numbers[place - 1]
                place -= 1
            numbers[place] = number
        return
    starts = np.empty(257, np.int64)
    for shift in range(0, 32, 8):
        if largest >> shift == 0:
            break
        for byte in range(257):
            starts[byte] = 0
        for i in range(len(numbers)):
            starts[(numbers[i] >> shift & 255) + 1] += 1
        for byte in range(256):
            starts[byte + 1] += starts[byte]
        for i in range(len(numbers)):
            byte = numbers[i] >> shift & 255
            spare[starts[byte]] = numbers[i]
            starts[byte] += 1
        for i in range(len(numbers)):
            numbers[i] = spare[i]


@inlined
def stable_order(keys: Any) -> Any:
    """Return the places of keys in ascending order, equal ones as they stand: a merge sort."""
    n = len(keys)
    order, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(0, n, _FEW):
        for i in range(start, min(start + _FEW, n)):
            place = i
            while place > start and keys[order[place - 1]] > keys[i]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = i
    width = _FEW
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for place in range(start, end):
                if right == end or (left < middle and keys[order[left]] <= keys[order[right]]):
                    spare[place] = order[left]
                    left += 1
                else:
                    spare[place] = order[right]
                    right += 1
        order, spare = spare, order
        width *= 2
    return order


@shared
def best_to_front(ids: Any, values: Any, n_best: int) -> None:
    """Bring the `n_best` largest values to the front, in any order; of equal ones, the lowest ids.

    Quickselect by the middle entry; O(n) as a rule.
    """
    low, high = 0, len(values) - 1
    while low < high:
        value, id_ = values[(low + high) // 2], ids[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > value or (values[i] == value and ids[i] < id_):
                i += 1
            while values[j] < value or (values[j] == value and ids[j] > id_):
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                ids[i], ids[j] = ids[j], ids[i]
                i += 1
                j -= 1
        if n_best - 1 <= j:
            high = j
        elif n_best - 1 >= i:
            low = i
        else:
            return
