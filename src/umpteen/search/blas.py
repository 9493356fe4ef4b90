"""Matrix products on our own threads: BLAS must not start threads of its own inside each."""

import threading
from typing import Any

from threadpoolctl import ThreadpoolController


class OneThreadEach:
    """`with one_thread_each: ...`: products inside use one thread per call.

    The setting is the whole process's. Blocks may overlap, in any threads: the last one to end
    gives back what was set before the first began.

    >>> with one_thread_each:
    ...     {
    ...         pool["num_threads"]
    ...         for pool in ThreadpoolController().info()
    ...         if pool["user_api"] == "blas"
    ...     } <= {1}
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._limits = ThreadpoolController().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limits.restore_original_limits()


one_thread_each = OneThreadEach()
