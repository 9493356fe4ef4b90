import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit
from scipy.sparse import csr_matrix

from umpteen.kernels.topk import best_first, dense_topk, frozen_csr, offer, sparse_topk

# Few different values: ties, zeros and negatives are the rule.
tables = arrays(
    np.float32,
    st.tuples(st.integers(0, 5), st.integers(1, 12)),
    elements=st.sampled_from([-1.0, 0.0, 0.5, 1.0]),
)


def by_sorting(table, k):
    """The readable version: sort all non-zero scores by score, then by id."""
    labels = np.full((len(table), k), -1, np.int32)
    scores = np.full((len(table), k), -np.inf, np.float32)
    for row, values in enumerate(table):
        best = sorted((-value, label) for label, value in enumerate(values) if value != 0)[:k]
        for rank, (value, label) in enumerate(best):
            labels[row, rank], scores[row, rank] = label, -value
    return labels, scores


@given(tables, st.integers(1, 15))
def test_dense_scores_are_ranked_as_by_sorting(table, k):
    for ours, expected in zip(dense_topk(table, k), by_sorting(table, k), strict=True):
        np.testing.assert_array_equal(ours, expected)


@given(tables, tables, st.integers(1, 15))
def test_sparse_products_are_ranked_as_by_sorting(samples, postings, k):
    samples = samples[:, : len(postings)]
    postings = postings[: samples.shape[1]]
    ours = sparse_topk(
        frozen_csr(csr_matrix(samples)), frozen_csr(csr_matrix(postings)), postings.shape[1], k
    )
    for answer, expected in zip(ours, by_sorting(samples @ postings, k), strict=True):
        np.testing.assert_array_equal(answer, expected)


@njit
def offer_all(labels, scores, offered):
    kept = 0
    for label in offered:
        kept = offer(labels, scores, kept, label, np.float32(label // 3))
    best_first(labels, scores, kept)


def test_the_best_are_kept_whatever_the_order_of_offers():
    random = np.random.default_rng(0)
    for order in (random.permutation(100) for _ in range(20)):
        labels, scores = np.empty(7, np.int32), np.empty(7, np.float32)
        offer_all(labels, scores, order)
        assert labels.tolist() == [99, 96, 97, 98, 93, 94, 95]
