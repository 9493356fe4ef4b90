"""Hot loops: pure functions on arrays, compiled by numba, run on threads by `parallel`."""
