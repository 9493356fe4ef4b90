"""What no node has room for is refused at once; Ray would wait, or use the disk."""

import pytest

from umpteen.cluster.nodes import Nodes
from umpteen.errors import ClusterMemoryError


def node(name, cores, store, memory=1000, alive=True):
    resources = {"CPU": cores, "object_store_memory": store, "memory": memory}
    if cores == 0:
        del resources["CPU"]  # as Ray does
    return {"NodeID": name, "Alive": alive, "Resources": resources}


class Ray:
    def __init__(self, *nodes):
        self._nodes = list(nodes)

    def nodes(self):
        return self._nodes


def test_nodes_that_are_dead_or_run_no_tasks_do_not_count():
    found = Nodes(
        Ray(node("head", 0, 50), node("a", 4, 100), node("b", 2, 90), node("c", 9, 1, 9, False))
    )
    assert found.ids == ["a", "b"]
    assert (found.smallest_store, found.most_cores, found.most_memory) == (90, 4, 1000)


def test_a_cluster_that_has_no_cores_at_all_is_its_head():
    assert Nodes(Ray(node("head", 0, 50))).ids == ["head"]


def test_what_all_tasks_share_must_fit_every_node():
    nodes = Nodes(Ray(node("a", 1, 100), node("b", 1, 90)))
    nodes.check_shared(90)
    with pytest.raises(
        ClusterMemoryError, match=r"shares 91 bytes .* has 90: .*object-store-memory"
    ):
        nodes.check_shared(91)


def test_blocks_must_fit_the_node_of_the_program():
    """Only that node needs the room; it may be the head node, which runs no tasks."""
    nodes = Nodes(Ray(node("head", 0, 500), node("b", 1, 90)))
    nodes.check_driver(500, "head")
    nodes.check_driver(500, "a program elsewhere")
    with pytest.raises(ClusterMemoryError, match="runs on has 90: give that node a larger one"):
        nodes.check_driver(500, "b")


def test_samples_of_a_task_must_fit_the_memory_of_a_node():
    nodes = Nodes(Ray(node("a", 1, 100, memory=700), node("b", 1, 90, memory=800)))
    nodes.check_task(800)
    with pytest.raises(ClusterMemoryError, match=r"801 bytes of memory .* has 800: .* root"):
        nodes.check_task(801)
