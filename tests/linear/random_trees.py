"""Small trees with random weights, and the same trees as dense tables."""

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.linear.chunks import Chunk, join, packed, plan_chunks
from umpteen.linear.tree import Tree
from umpteen.trees import Hierarchy, grow

ANY = None  # weights are drawn from the normal distribution
COARSE = (-1.0, -0.5, 0.5, 1.0, 2.0)  # sums are exact in float32, and ties are the rule


def random_csr(n_rows, n_columns, density, *, values=ANY, seed=0) -> csr_matrix:
    random = np.random.default_rng(seed)
    table = draw(random, values, (n_rows, n_columns))
    return csr_matrix(table * (random.random(table.shape) < density), dtype=np.float32)


def draw(random, values, shape) -> np.ndarray:
    table = random.normal(size=shape) if values is ANY else random.choice(values, shape)
    return table.astype(np.float32)


def random_hierarchy(n_labels, branching, max_leaf, seed=0) -> Hierarchy:
    table = random_csr(n_labels, 20, 0.3, seed=seed).toarray()
    table[:, 0] = 0.1  # every label has a place
    return grow(csr_matrix(table), branching=branching, max_leaf=max_leaf, seed=seed, n_jobs=1)


def chunk_of(table: np.ndarray, bias: np.ndarray) -> Chunk:
    """A dense table (features, children) as the training kernel returns it."""
    rows = csr_matrix(table)
    feature = np.flatnonzero(np.diff(rows.indptr)).astype(np.int32)
    entry = np.append(rows.indptr[feature], rows.nnz).astype(np.int32)
    return Chunk(feature, entry, rows.indices.astype(np.uint8), rows.data, bias)


def random_chunks(hierarchy, n_features, density, *, values=ANY, seed=0) -> list[Chunk]:
    """One per chunk of the plan; every fourth one has no weights at all."""
    random = np.random.default_rng(seed)
    chunks = []
    for i, width in enumerate(np.diff(plan_chunks(hierarchy.first_child).chunk_child)):
        table = draw(random, values, (n_features, width))
        table *= random.random(table.shape) < (0 if i % 4 == 3 else density)
        chunks.append(chunk_of(table, draw(random, values, width)))
    return chunks


def assemble(hierarchy, chunks, n_features) -> Tree:
    """One tree out of the chunks that `plan_chunks` named, in that order."""
    node_chunk = plan_chunks(hierarchy.first_child).node_chunk
    return join(hierarchy, node_chunk, [packed(chunk, n_features) for chunk in chunks])


def random_tree(hierarchy, n_features, density=0.3, *, values=ANY, seed=0) -> Tree:
    chunks = random_chunks(hierarchy, n_features, density, values=values, seed=seed)
    tree = assemble(hierarchy, chunks, n_features)
    random = np.random.default_rng(seed + 1)
    tree.log_trust[:] = -np.abs(draw(random, values, len(tree.log_trust)))
    return tree


def dense_weights(tree: Tree, n_features: int) -> np.ndarray:
    """(tree numbers without the root, features): row `i` belongs to number `i + 1`."""
    table = np.zeros((len(tree.bias), n_features), np.float32)
    for chunk, rows in enumerate(pairwise(tree.chunk_row)):
        first, scale = tree.chunk_child[chunk], tree.chunk_scale[chunk]
        for row in range(*rows):
            for entry in range(tree.entry[row], tree.entry[row + 1]):
                table[first - 1 + tree.child[entry], tree.feature[row]] = tree.weight[entry] * scale
    return table
