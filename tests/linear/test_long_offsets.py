"""Trees with more than 2^31 weights or rows: offsets of 64 bits, the same answers."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import umpteen as um
from tests.contract.cases import noise
from umpteen.errors import FeaturesError, LabelsError
from umpteen.kernels.beam import beam_search
from umpteen.kernels.compiling import frozen
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.chunks import join, split
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
            beam_search(*frozen_csr(X), X.shape[1], *rest, each, beam_width, 5, 0.8, False)
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


@pytest.mark.parametrize(
    ("check", "error"), [(check_features, FeaturesError), (check_labels, LabelsError)]
)
def test_matrices_beyond_32_bits_are_refused_at_once(check, error, tmp_path):
    """Before hours of work, not after: scipy would make indices of 64 bits, and kernels fail."""
    size = 2**31 + 8
    matrix = csr_matrix((2, 10), dtype=np.float32)
    matrix.data = np.memmap(tmp_path / "data", np.float32, "w+", shape=(size,))
    matrix.indices = np.memmap(tmp_path / "indices", np.int64, "w+", shape=(size,))
    matrix.indptr = np.array([0, size - 4, size])
    with pytest.raises(error, match=r"2,147,483,656 values.*Use fewer"):
        check(matrix)
