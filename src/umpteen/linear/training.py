"""Train all classifiers of a tree, chunk by chunk."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_matrix, csr_matrix

from umpteen import parallel
from umpteen.kernels.nodes import train_chunk
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.tree import Chunk, Tree, assemble, plan_chunks
from umpteen.progress import Bar
from umpteen.trees import Hierarchy


@dataclass(frozen=True)
class Solver:
    """How each classifier is trained."""

    cost: float
    logistic: bool
    tolerance: float
    max_epochs: int
    prune: float
    seed: int


def train_tree(
    X: csr_matrix, Y: csr_matrix, hierarchy: Hierarchy, solver: Solver, n_jobs: int | None, bar: Bar
) -> Tree:
    """The tree with its classifiers; a node learns from the samples that have a label below it.

    The root learns from all samples, so that those without labels count against all.
    """
    plan = plan_chunks(hierarchy.first_child)
    members = memberships(Y, hierarchy)
    samples_of = [None, *(csc_matrix(layer) for layer in members[:-1])]
    layer_of = _layers(hierarchy)
    features, local_of = frozen_csr(X), _scratch(X.shape[1])
    everyone = np.arange(X.shape[0], dtype=np.int32)

    def train(chunk: int) -> Chunk:
        node = plan.chunk_node[chunk]
        layer = layer_of[node]
        samples = everyone if node == 0 else _column(samples_of[layer], node)
        first, last = plan.chunk_child[chunk : chunk + 2]
        return Chunk(
            *train_chunk(
                *features, samples, *frozen_csr(members[layer])[:2], first, last, local_of.value,
                solver.cost, solver.logistic, solver.tolerance, solver.max_epochs, solver.prune,
                solver.seed + chunk,
            )
        )  # fmt: skip

    chunks = parallel.run(
        train, range(len(plan.chunk_node)), n_jobs=n_jobs, done=lambda _: bar.advance()
    )
    return assemble(hierarchy, chunks, X.shape[1])


def memberships(Y: csr_matrix, hierarchy: Hierarchy) -> list[csr_matrix]:
    """For each layer (samples, tree numbers): which of its children a sample has a label in.

    Columns are the tree's own numbers, so that the children of a node stand side by side.
    """
    place = np.full(Y.shape[1], -1, np.int32)
    place[hierarchy.label_order] = np.arange(len(hierarchy.label_order)) + hierarchy.n_nodes
    parents = hierarchy.parents()
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    numbers = place[Y.indices]
    rows, numbers = rows[numbers >= 0], numbers[numbers >= 0]
    found = []
    for _ in hierarchy.layers():
        found.append(_indicator(rows, numbers, (Y.shape[0], len(parents))))
        numbers = parents[numbers]
    return found[::-1]


def _indicator(
    rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int32], shape: tuple[int, int]
) -> csr_matrix:
    matrix = csr_matrix((np.ones(len(rows), np.float32), (rows, numbers)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _layers(hierarchy: Hierarchy) -> npt.NDArray[np.int32]:
    sizes = [len(layer) for layer in hierarchy.layers()]
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def _column(matrix: csc_matrix | None, column: int) -> npt.NDArray[np.int32]:
    assert matrix is not None
    return matrix.indices[matrix.indptr[column] : matrix.indptr[column + 1]].astype(np.int32)


def _scratch(n_features: int) -> parallel.PerThread[npt.NDArray[np.int32]]:
    return parallel.PerThread(lambda: np.full(n_features, -1, np.int32))
