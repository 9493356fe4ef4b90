"""An engine as a cluster is one: tasks run in other processes, on copies of everything."""

import multiprocessing
import pickle
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from itertools import islice


def packed(value):
    """The bytes of a value; arrays apart, so that read-only ones are so where they are unpacked."""
    arrays = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    raw = [array.raw() for array in arrays]
    return rest, [bytes(each) if each.readonly else bytearray(each) for each in raw]


def unpacked(content):
    return pickle.loads(content[0], buffers=content[1])


def work(task, shared):
    function, item = unpacked(task)
    return packed(function(item, *unpacked(shared)))


class OtherProcesses:
    """Two processes that have nothing of this one but what is sent to them."""

    width = 2

    def __init__(self):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["umpteen.tagger", "umpteen.aggregated", "umpteen.ensemble"])
        self._pool = ProcessPoolExecutor(self.width, context)
        self.n_tasks = 0

    def map(self, function, items, shared):
        self.n_tasks += len(items)
        content, rest = packed(shared), (packed((function, item)) for item in items)
        waiting = deque(self._pool.submit(work, task, content) for task in islice(rest, 8))
        try:
            while waiting:
                yield unpacked(waiting.popleft().result())
                waiting.extend(self._pool.submit(work, task, content) for task in islice(rest, 1))
        finally:
            for task in waiting:
                task.cancel()

    def close(self):
        self._pool.shutdown()
