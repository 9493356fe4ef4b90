"""Tasks for tests: workers import them from here."""

import os
import signal
import sys
import time

import numpy as np

from umpteen import parallel


def kernels(_):
    """The kernels of this process that were compiled anew, and how many were found on disk."""
    modules = [module for name, module in sys.modules.items() if name.startswith("umpteen.kernels")]
    found = [each for module in modules for each in vars(module).values() if hasattr(each, "stats")]
    time.sleep(0.2)  # until each worker has a task
    return {
        "compiled": sorted({each.__name__ for each in found if each.stats.cache_misses}),
        "loaded": sum(len(each.stats.cache_hits) for each in found),
    }


def dies_once(item, folder, large):
    if item == 7 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    assert not large.flags.writeable
    return large[item]


def pid(_):
    time.sleep(0.05)
    return os.getpid()


def refuse(item):
    raise LookupError(f"item {item}")


def largest(item, array):
    return array[-item]


def nested(item):
    return parallel.width(-1), parallel.map(pow, range(item), (2,))


def sleeps(seconds):
    time.sleep(seconds)
    return seconds


def totals(item, sharded):
    """The sum of the rows of a task, in all matrices, and which rows they are."""
    matrices, places = sharded.at(item.rows)
    places = np.asarray(places, np.int32)
    sums = [float(matrix[places].sum()) for matrix in matrices]
    return sums, sharded.rows_at(places).tolist()
