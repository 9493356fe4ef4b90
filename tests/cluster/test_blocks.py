"""Rows of matrices in blocks: each batch of tasks gets its own rows, and nothing is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from tests.cluster.tasks import totals
from umpteen import parallel
from umpteen.cluster.blocks import Blocks, delivered, key_of, number_of_blocks, size_of
from umpteen.sharding import OnRows, Sharded

ray = pytest.importorskip("ray", reason="needs the extra `cluster`")
from umpteen.cluster.deliveries import Deliveries  # noqa: E402

N = 50


class Immediate:
    """A remote function that runs at once, here; a reference is the object itself."""

    def __init__(self, function, calls):
        self._function, self._calls, self._n_returns = function, calls, 1

    def options(self, num_returns, **_):
        self._n_returns = num_returns
        return self

    def remote(self, *arguments):
        found = self._function(*arguments)
        self._calls.append(self._n_returns)
        assert self._n_returns == 1 or len(found) == self._n_returns
        return found


class Local:
    """What `Deliveries` uses of Ray, without any process."""

    def __init__(self):
        self.calls = []

    def remote(self, **_):
        return lambda function: Immediate(function, self.calls)


class TwoNodes:
    ids, most_cores = ["0" * 56, "1" * 56], 1

    def check_task(self, n_bytes):
        assert n_bytes < 1e9


def matrices(seed=0):
    random = np.random.default_rng(seed)
    X = csr_matrix(random_array((N, 30), density=0.2, rng=random, dtype=np.float32))
    Y = csr_matrix(random_array((N, 7), density=0.3, rng=random, dtype=np.float32))
    return X, Y, random.integers(9, size=N)


def deliveries(n_blocks, limit):
    whole, local = Sharded(*matrices()), Local()
    blocks = Blocks(whole, n_blocks)
    references = [blocks.block(number) for number in range(n_blocks)]
    return Deliveries(local, blocks, references, TwoNodes(), limit, 0), local


needs = st.lists(
    st.one_of(
        st.lists(st.integers(0, N - 1), max_size=N).map(lambda rows: np.array(rows, np.int32)),
        st.tuples(st.integers(0, N), st.integers(0, N)).map(lambda ends: range(*sorted(ends))),
    ),
    min_size=1, max_size=9,
)  # fmt: skip


@given(needs, st.integers(1, 12), st.integers(1, 3), st.integers(1, 4), st.sampled_from([0, 1e9]))
def test_each_batch_gets_its_rows(needs, n_blocks, size, at_once, limit):
    """To the bit, with the types that kernels are compiled for."""
    items = [OnRows(rows) for rows in needs]
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    rows, _ = deliveries(n_blocks, limit)
    orders = list(rows.orders(batches, at_once))
    assert [order.batch for order in orders] == batches
    for batch, delivery, objects, memory in orders:
        assert bool(memory) == bool(delivery.apart)
        assert bool(delivery.apart) == (limit == 0 and sum(len(each.rows) for each in batch) > 0)
        part = delivered(batch, delivery, objects, lambda reference: reference)
        for item in batch:
            found, places = part.at(item.rows)
            for matrix, whole in zip(found, matrices(), strict=True):
                own = matrix[np.asarray(places, np.int32)]
                expected = whole[np.asarray(item.rows, np.int32)]
                if isinstance(whole, csr_matrix):
                    assert matrix.indptr.dtype == whole.indptr.dtype
                    assert matrix.indices.dtype == whole.indices.dtype
                    own, expected = own.toarray(), expected.toarray()
                np.testing.assert_array_equal(own, expected)
            if not isinstance(places, range):
                np.testing.assert_array_equal(part.rows_at(places), item.rows)


def test_slices_are_cut_once_for_many_batches_and_have_no_other_rows():
    """Otherwise each batch would cost a task for each block."""
    batches = [[OnRows(np.array([i, 10 + i, 40 + i], np.int32))] for i in range(4)]
    rows, local = deliveries(n_blocks=5, limit=1e9)
    orders = list(rows.orders(batches, at_once=4))
    assert local.calls == [4, 4, 4]  # of the blocks with rows 0 to 9, 10 to 19 and 40 to 49
    assert all(piece[0].shape[0] == 1 for order in orders for piece in order.objects)
    X, Y, array = matrices()
    every = np.unique(np.concatenate([batch[0].rows for batch in batches]))
    assert rows.n_bytes == pytest.approx(
        8 * X[every].nnz + 8 * Y[every].nnz + (4 + 4 + array.itemsize) * len(every)
    )


def test_a_batch_that_needs_most_of_a_block_gets_it_without_a_copy():
    rows, local = deliveries(n_blocks=5, limit=1e9)
    (order,) = rows.orders([[OnRows(range(10, 17))]], at_once=4)
    assert local.calls == []
    assert np.shares_memory(order.objects[0].data, rows._blocks.matrices[0].data)
    (order,) = rows.orders([[OnRows(range(10, 20))]], at_once=4)
    part = delivered(order.batch, order.delivery, order.objects, None)
    assert np.shares_memory(part.matrices[0].data, rows._blocks.matrices[0].data)


def test_blocks_too_large_together_are_fetched_one_by_one():
    """A batch of the root needs all rows, and a node may not have room for all blocks."""
    rows, _ = deliveries(n_blocks=5, limit=0)
    (order,) = rows.orders([[OnRows(range(N))]], at_once=4)
    fetched = []
    assert order.objects == []
    part = delivered(order.batch, order.delivery, [], lambda each: fetched.append(each) or each)
    assert len(fetched) == 3 * 5
    np.testing.assert_array_equal(part.matrices[0].toarray(), matrices()[0].toarray())


def test_there_are_as_many_blocks_for_each_node_and_they_fit():
    X, *_ = matrices()
    for largest in (200, 1000, 1e9):
        n_blocks = number_of_blocks(X, 3, largest)
        blocks = Blocks(Sharded(X), n_blocks)
        assert n_blocks % 3 == 0
        assert max(size_of(blocks.block(i)[0]) for i in range(n_blocks)) < 2 * largest
    assert number_of_blocks(X, 3, 1e9) == 3


def test_equal_blocks_have_equal_keys():
    """So that features stay in the store from step to step."""
    one, other = (Blocks(Sharded(matrices()[0]), 4) for _ in range(2))
    keys = [key_of(one.block(i)[0]) for i in range(4)]
    assert keys == [key_of(other.block(i)[0]) for i in range(4)]
    assert len(set(keys)) == 4
    changed = one.block(0)[0].copy()
    changed.data[3] += 1
    assert key_of(changed) != keys[0]
    assert key_of(np.zeros(4, np.int32)) != key_of(np.zeros(2, np.int64))


def test_threads_read_the_matrices_in_place():
    whole = Sharded(*matrices())
    rows = np.array([3, 1], np.int32)
    found, places = whole.at(rows)
    assert all(one is other for one, other in zip(found, whole.matrices, strict=True))
    assert places is rows
    assert whole.rows_at(rows) is rows
    items = [OnRows(rows), OnRows(range(2, 9))]
    assert parallel.map(totals, items, (whole,)) == [totals(item, whole) for item in items]


def test_rows_that_are_too_many_for_32_bits_are_joined_with_64(monkeypatch):
    """A task of the root may need all rows of matrices whose blocks are short."""
    monkeypatch.setattr("umpteen.validation.arrays._MOST_SHORT", 200)
    rows, _ = deliveries(n_blocks=5, limit=0)
    X = matrices()[0]
    assert X.nnz > 200 > X[:20].nnz + 20
    for needed, dtype in ((range(20), np.int32), (range(N), np.int64)):
        (order,) = rows.orders([[OnRows(needed)]], at_once=4)
        part = delivered(order.batch, order.delivery, [], lambda each: each)
        assert part.matrices[0].indices.dtype == part.matrices[0].indptr.dtype == dtype
        np.testing.assert_array_equal(part.matrices[0].toarray(), X[: len(needed)].toarray())
