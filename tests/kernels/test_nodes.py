"""If samples, targets or weights are misplaced here, labels learn from the wrong rows."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from umpteen.kernels.compiling import frozen
from umpteen.kernels.coordinate_descent import logistic_regression, squared_hinge
from umpteen.kernels.nodes import (
    by_feature,
    fill_targets,
    gather,
    keep,
    nothing_kept,
    train_chunk,
)
from umpteen.kernels.simd import WIDTH
from umpteen.kernels.topk import frozen_csr

matrices = arrays(
    np.float32,
    st.tuples(st.integers(1, 12), st.integers(1, 15)),
    elements=st.sampled_from([0.0, 0.0, 0.0, 0.5, -1.0, 2.0]),
)


def random_csr(random, shape, density):
    return csr_matrix((random.random(shape) * (random.random(shape) < density)).astype(np.float32))


def chosen_rows(n_rows):
    picks = st.lists(st.integers(0, n_rows - 1), unique=True)
    return picks.map(lambda rows: np.array(sorted(rows), np.int32))


@given(st.data(), matrices)
def test_gather_equals_slicing_in_scipy_and_adds_a_bias(data, dense):
    samples = data.draw(chosen_rows(len(dense)))
    local_of = np.full(dense.shape[1], -1, np.int32)
    *parts, features = gather(*frozen_csr(csr_matrix(dense)), samples, local_of)
    indptr, indices, values = parts
    assert (local_of == -1).all(), "the next node would see this node's features"
    wanted = dense[samples]
    np.testing.assert_array_equal(features, np.flatnonzero(wanted.any(axis=0)))
    small = csr_matrix((values, indices, indptr), (len(samples), len(features) + 1))
    expected = np.hstack([wanted[:, features], np.ones((len(samples), 1))])
    np.testing.assert_array_equal(small.toarray(), expected)


@given(st.data(), matrices, st.integers(0, 40))
def test_targets_are_plus_one_exactly_where_a_sample_is_a_member(data, dense, offset):
    members = csr_matrix(np.hstack([np.zeros((len(dense), offset), np.float32), dense]))
    samples = data.draw(chosen_rows(len(dense)))
    first = data.draw(st.integers(0, members.shape[1] - 1))
    last = data.draw(st.integers(first + 1, min(first + WIDTH, members.shape[1])))
    targets = np.full((len(samples), WIDTH), 7, np.float32)
    fill_targets(*frozen_csr(members)[:2], samples, first, last, targets)
    expected = np.full_like(targets, -1)
    inside = members.toarray()[samples, first:last] != 0
    expected[:, : last - first][inside] = 1
    np.testing.assert_array_equal(targets, expected)


def blocks_of(dense):
    """(features + bias, children) as the solver has it: (blocks, features + bias, 16)."""
    n_blocks = -(-dense.shape[1] // WIDTH)
    padded = np.full((len(dense), n_blocks * WIDTH), 9, np.float32)  # lanes nobody may look at
    padded[:, : dense.shape[1]] = dense
    blocks = padded.reshape(len(dense), n_blocks, WIDTH).transpose(1, 0, 2)
    return np.ascontiguousarray(blocks)


def pruned(dense, features, prune):
    """The chunk that is kept of (features + bias, children), sixteen children after the other."""
    n_children = dense.shape[1]
    kept = nothing_kept(n_children)
    for block, weights in enumerate(blocks_of(dense)):
        left = WIDTH * block
        kept = keep(kept, weights, left, min(WIDTH, n_children - left), prune)
    return by_feature(kept, features)


def dense_of(kept, starts, children, values, bias, features):
    """The chunk as a table (features + bias, children), zero where nothing is stored."""
    dense = np.zeros((len(features) + 1, len(bias)), np.float32)
    rows = np.repeat(np.searchsorted(features, kept), np.diff(starts))
    dense[rows, children] = values
    dense[-1] = bias
    return dense


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 8), st.integers(1, 50)),
        elements=st.sampled_from(np.float32([0.0, 0.05, -0.05, 0.1, -0.1, 0.3, -2.0])),
    ),
    st.sampled_from([0.05, 0.1, 0.2, 1.0, 3.0]),
)
def test_pruning_keeps_the_large_weights_and_every_bias(dense, prune):
    features = (3 * np.arange(len(dense) - 1) + 1).astype(np.int32)
    chunk = pruned(dense, features, prune)
    kept, starts, children, values, bias = chunk
    expected = np.where(np.abs(dense) >= prune, dense, 0)
    expected[-1] = dense[-1]
    np.testing.assert_array_equal(dense_of(*chunk, features), expected)
    np.testing.assert_array_equal(kept, features[expected[:-1].any(axis=1)])
    np.testing.assert_array_equal(bias, dense[-1])
    assert len(values) == len(children) == starts[-1] == np.count_nonzero(expected[:-1])
    assert (np.diff(starts) > 0).all()
    for begin, end in pairwise(starts):
        assert (np.diff(children[begin:end].astype(int)) > 0).all()


def test_pruning_everything_leaves_the_biases():
    dense = np.full((4, 20), 0.5, np.float32)
    kept, starts, children, values, bias = pruned(dense, np.arange(3, dtype=np.int32), 0.6)
    assert len(kept) == len(children) == len(values) == 0
    assert starts.tolist() == [0]
    np.testing.assert_array_equal(bias, np.full(20, 0.5))


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("n_children", [1, 16, 37, 128])
def test_a_chunk_is_the_solver_and_the_pruning_on_the_nodes_own_rows(logistic, n_children):
    random = np.random.default_rng(n_children)
    X = random_csr(random, (60, 25), 0.2)
    members = random_csr(random, (60, 200), 0.1)
    samples = np.sort(random.choice(60, 40, replace=False)).astype(np.int32)
    first, last, prune, seed = 30, 30 + n_children, 0.1, 3
    settings = (0.7, 2.0, 0.05, 30)
    local_of = np.full(25, -1, np.int32)
    trial, chunk = train_chunk(
        *frozen_csr(X), frozen(samples), len(samples), *frozen_csr(members)[:2], first, last,
        local_of, logistic, *settings, prune, seed,
    )  # fmt: skip
    assert (local_of == -1).all()

    small = X[samples].toarray()
    features = np.flatnonzero(small.any(axis=0))
    rows = csr_matrix(np.hstack([small[:, features], np.ones((40, 1), np.float32)]))
    targets = np.full((40, -(-n_children // WIDTH) * WIDTH), -1, np.float32)
    targets[:, :n_children][members[samples].toarray()[:, first:last] != 0] = 1
    solve = logistic_regression if logistic else squared_hinge
    expected = np.zeros((len(features) + 1, targets.shape[1]), np.float32)
    for begin in range(0, targets.shape[1], WIDTH):
        weights = np.zeros((len(features) + 1, WIDTH), np.float32)
        lanes = np.ascontiguousarray(targets[:, begin : begin + WIDTH])
        alphas = np.zeros(lanes.shape, np.float64 if logistic else np.float32)
        solve(rows.indptr, rows.indices, rows.data, lanes, 0, 40, *settings, seed, alphas, weights)
        expected[:, begin : begin + WIDTH] = weights
    expected = expected[:, :n_children]
    expected[:-1][np.abs(expected[:-1]) < prune] = 0
    np.testing.assert_array_equal(dense_of(*chunk, features), expected)
    np.testing.assert_array_equal(dense_of(*trial, features), expected)


@pytest.mark.parametrize("logistic", [False, True])
def test_the_trial_of_a_chunk_has_not_seen_the_last_samples(logistic):
    random = np.random.default_rng(0)
    X, members = random_csr(random, (60, 25), 0.2), random_csr(random, (60, 20), 0.1)
    samples, local_of = frozen(np.arange(60, dtype=np.int32)), np.full(25, -1, np.int32)
    how = (0, 20, local_of, logistic, 0.7, 2.0, 0.05, 30, 0.1, 3)
    member = frozen_csr(members)[:2]
    trial, final = train_chunk(*frozen_csr(X), samples, 45, *member, *how)
    alone, _ = train_chunk(*frozen_csr(X), samples[:45], 45, *member, *how)
    for ours, expected in zip(trial, alone, strict=True):
        np.testing.assert_array_equal(ours, expected)
    assert len(final[3]) != len(trial[3]) or (final[3] != trial[3]).any()


@pytest.mark.parametrize("samples", [[], [3]])
def test_nodes_with_few_or_empty_samples_give_a_chunk(samples):
    """A leaf whose only sample has no features must not stop the training of a million others."""
    X = csr_matrix((5, 6), dtype=np.float32)
    members = csr_matrix(np.eye(5, 8, dtype=np.float32))
    _, (kept, starts, children, values, bias) = train_chunk(
        *frozen_csr(X), frozen(np.array(samples, np.int32)), len(samples), *frozen_csr(members)[:2],
        2, 5, np.full(6, -1, np.int32), False, 1.0, 1.0, 0.1, 20, 0.1, 0,
    )  # fmt: skip
    assert len(kept) == len(children) == len(values) == 0
    assert starts.tolist() == [0]
    assert np.isfinite(bias).all()
    assert np.sign(bias).tolist() == ([-1, 1, -1] if samples else [0, 0, 0])
