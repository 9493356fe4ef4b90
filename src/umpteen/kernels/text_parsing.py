"""Rows of `label,label feature:value feature:value` out of the bytes of a text file."""

from typing import Any

import numpy as np
from numba import njit

FINE, NO_LABEL, LABEL_RANGE, NO_FEATURE, FEATURE_RANGE, NO_VALUE, VALUE_RANGE = range(7)

# 10^0 ... 10^308: the whole range of float64, as numba cannot make these exactly by itself.
_POWERS = np.array([float(f"1e{power}") for power in range(309)])
_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _PLUS = 9, 10, 13, 32, 35, 43
_COMMA, _MINUS, _DOT, _ZERO, _COLON = 44, 45, 46, 48, 58
_UPPER_E, _D, _LOWER_E, _I, _Q = 69, 100, 101, 105, 113
_ID_LIMIT = 2**40
_EXPONENT_LIMIT = 10_000
_MANTISSA_DIGITS = 19


@njit(nogil=True, cache=True)
def _after_blanks(text: Any, at: int) -> int:
    while text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _after_word(text: Any, at: int) -> int:
    while text[at] > _SPACE:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _line_end(text: Any, at: int) -> int:
    while text[at] != _NEWLINE:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _ends_word(byte: int) -> bool:
    return byte in (_SPACE, _NEWLINE, _TAB, _RETURN)


@njit(nogil=True, cache=True)
def _whole_number(text: Any, at: int) -> tuple[int, int]:
    """The number and where it ends; the end is `at` itself where there is none."""
    number = 0
    while _ZERO <= text[at] <= _ZERO + 9:
        if number < _ID_LIMIT:
            number = 10 * number + (text[at] - _ZERO)
        at += 1
    return number, at


@njit(nogil=True, cache=True)
def _is_query_id(text: Any, at: int) -> Any:
    # Each comparison fails at the last newline, so none reads beyond it.
    return text[at] == _Q and text[at + 1] == _I and text[at + 2] == _D and text[at + 3] == _COLON


@njit(nogil=True, cache=True)
def _begins_with_label(text: Any, at: int, svmlight: bool) -> bool:
    if text[at] == _NEWLINE or (svmlight and _is_query_id(text, at)):
        return False
    _, end = _whole_number(text, at)
    return end == at or text[end] != _COLON


@njit(nogil=True, cache=True)
def _scaled(mantissa: Any, exponent: Any) -> Any:
    value = np.float64(mantissa)
    if mantissa == 0 or exponent == 0:
        return value
    if exponent > 0:
        return value * _POWERS[exponent] if exponent <= 308 else np.inf
    if exponent >= -308:
        return value / _POWERS[-exponent]
    return 0.0


@njit(nogil=True, cache=True)
def _real_number(text: Any, at: int) -> tuple[float, int]:
    """The number and where it ends, as `_whole_number`; within 1 ulp of float32."""
    start = at
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    mantissa: Any = np.uint64(0)
    exponent, n_kept, n_digits = 0, 0, 0
    fraction = False
    while True:
        if text[at] == _DOT and not fraction:
            fraction = True
            at += 1
            continue
        digit = np.int64(text[at]) - _ZERO
        if digit < 0 or digit > 9:
            break
        if n_kept < _MANTISSA_DIGITS:
            mantissa = np.uint64(10) * mantissa + np.uint64(digit)
            n_kept += mantissa > 0
            exponent -= fraction
        else:
            exponent += not fraction
        n_digits += 1
        at += 1
    if n_digits == 0:
        return 0.0, start
    if text[at] == _LOWER_E or text[at] == _UPPER_E:
        sign = -1 if text[at + 1] == _MINUS else 1
        first = at + 2 if text[at + 1] == _MINUS or text[at + 1] == _PLUS else at + 1
        power, at = _whole_number(text, first)
        if at == first:
            return 0.0, start
        exponent += sign * min(power, _EXPONENT_LIMIT)
    value = _scaled(mantissa, exponent)
    return -value if negative else value, at


@njit(nogil=True, cache=True)
def _parse_labels(
    text: Any, at: int, end_label: int, labels: Any, n_labels: int
) -> tuple[int, int, int]:
    """Status, position and number of labels after the word at `at`, where that holds labels."""
    while True:
        label, end = _whole_number(text, at)
        if end == at or not (_ends_word(text[end]) or text[end] == _COMMA):
            return NO_LABEL, at, n_labels
        if label >= end_label:
            return LABEL_RANGE, at, n_labels
        labels[n_labels] = label
        n_labels += 1
        if text[end] != _COMMA:
            return FINE, end, n_labels
        at = end + 1


@njit(nogil=True, cache=True)
def _parse_features(
    text: Any,
    at: int,
    svmlight: bool,
    first_feature: int,
    end_feature: int,
    columns: Any,
    values: Any,
    n_values: int,
) -> tuple[int, int, int]:
    """Status, position and number of values at the end of the line."""
    while True:
        at = _after_blanks(text, at)
        if text[at] == _NEWLINE:
            return FINE, at, n_values
        if svmlight and text[at] == _HASH:
            return FINE, _line_end(text, at), n_values
        if svmlight and _is_query_id(text, at):
            at = _after_word(text, at)
            continue
        feature, end = _whole_number(text, at)
        if end == at or text[end] != _COLON:
            return NO_FEATURE, at, n_values
        if feature < first_feature or feature >= end_feature:
            return FEATURE_RANGE, at, n_values
        at = end + 1
        value, end = _real_number(text, at)
        if end == at or not _ends_word(text[end]):
            return NO_VALUE, at, n_values
        columns[n_values] = feature - first_feature
        values[n_values] = value
        if np.isinf(values[n_values]):
            return VALUE_RANGE, at, n_values
        n_values += 1
        at = end


@njit(nogil=True, cache=True)
def parse_rows(
    text: Any,
    svmlight: bool,
    first_feature: int,
    end_feature: int,
    end_label: int,
    row_starts: Any,
    columns: Any,
    values: Any,
    label_starts: Any,
    labels: Any,
) -> tuple[int, int, int]:
    """Fill the arrays with the rows of `text`, which must end with a newline; one pass.

    Feature ids lie in `first_feature ... end_feature - 1` and are stored from 0 on, label ids
    in `0 ... end_label - 1`. With `svmlight`, blank lines are no rows, `#` begins a comment and
    `qid:n` is passed over. Room needed: a row per newline, a value per colon, a label per comma
    and row. Returns a status, the position where it arose, and the number of rows.
    """
    at, row, n_values, n_labels = 0, 0, 0, 0
    while at < len(text):
        at = _after_blanks(text, at)
        if svmlight and (text[at] == _NEWLINE or text[at] == _HASH):
            at = _line_end(text, at) + 1
            continue
        status = FINE
        if _begins_with_label(text, at, svmlight):
            status, at, n_labels = _parse_labels(text, at, end_label, labels, n_labels)
        if status == FINE:
            status, at, n_values = _parse_features(
                text, at, svmlight, first_feature, end_feature, columns, values, n_values
            )
        if status != FINE:
            return status, at, row
        at += 1
        row += 1
        row_starts[row] = n_values
        label_starts[row] = n_labels
    return FINE, at, row
