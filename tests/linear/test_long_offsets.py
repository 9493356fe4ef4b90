"""Trees and features with more than 2^31 values: offsets of 64 bits, the same answers."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix, vstack

import umpteen as um
from tests.contract.cases import noise
from umpteen.cluster.blocks import Blocks
from umpteen.errors import FeaturesError, LabelsError
from umpteen.kernels.beam import beam_search
from umpteen.kernels.compiling import frozen
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.chunks import join, split
from umpteen.linear.training import ChunkTrainer
from umpteen.sharding import Sharded
from umpteen.validation import check_features, check_labels

FAR = 2**31 + 12_345
OFFSETS = ("chunk_row", "chunk_bucket", "buckets", "entry")


@pytest.fixture(scope="module")
def model():
    return um.LabelTree(max_leaf=8, branching=4, random_state=0).fit(*noise(400))


def far_away(array: np.ndarray, folder: Path, name: str) -> np.ndarray:
    """An array that begins at a place beyond 2^31, in a file that has only its end on disk."""
    size = FAR + len(array)
    mapped = np.memmap(folder / name, array.dtype, "w+", shape=(size,))
    mapped[FAR:] = array
    return np.asarray(mapped)


def moved(tree, folder):
    """The same tree, with its rows and its weights behind those of a tree of billions."""
    long = {name: getattr(tree, name).astype(np.int64) for name in OFFSETS}
    entry = far_away(long["entry"] + FAR, folder, "entry")
    moved = tree.arrays._replace(
        chunk_row=long["chunk_row"] + FAR,
        chunk_bucket=long["chunk_bucket"],
        buckets=long["buckets"] + FAR,
        entry=entry,
        feature=far_away(tree.feature, folder, "feature"),
        child=far_away(tree.child, folder, "child"),
        weight=far_away(tree.weight, folder, "weight"),
    )
    return frozen(moved)


@pytest.mark.parametrize("n_rows", [1, 40, 600], ids=["alone", "together", "by table"])
def test_kernels_reach_beyond_32_bits(model, n_rows, tmp_path):
    (tree,) = model.trees_
    X = noise(400)[0][np.arange(n_rows) % 400]
    far = moved(tree, tmp_path)
    near = tree.arrays
    rest = 0, n_rows
    for beam_width in (2, 10):
        expected, found = (
            beam_search(*frozen_csr(X), X.shape[1], *rest, each, beam_width, 5, 0.8, False, 100)
            for each in (near, far)
        )
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_a_large_tree_gets_long_offsets_and_keeps_them(model, monkeypatch, tmp_path):
    """As if a tree with a few thousand weights had too many for 32 bits."""
    X, Y = noise(400)
    (short,) = model.trees_
    assert {getattr(short, name).dtype for name in OFFSETS} == {np.dtype(np.int32)}
    monkeypatch.setattr("umpteen.linear.chunks._MOST_32", 1000)
    long = um.LabelTree(max_leaf=8, branching=4, random_state=0).fit(X, Y)
    (tree,) = long.trees_
    assert {getattr(tree, name).dtype for name in OFFSETS} == {np.dtype(np.int64)}
    assert long.predict_topk(X) == model.predict_topk(X)
    long.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    assert loaded.trees_[0].entry.dtype == np.int64
    assert loaded.predict_topk(X) == model.predict_topk(X)
    asked = [[0], [1], [2]]
    scores = [each.score_labels(X[:3], asked).toarray() for each in (loaded, model)]
    np.testing.assert_array_equal(*scores)
    again = join(tree.hierarchy, tree.node_chunk, split(tree))
    for name in (*OFFSETS, "feature", "child", "weight"):
        np.testing.assert_array_equal(getattr(again, name), getattr(short, name))
    changed = loaded.remove_labels([3]).predict_topk(X)
    assert changed == um.load(tmp_path / "model").remove_labels([3]).predict_topk(X)


def test_labels_beyond_32_bits_are_refused_at_once(tmp_path):
    """Before hours of work, not after: scipy would make indices of 64 bits, and kernels fail."""
    size = 2**31 + 8
    matrix = csr_matrix((2, 10), dtype=np.float32)
    matrix.data = np.memmap(tmp_path / "data", np.float32, "w+", shape=(size,))
    matrix.indices = np.memmap(tmp_path / "indices", np.int64, "w+", shape=(size,))
    matrix.indptr = np.array([0, size - 4, size])
    with pytest.raises(LabelsError, match=r"2,147,483,656 values.*Use fewer"):
        check_labels(matrix)


@pytest.mark.parametrize("shape", [(2**31, 3), (3, 2**31)])
def test_features_with_too_many_rows_or_columns_are_refused(shape):
    with pytest.raises(FeaturesError, match=r"rows, and columns, may be at most 2,147,483,647"):
        check_features(coo_matrix(shape, dtype=np.float32))


def long_features(X, folder):
    """The same rows behind one that has more than 2^31 values, which nothing reads."""
    long = csr_matrix((X.shape[0] + 1, X.shape[1]), dtype=np.float32)
    long.indptr = np.append(0, X.indptr.astype(np.int64) + FAR)
    long.indices = far_away(X.indices.astype(np.int64), folder, "indices")
    long.data = far_away(X.data, folder, "data")
    return long


def test_kernels_read_features_beyond_32_bits(model, tmp_path):
    X, Y = noise(400)
    (tree,), long = model.trees_, long_features(X, tmp_path)
    near, far = (
        beam_search(*frozen_csr(each), X.shape[1], i, i + 400, tree.arrays, 5, 5, 0.8, False, 2**20)
        for i, each in enumerate((X, long))
    )
    np.testing.assert_array_equal(far[0], near[0])
    np.testing.assert_array_equal(far[1], near[1])
    trainer = ChunkTrainer(X, model._solver(0))
    chunks = [
        trainer.train(each, members, np.arange(i, 400 + i, dtype=np.int32), 0, 20, 7)
        for i, (each, members) in enumerate([(X, Y), (long, csr_matrix(vstack([Y[:1], Y])))])
    ]
    for one, other in zip(*chunks, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_block_of_long_features_is_short(tmp_path):
    """So that nodes hold 8 bytes for each value, and use the kernels that they have."""
    X, _ = noise(400)
    blocks = Blocks(Sharded(long_features(X, tmp_path)), 2)
    (block,) = blocks.block(1)
    assert block.indices.dtype == block.indptr.dtype == np.int32
    assert (block != X[199:]).nnz == 0
    assert blocks.n_values(np.array([7, 400], np.int32)) == [X[[6, 399]].nnz]


def test_long_features_are_learned_with_the_same_bits(model, monkeypatch):
    """As if a matrix with a few thousand values had too many for 32 bits."""
    X, Y = noise(400)
    expected = model.predict_topk(X)
    monkeypatch.setattr("umpteen.validation.arrays._MOST_SHORT", 1000)
    long = um.LabelTree(max_leaf=8, branching=4, random_state=0).fit(X, Y)
    found = long.predict_topk(X)
    assert found.labels.tobytes() == expected.labels.tobytes()
    assert found.scores.tobytes() == expected.scores.tobytes()
