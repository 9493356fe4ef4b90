"""The rules by which `umpteen.cluster` starts tasks, replayed with given task times."""

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BATCHES, WINDOW = 16, 4  # per core, as in umpteen.cluster.engine

Seconds = npt.NDArray[np.float64]


class Cluster(NamedTuple):
    """Nodes and what connects them; seconds and bytes per second."""

    n_nodes: int
    cores_per_node: int
    bandwidth: float
    put_rate: float
    empty_task: float

    @property
    def n_cores(self) -> int:
        return self.n_nodes * self.cores_per_node

    def broadcast(self, n_bytes: float) -> float:
        """Hash and copy on the driver; then every node that has the data passes it on."""
        hops = int(np.ceil(np.log2(self.n_nodes + 1)))
        return n_bytes / self.put_rate + hops * n_bytes / self.bandwidth

    def exchange(self, n_bytes: float, n_tasks: int) -> float:
        """All nodes that have tasks receive rows at the same time, each those of its tasks."""
        return n_bytes / min(self.n_nodes, n_tasks) / self.bandwidth


def replay(seconds: Seconds, cluster: Cluster, result_bytes: float) -> float:
    """Return the wall time of a step: batches in order, a window, and results in order.

    The driver collects one batch after the other and starts the next one then.
    """
    size = max(1, len(seconds) // (BATCHES * cluster.n_cores))
    batches = np.add.reduceat(seconds, np.arange(0, len(seconds), size))
    collecting = cluster.empty_task + size * result_bytes / cluster.bandwidth
    cores = [0.0] * cluster.n_cores
    finished = np.empty(len(batches))
    collected = np.zeros(len(batches))
    window = WINDOW * cluster.n_cores
    n_started = 0

    def start(now: float) -> None:
        nonlocal n_started
        begun = max(now, heapq.heappop(cores))
        finished[n_started] = begun + batches[n_started]
        heapq.heappush(cores, finished[n_started])
        n_started += 1

    while n_started < min(window, len(batches)):
        start(0.0)
    now = 0.0
    for number in range(len(batches)):
        now = max(now, finished[number]) + collecting
        collected[number] = now
        if n_started < len(batches):
            start(now)
    return now
