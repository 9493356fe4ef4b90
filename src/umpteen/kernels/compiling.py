"""How functions are compiled: once on a machine, and what a first run waits for is kept short.

What numba compiles costs tens of milliseconds for each function and each list of types, and most
of all for what it wraps and what it links. So a loop that is part of another is no function of
its own to the compiler, and what large kernels share is compiled once for all of them. Sorting,
searching and slices that are written as loops cost a tenth of numpy's functions to compile.
`benchmarks/cold_start.py` says where the time goes.
"""

from numba import njit
from numba.extending import register_jitable

kernel = njit(nogil=True, cache=True, no_cfunc_wrapper=True)  # called from Python
inlined = njit(nogil=True, cache=True, inline="always")  # put into what calls it, before typing
shared = register_jitable  # compiled once for all kernels of a process; plain Python outside
