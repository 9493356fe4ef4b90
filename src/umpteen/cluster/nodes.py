"""The nodes of a Ray cluster: their cores, and the memory of their object stores."""

from typing import Any

from umpteen.errors import ClusterMemoryError

MORE_STORE = (
    "start nodes with a larger store (ray start --object-store-memory=BYTES; in containers also "
    "--shm-size), or use fewer samples or features"
)


class Nodes:
    """The nodes that are alive at this moment."""

    def __init__(self, ray: Any) -> None:
        alive = [node for node in ray.nodes() if node["Alive"]]
        working = [node for node in alive if node["Resources"].get("CPU", 0) >= 1] or alive
        self._stores = {node["NodeID"]: _store(node) for node in alive}
        self.ids = [node["NodeID"] for node in working]
        self.smallest_store = min(_store(node) for node in working)
        self.most_memory = max(int(node["Resources"].get("memory", 0)) for node in working)
        self.most_cores = max(int(node["Resources"].get("CPU", 1)) for node in working)

    def check_shared(self, n_bytes: int) -> None:
        """Refuse what does not fit the store of every node: Ray would use the disk instead."""
        if n_bytes > self.smallest_store:
            raise ClusterMemoryError(
                f"a step shares {n_bytes:,} bytes among its tasks, and the object store of a node "
                f"has {self.smallest_store:,}: {MORE_STORE}"
            )

    def check_task(self, n_bytes: int) -> None:
        """Refuse a task that no node has the memory for: Ray would wait for such a node."""
        if n_bytes > self.most_memory:
            raise ClusterMemoryError(
                f"a task needs {n_bytes:,} bytes of memory for its samples, and the largest node "
                f"has {self.most_memory:,}: use a node with more memory, or fewer samples or "
                "features. The root of a tree learns from all samples in one task"
            )

    def check_driver(self, n_bytes: int, node: str) -> None:
        """Refuse blocks that do not fit the store of the node that this program runs on."""
        store = self._stores.get(node, max(self._stores.values()))
        if n_bytes > store:
            raise ClusterMemoryError(
                f"a step needs {n_bytes:,} bytes of data, and the object store of the node that "
                f"this program runs on has {store:,}: give that node a larger one than the others "
                "(ray start --object-store-memory=BYTES; in containers also --shm-size), or use "
                "fewer samples or features"
            )


def _store(node: dict[str, Any]) -> int:
    return int(node["Resources"].get("object_store_memory", 0))
