"""Trees over labels: balanced, of any branching, by repeated spherical 2-means."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.clustering import arrange
from umpteen.progress import Verbose, progress_bar
from umpteen.storage import Index, Shape, Sizes, storable

IntArray = npt.NDArray[np.int32]

_TOGETHER = 16  # children of a node that are trained at once


@storable
@dataclass(eq=False)
class Hierarchy:
    """A tree whose nodes are numbered layer by layer, so that siblings have adjacent numbers.

    Node `i` has the children `first_child[i]` to `first_child[i + 1]`; the root is node 0.
    Numbers from `n_nodes` on are labels: number `n_nodes + p` is label `label_order[p]`. All
    labels have the same depth. Labels that are not in the tree are absent from `label_order`.
    """

    first_child: Annotated[IntArray, Shape("nodes + 1")]
    label_order: Annotated[IntArray, Shape("placed"), Index("labels")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: child offsets that do not form a tree."""
        first, n_nodes = self.first_child, self.n_nodes
        if n_nodes < 1 or first[-1] != n_nodes + len(self.label_order):
            yield f"does not have {n_nodes} nodes over {len(self.label_order)} labels"
        elif (np.diff(first) < 0).any() or (first[:-1] <= np.arange(n_nodes)).any():
            yield "has children that do not come after their parents"
        elif (leaves := self.layers()[-1]).stop != n_nodes:
            yield "has labels that are not equally deep"
        elif (np.diff(first)[: leaves.start] == 0).any():  # only leaves lose all their labels
            yield "has inner nodes without children"

    @property
    def n_nodes(self) -> int:
        """Return the number of nodes that have children."""
        return len(self.first_child) - 1

    def layers(self) -> list[range]:
        """Return the numbers of the nodes of each layer, from the root alone down to the leaves."""
        layers = [range(1)]
        while (first := int(self.first_child[layers[-1].start])) < self.n_nodes:
            layers.append(range(first, int(self.first_child[layers[-1].stop])))
        return layers

    def n_children(self, nodes: range) -> int:
        """Return how many children adjacent nodes have together."""
        return int(self.first_child[nodes.stop] - self.first_child[nodes.start])

    def parents(self) -> IntArray:
        """Return the parent of every node and label, -1 for the root."""
        sizes = np.diff(self.first_child)
        return np.concatenate([[-1], np.repeat(np.arange(self.n_nodes), sizes)]).astype(np.int32)

    def path(self, label: int) -> list[int]:
        """Return the numbers from below the root down to the label; none if it has no place."""
        places = np.flatnonzero(self.label_order == label)
        return self.path_to(self.n_nodes + int(places[0])) if len(places) else []

    def path_to(self, number: int) -> list[int]:
        """Return the numbers from below the root down to one of them."""
        path, parents = [], self.parents()
        while number > 0:
            path.append(number)
            number = int(parents[number])
        return path[::-1]

    def labels_below(self, number: int) -> IntArray:
        """Return the labels under a node, or the label itself."""
        first, last = number, number + 1
        while first < self.n_nodes:
            first, last = int(self.first_child[first]), int(self.first_child[last])
        return self.label_order[first - self.n_nodes : last - self.n_nodes]


def layer_sizes(n_labels: int, branching: int, max_leaf: int) -> list[int]:
    """Return the number of nodes per layer, from the root to leaves of at most `max_leaf` labels.

    The upper layers are as wide as allowed: a wide, shallow tree makes fewer early mistakes. But
    where branching is wide, nodes above the leaves have sixteen children if they can: these are
    trained at once, in the time that two would take.

    >>> layer_sizes(1_000_000, branching=256, max_leaf=100)
    [1, 256, 10000]
    >>> layer_sizes(100_000, branching=256, max_leaf=100)
    [1, 63, 1000]
    """
    n_leaves = math.ceil(n_labels / max_leaf)
    sizes = [1]
    while sizes[-1] < n_leaves:
        sizes.append(min(sizes[-1] * branching, n_leaves))
    if len(sizes) > 2 and branching >= _TOGETHER**2:
        sizes[-2] = min(sizes[-2], math.ceil(n_leaves / _TOGETHER))
    return sizes


def grow(
    rows: csr_matrix,
    *,
    labels: IntArray | None = None,
    branching: int = 256,
    max_leaf: int = 100,
    seed: int = 0,
    n_jobs: int | None = -1,
    verbose: Verbose = False,
) -> Hierarchy:
    """Grow a tree over labels given as sparse rows of unit length.

    The tree has the given `labels`; by default, those whose row is not all zero.

    Every cut is a spherical 2-means with fixed sizes, so the leaves' sizes differ by one at
    most; similar labels end up in the same leaf. The same seed gives the same tree.

    >>> tree = grow(csr_matrix(np.repeat(np.eye(4), 2, axis=0)), branching=2, max_leaf=2)
    >>> sorted(sorted(leaf.tolist()) for leaf in np.split(tree.label_order, 4))
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    """
    chosen = np.flatnonzero(np.diff(rows.indptr)) if labels is None else labels
    order = chosen.astype(np.int32)
    bounds = _node_bounds(len(order), branching, max_leaf)
    with progress_bar("Growing the label tree", len(bounds[-1]) - 2, verbose) as bar:
        order = arrange(rows, order, bounds, seed, n_jobs=n_jobs, done=bar.advance)
    return Hierarchy(_first_children(bounds, len(order)), order)


def _node_bounds(n_labels: int, branching: int, max_leaf: int) -> list[npt.NDArray[np.int64]]:
    """Return, for each layer, where its nodes begin in the order of labels, and the end."""
    sizes = layer_sizes(n_labels, branching, max_leaf)
    leaves = np.arange(sizes[-1] + 1) * n_labels // sizes[-1]
    bounds = [leaves]
    for size in sizes[-2::-1]:
        below = bounds[0]
        bounds.insert(0, below[np.arange(size + 1) * (len(below) - 1) // size])
    return bounds


def _first_children(bounds: list[npt.NDArray[np.int64]], n_labels: int) -> IntArray:
    layers, n_before = [], 1
    for here, below in zip(bounds, [*bounds[1:], np.arange(n_labels + 1)], strict=True):
        layers.append(n_before + np.searchsorted(below, here[:-1]))
        n_before += len(below) - 1
    return np.concatenate([*layers, [n_before]]).astype(np.int32)
