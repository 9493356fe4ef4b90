"""Decorators that compile functions once per machine and keep the first run short.

Numba needs tens of milliseconds for each function and each signature, mostly for wrappers and
linking. Therefore helper loops are inlined into their callers, and helpers that several large
kernels use are compiled once for all of them. Sorting, searching and slicing that is written as
loops compiles ten times faster than numpy's functions. `benchmarks/cold_start.py` shows where
the time goes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

kernel = njit(nogil=True, cache=True, no_cfunc_wrapper=True)  # called from Python
inlined = njit(nogil=True, cache=True, inline="always")  # put into what calls it, before typing
shared = register_jitable  # compiled once for all kernels of a process; plain Python outside


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put arithmetic into what calls it; outside of kernels it is plain Python, also on arrays."""
    return register_jitable(inline="always")(function)  # type: ignore[no-any-return]


def frozen(value: Any) -> Any:
    """Return read-only views of the arrays in a value, which may be a tuple of such values.

    Arrays of an object store are read-only, which is another type to numba: every kernel would be
    compiled again in the processes of a cluster. Views that are read-only everywhere avoid that.
    """
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, tuple):
        views = map(frozen, value)
        return type(value)(*views) if hasattr(value, "_fields") else tuple(views)
    return value
