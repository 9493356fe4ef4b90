"""Estimates of memory, model size and time, before training starts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_matrix, csr_matrix

from umpteen import parallel
from umpteen.errors import MemoryBudgetError
from umpteen.kernels.simd import WIDTH
from umpteen.linear.chunks import Chunk, plan_chunks
from umpteen.linear.training import ChunkTrainer, Solver, memberships, some
from umpteen.trees import Hierarchy

_CHUNKS_TRIED = 16  # per layer
_BYTES_PER_WEIGHT, _BYTES_PER_ROW = 3, 14  # of the model: see `Tree`
_BYTES_PER_KEPT = 14  # of a weight in training, until a chunk is in order
_BYTES_PER_VALUE = 8  # of a sparse matrix: a number and its index
_SENDING = 1.3  # time to send training samples down the tree, on top of training
_SEARCH_BLOCK = 16_000_000  # bytes per thread while training samples are sent down the tree
_SEARCH_ROW = 320  # bytes per sample of their answers


@dataclass(frozen=True)
class Estimate:
    """What `fit` will need: memory on top of `X` and `Y`, size of the model, time; rough."""

    memory: int
    model_size: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"about {_readable(self.memory)} of memory on top of the data, "
            f"a model of {_readable(self.model_size)}, {self.seconds:.0f} s"
        )


def estimate_fit(
    X: csr_matrix,
    Y: csr_matrix,
    rows: csr_matrix,
    grow: Callable[[csr_matrix], Hierarchy],
    solver: Solver,
    n_trees: int,
    n_jobs: int | None,
) -> Estimate:
    """Grow the tree over the labels' `rows`, train a few nodes of each layer, and scale up."""
    threads = parallel.n_threads(n_jobs)
    start = time.perf_counter()
    hierarchy = grow(rows)
    growing = time.perf_counter() - start
    tried = [_try_layer(X, hierarchy, *layer, solver, threads) for layer in _layers(Y, hierarchy)]
    size = sum(trial.model_size for trial in tried)
    representing = _BYTES_PER_VALUE * (X.nnz + 3 * rows.nnz)
    training = max(trial.working for trial in tried)
    searching = threads * _SEARCH_BLOCK + _SEARCH_ROW * X.shape[0]
    return Estimate(
        memory=max(representing, training, 2 * size) + (n_trees - 1) * size + searching,
        model_size=n_trees * size,
        seconds=float(n_trees * (growing + _SENDING * sum(trial.seconds for trial in tried))),
    )


def check_budget(estimate: Estimate, max_memory: float) -> None:
    """Refuse work that would not fit."""
    if estimate.memory > max_memory:
        raise MemoryBudgetError(
            f"training needs {estimate}; max_memory allows {_readable(int(max_memory))}. Raise "
            "`prune` (0.2 takes a third to a half off the model), lower `n_trees`, `n_jobs`, "
            "`recipe__hard_negatives` or `branching`, or reduce the vocabulary"
        )


@dataclass(frozen=True)
class _Trial:
    seconds: float
    model_size: int
    working: int


def _layers(
    Y: csr_matrix, hierarchy: Hierarchy
) -> list[tuple[range, csr_matrix, csc_matrix | None]]:
    members = list(memberships(Y, hierarchy))
    above = [None, *(csc_matrix(member) for member in members[:-1])]
    return list(zip(hierarchy.layers(), members, above, strict=True))


def _try_layer(
    X: csr_matrix,
    hierarchy: Hierarchy,
    nodes: range,
    member: csr_matrix,
    above: csc_matrix | None,
    solver: Solver,
    threads: int,
) -> _Trial:
    plan = plan_chunks(hierarchy.first_child)
    chunks = np.arange(plan.node_chunk[nodes.start], plan.node_chunk[nodes.stop])
    tried = chunks[:: -(-len(chunks) // _CHUNKS_TRIED)]
    trainer = ChunkTrainer(X, solver)
    samples = [_samples(X, above, plan.chunk_node[chunk], nodes, solver) for chunk in tried]
    if solver.upper_samples is not None and nodes.stop < hierarchy.n_nodes:
        samples = [some(own, solver.upper_samples, solver.seed) for own in samples]
    start = time.perf_counter()
    trained = [
        trainer.train(X, member, rows, *plan.bounds(chunk), int(chunk))
        for chunk, rows in zip(tried, samples, strict=True)
    ]
    load = np.ones(hierarchy.n_nodes) if above is None else np.diff(above.indptr)
    scale = load[plan.chunk_node[chunks]].sum() / load[plan.chunk_node[tried]].sum()
    at_once = min(threads, len(chunks))
    return _Trial(
        seconds=scale * (time.perf_counter() - start) / at_once,
        model_size=int(scale * sum(_size(chunk) for chunk in trained)),
        working=at_once
        * max(_working(X, rows, chunk) for rows, chunk in zip(samples, trained, strict=True)),
    )


def _samples(
    X: csr_matrix, above: csc_matrix | None, node: int, nodes: range, solver: Solver
) -> npt.NDArray[np.int32]:
    """Samples of a node, with those of its neighbours as the hard negatives to be expected."""
    n = X.shape[0]
    if above is None:
        return np.arange(n, dtype=np.int32)
    expected = min(n, n * solver.hard_negatives // len(nodes))
    first, last = node, node + 1
    while above.indptr[last] - above.indptr[first] < expected and last - first < len(nodes):
        first, last = max(first - 1, nodes.start), min(last + 1, nodes.stop)
    own = above.indices[above.indptr[node] : above.indptr[node + 1]]
    around = above.indices[above.indptr[first] : above.indptr[last]]
    return np.union1d(own, around[:: max(1, len(around) // max(1, expected))]).astype(np.int32)


def _size(chunk: Chunk) -> int:
    return _BYTES_PER_WEIGHT * len(chunk.weight) + _BYTES_PER_ROW * len(chunk.feature)


def _working(X: csr_matrix, rows: npt.NDArray[np.int32], chunk: Chunk) -> int:
    values = int((X.indptr[rows + 1] - X.indptr[rows]).sum()) + len(rows)
    n_features = min(values, X.shape[1])
    weights = WIDTH * 4 * n_features + _BYTES_PER_KEPT * len(chunk.weight)
    return _BYTES_PER_VALUE * values + 2 * 4 * WIDTH * len(rows) + weights


def _readable(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.3g} {unit}"
        size /= 1000
    return ""
