import os
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])  # workers import tasks of the tests from there


class Nodes:
    """A Ray cluster on this machine whose nodes have one core each; it only grows."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        os.environ |= {
            "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]),
            "RAY_health_check_period_ms": "500",  # then nodes are soon found dead
            "RAY_worker_niceness": "0",
        }
        head = {"num_cpus": 1, "object_store_memory": 200_000_000, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, connect=False, head_node_args=head)
        self.address = self._cluster.address
        self.others = []

    def grow_to(self, n):
        while len(self.others) + 1 < n:
            self.others.append(
                self._cluster.add_node(
                    num_cpus=1, object_store_memory=100_000_000, wait=len(self.others) + 2 == n
                )
            )

    def kill_one(self):
        self._cluster.remove_node(self.others.pop(), allow_graceful=False)

    def close(self):
        self._cluster.shutdown()


@pytest.fixture(scope="module")  # other modules must not find this process connected
def nodes():
    """The cluster, with this process connected to it: `um.cluster.ray` uses that connection."""
    ray = pytest.importorskip("ray", reason="needs the extra `cluster`")
    nodes = Nodes()
    try:
        ray.init(nodes.address, log_to_driver=False, logging_level="error")
        yield nodes
    finally:
        ray.shutdown()
        nodes.close()
