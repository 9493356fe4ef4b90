"""If this is off, labels' own texts push the wrong labels up."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen.kernels.blending import blend
from umpteen.kernels.compiling import frozen
from umpteen.kernels.topk import frozen_csr, sparse_topk

N_SAMPLES, N_LABELS, N_FEATURES = 12, 25, 10


def unit_rows(n_rows, seed):
    random = np.random.default_rng(seed)
    shape = (n_rows, N_FEATURES)
    table = random.normal(size=shape) * (random.random(shape) < 0.3)
    return csr_matrix(normalize(table), dtype=np.float32)


def by_hand(cosines, tree_table, near_labels, named, weight, k):
    """Every label that the tree named, or that is near with a positive cosine, by its score."""
    labels = np.full((N_SAMPLES, k), -1, np.int32)
    scores = np.full((N_SAMPLES, k), -np.inf)
    for row in range(N_SAMPLES):
        near = {label for label in near_labels[row] if label >= 0 and cosines[row, label] > 0}
        found = near | set(named[row])
        blended = [
            (-(tree_table[row, label] + weight * np.clip(cosines[row, label], 0, 1)), label)
            for label in found
        ]
        for rank, (negative, label) in enumerate(sorted(blended)[:k]):
            labels[row, rank], scores[row, rank] = label, -negative / (1 + weight)
    return labels, scores


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("weight", [0.1, 0.5])
@pytest.mark.parametrize("n_near", [0, 3, 30])
def test_scores_are_blended_as_by_hand(k, weight, n_near):
    random = np.random.default_rng(k)
    samples, texts = unit_rows(N_SAMPLES, 0), unit_rows(N_LABELS, 1)
    named = [random.choice(N_LABELS, random.integers(0, 7), replace=False) for _ in range(12)]
    tree_labels = np.full((N_SAMPLES, 6), -1, np.int32)
    tree_scores = np.full((N_SAMPLES, 6), -np.inf, np.float32)
    tree_table = np.zeros((N_SAMPLES, N_LABELS))
    for row, labels in enumerate(named):
        tree_labels[row, : len(labels)] = labels
        tree_scores[row, : len(labels)] = tree_table[row, labels] = random.random(len(labels))
    postings = frozen_csr(csr_matrix(texts.T))
    near, _ = sparse_topk(frozen_csr(samples), postings, N_LABELS, n_near)
    labels, scores = blend(
        frozen_csr(samples), frozen_csr(texts), *frozen((tree_labels, tree_scores, near)),
        np.float32(weight), k, N_FEATURES,
    )  # fmt: skip
    cosines = (samples @ texts.T).toarray()
    expected = by_hand(cosines, tree_table, near, named, weight, k)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=1e-5)
