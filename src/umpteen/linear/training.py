"""Train all classifiers of a tree, chunk by chunk."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_matrix, csr_matrix

from umpteen import parallel
from umpteen.kernels.compiling import frozen
from umpteen.kernels.nodes import train_chunk
from umpteen.kernels.simd import WIDTH
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.chunks import (
    Chunk,
    ChunkPlan,
    Packed,
    join,
    packed,
    plan_chunks,
    side_by_side,
    upper_hierarchy,
)
from umpteen.linear.recipe import TreeRecipe
from umpteen.linear.search import Search, search_tree
from umpteen.linear.tree import Tree
from umpteen.memory import release_freed
from umpteen.metrics.hits import found_in
from umpteen.progress import Bar
from umpteen.scratch import slices
from umpteen.sharding import OnRows, Sharded
from umpteen.trees import Hierarchy

_RANKS = 10  # labels per training sample that are looked at for trust


@dataclass(frozen=True)
class Solver:
    """How each classifier is trained."""

    logistic: bool
    cost: float
    positive_weight: float
    tolerance: float
    max_epochs: int
    prune: float
    hard_negatives: int
    seed: int
    upper_samples: int | None = None

    @classmethod
    def of(
        cls, recipe: TreeRecipe, cost: float, positive_weight: float, prune: float, seed: int
    ) -> "Solver":
        """Return how a recipe trains with these costs."""
        return cls(
            recipe.loss == "logistic", cost, positive_weight, float(recipe.tolerance),
            int(recipe.max_epochs), prune, int(recipe.hard_negatives), seed, recipe.upper_samples,
        )  # fmt: skip


_ROUNDING = 1e-4  # rows of unit length in float32 are that long but for this


class ChunkTrainer:
    """Trains single chunks of samples like those of `X`; may be used by several threads at once."""

    def __init__(self, X: csr_matrix, solver: Solver) -> None:
        self._solver, self.n_features = solver, X.shape[1]
        length = _typical_length(X)
        self._prune, self._cost = solver.prune / length, solver.cost / length**2
        self._local_of = parallel.PerThread(partial(np.full, X.shape[1], -1, np.int32))

    def train(
        self, X: csr_matrix, member: csr_matrix, samples: npt.NDArray[np.int32], first: int,
        last: int, seed: int,
    ) -> Chunk:  # fmt: skip
        """Return the weights of the columns `first` to `last` of `member` (samples, children)."""
        return self.train_both(X, member, samples, len(samples), first, last, seed)[1]

    def train_both(
        self, X: csr_matrix, member: csr_matrix, samples: npt.NDArray[np.int32], n_first: int,
        first: int, last: int, seed: int,
    ) -> tuple[Chunk, Chunk]:  # fmt: skip
        """Return a chunk that has learned from the first `n_first` samples, and one from all.

        The second continues from the first, which costs far less than training it from zero.
        """
        solver = self._solver
        trial, final = train_chunk(
            *frozen_csr(X), frozen(samples), n_first, *frozen_csr(member)[:2], first, last,
            self._local_of.value, solver.logistic, self._cost, solver.positive_weight,
            solver.tolerance, solver.max_epochs, self._prune, solver.seed + seed,
        )  # fmt: skip
        done = Chunk(*final)
        return (done if n_first == len(samples) else Chunk(*trial)), done


def train_tree(
    X: csr_matrix, Y: csr_matrix, hierarchy: Hierarchy, solver: Solver, n_jobs: int | None,
    bar: Bar, validation: npt.NDArray[np.bool_] | None = None,
) -> tuple[Tree, Tree | None]:  # fmt: skip
    """Train the classifiers of a tree layer by layer, with `validation` also without that split.

    `validation` marks the samples of the split. Both trees have the same hierarchy, and their
    nodes the same candidates for negatives.

    A node learns from the samples that have a label below it (the root from all, so that those
    without labels count against every label), and with `hard_negatives` also from those that
    the layers above would send there among their best.
    """
    plan = plan_chunks(hierarchy.first_child)
    later = np.zeros(X.shape[0], np.bool_) if validation is None else validation
    trial, chunks = _train_layers(X, Y, hierarchy, plan, solver, n_jobs, bar, later)
    without = None if validation is None else join(hierarchy, plan.node_chunk, _emptied(trial))
    trial.clear()  # these may be the same as `chunks`, whose memory the tree takes
    return join(hierarchy, plan.node_chunk, _emptied(chunks)), without


def _train_layers(
    X: csr_matrix, Y: csr_matrix, hierarchy: Hierarchy, plan: ChunkPlan, solver: Solver,
    n_jobs: int | None, bar: Bar, later: npt.NDArray[np.bool_],
) -> tuple[list[Packed], list[Packed]]:  # fmt: skip
    """Return all chunks in order: those without the samples that come `later`, and with them."""
    trainer = ChunkTrainer(X, solver)
    trial: list[Packed] = []
    chunks: list[Packed] = []
    members, member = memberships(Y, hierarchy), None
    for nodes in hierarchy.layers():
        samples = learned_from(
            _reached(X, nodes, member, hierarchy, plan, chunks, solver, n_jobs),
            hierarchy, nodes, solver,
        )  # fmt: skip
        member = next(members)
        release_freed()
        tasks = [
            OnRows(samples[plan.chunk_node[chunk] - nodes.start], (*plan.bounds(chunk), chunk))
            for chunk in range(plan.node_chunk[nodes.start], plan.node_chunk[nodes.stop])
        ]
        both = _train_chunks(tasks, Sharded(X, member, later), trainer, n_jobs, bar)
        trial += [each[0] for each in both]
        chunks += [each[1] for each in both]
    return trial, chunks


def _reached(
    X: csr_matrix, nodes: range, member: csr_matrix | None, hierarchy: Hierarchy, plan: ChunkPlan,
    chunks: list[Packed], solver: Solver, n_jobs: int | None,
) -> csr_matrix:  # fmt: skip
    """Return `(samples, nodes)` of a layer: those below a node, and those that are sent to it.

    `member` is that of the layer above, and `chunks` are those of all layers above.
    """
    if member is None:
        return csr_matrix(np.ones((X.shape[0], 1), np.float32))
    below = member[:, nodes.start : nodes.stop]
    if not solver.hard_negatives:
        return below
    node_chunk = plan.node_chunk[: nodes.start + 1]
    above = join(upper_hierarchy(hierarchy, nodes), node_chunk, chunks)
    return csr_matrix(below + sent_to(above, X, solver, n_jobs))


def _emptied(chunks: list[Packed]) -> Iterator[Packed]:
    """Yield all chunks in order, and leave none: `join` then frees what it has copied."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


def learned_from(
    reached: csr_matrix, hierarchy: Hierarchy, nodes: range, solver: Solver
) -> list[npt.NDArray[np.int32]]:
    """Return the samples that each node of a layer learns from, ascending.

    Above the leaves, where each child stands for many labels, a node learns from at most
    `upper_samples` of the samples that reach it.
    """
    samples = columns_of(reached)
    if solver.upper_samples is None or nodes.stop == hierarchy.n_nodes:
        return samples
    return [
        some(own, solver.upper_samples, solver.seed + node)
        for node, own in zip(nodes, samples, strict=True)
    ]


def some(samples: npt.NDArray[np.int32], most: int, seed: int) -> npt.NDArray[np.int32]:
    """Return at most so many samples, in order, drawn at random.

    >>> some(np.array([3, 5, 8, 9], np.int32), 2, seed=0)
    array([8, 9], dtype=int32)
    """
    if len(samples) <= most:
        return samples
    return np.sort(np.random.default_rng(seed).choice(samples, most, replace=False))


def _train_chunks(
    tasks: list[OnRows], sharded: Sharded, trainer: ChunkTrainer, n_jobs: int | None, bar: Bar
) -> list[tuple[Packed, Packed]]:
    """Train the chunks of a layer.

    A cluster may have more cores than an upper layer has chunks. Then a chunk is trained in parts:
    each sixteen children learn by themselves anyway, and give the same bits.
    """
    shared = (sharded, trainer)
    n_parts = parallel.width_elsewhere() // len(tasks)
    if n_parts < 2:
        return parallel.map(_trained, tasks, shared, n_jobs=n_jobs, done=lambda _: bar.advance())
    divided = [_divided(task, n_parts) for task in tasks]
    learned = iter(parallel.map(_trained_part, list(chain(*divided)), shared, n_jobs=n_jobs))
    found = []
    for own in divided:
        trial, final = zip(*islice(learned, len(own)), strict=True)
        whole = side_by_side(final)
        without = whole if trial[0] is final[0] else side_by_side(trial)
        found.append(_packed_both(without, whole, trainer.n_features))
        bar.advance()
    return found


def _divided(task: OnRows, n_parts: int) -> list[OnRows]:
    """Divide the children of a chunk, but not those that are trained at once."""
    first, last, chunk = task.item
    size = -(-(last - first) // (n_parts * WIDTH)) * WIDTH
    return [
        OnRows(task.rows, (start, min(start + size, last), chunk))
        for start in range(first, last, size)
    ]


def _trained(task: OnRows, sharded: Sharded, trainer: ChunkTrainer) -> tuple[Packed, Packed]:
    """Train a chunk and pack it at once, which takes half the memory."""
    return _packed_both(*_trained_part(task, sharded, trainer), trainer.n_features)


def _packed_both(trial: Chunk, final: Chunk, n_features: int) -> tuple[Packed, Packed]:
    done = packed(final, n_features)
    return (done if trial is final else packed(trial, n_features)), done


def _trained_part(task: OnRows, sharded: Sharded, trainer: ChunkTrainer) -> tuple[Chunk, Chunk]:
    (X, member, later), samples = sharded.at(task.rows)
    of_split = later[samples]
    samples = np.concatenate([samples[~of_split], samples[of_split]])
    n_first = len(samples) - int(of_split.sum())
    return trainer.train_both(X, member, samples, n_first, *task.item)


def learn_trust(
    tree: Tree, X: csr_matrix, Y: csr_matrix, search: Search, of: npt.NDArray[np.int32],
    negative_weight: float = 1.0,
) -> None:  # fmt: skip
    """Lower the scores of the labels `of` that were often wrong on the training samples.

    A label's trust is its smoothed precision among the samples that rank it in their best ten
    with a score of at least 0.3, to the power 0.3: the constants that did best on validation
    splits of three data sets. So equal margins of different labels can get different scores.
    """
    concerned = np.isin(tree.hierarchy.label_order, of)
    labels, logs = search_tree(tree, X, _RANKS, search)
    named = (labels >= 0) & (logs >= np.log(0.3))
    right = named & found_in(Y, labels)
    n_named = np.bincount(labels[named], minlength=Y.shape[1])
    n_right = np.bincount(labels[right], minlength=Y.shape[1])
    n_named = n_right + negative_weight * (n_named - n_right)
    trust = 0.3 * np.log((n_right + 1) / (n_named + 1.2))
    tree.log_trust[concerned] += np.minimum(trust, 0)[tree.hierarchy.label_order[concerned]]


def sent_to(above: Tree, X: csr_matrix, solver: Solver, n_jobs: int | None) -> csr_matrix:
    """Return `(samples, nodes)`: the best few nodes of each sample by the layers above."""
    k = min(solver.hard_negatives, len(above.hierarchy.label_order))
    best, _ = search_tree(above, X, k, Search(2 * k, 1.0, solver.logistic, n_jobs))
    starts = np.arange(X.shape[0] + 1) * k
    return _indicator(best.ravel(), starts, len(above.hierarchy.label_order))


def memberships(Y: csr_matrix, hierarchy: Hierarchy) -> Iterator[csr_matrix]:
    """Yield, for each layer, `(samples, tree numbers)`: in which children a sample has a label.

    Columns are the tree's own numbers, so that the children of a node stand side by side.
    """
    place = np.full(Y.shape[1], -1, np.int32)
    place[hierarchy.label_order] = np.arange(len(hierarchy.label_order)) + hierarchy.n_nodes
    parents = hierarchy.parents()
    numbers = [place]  # of each label and of what is above it, -1 for a label that has no place
    for _ in hierarchy.layers()[1:]:
        numbers.append(np.where(place < 0, place, parents[numbers[-1]]))
    while numbers:
        yield _indicator(numbers.pop()[Y.indices], Y.indptr, len(parents))


def _indicator(
    numbers: npt.NDArray[np.int32], starts: npt.NDArray[np.integer], n_columns: int
) -> csr_matrix:
    """Return a matrix with the `numbers` of row i from `starts[i]` on; negative ones are none."""
    kept = numbers >= 0
    if not kept.all():
        starts = np.concatenate([[0], np.cumsum(kept)])[starts]
        numbers = numbers[kept]
    ones = np.ones(len(numbers), np.float32)
    matrix = csr_matrix((ones, numbers, starts.copy()), shape=(len(starts) - 1, n_columns))
    matrix.sum_duplicates()
    return matrix


def _typical_length(X: csr_matrix) -> float:
    """Root mean square length of the rows that have features; 1 if that is meant."""
    filled = np.count_nonzero(np.diff(X.indptr))
    total = sum(float(np.square(X.data[part], dtype=np.float64).sum()) for part in slices(X.nnz))
    length = float(np.sqrt(total / filled)) if total > 0 else 1.0
    return 1.0 if abs(length - 1) < _ROUNDING else length


def columns_of(matrix: csr_matrix) -> list[npt.NDArray[np.int32]]:
    """Return the rows of each column's entries, ascending."""
    columns = csc_matrix(matrix)
    columns.sort_indices()
    return np.split(columns.indices.astype(np.int32, copy=False), columns.indptr[1:-1])
