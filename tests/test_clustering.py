"""If these fail, similar labels do not share a leaf, or a tree depends on who computes it."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.clustering import Cut, arrange, cut_all

LAYERS = [np.array([0, 30, 60]), np.array([0, 10, 30, 45, 60])]


def random_rows(n=60, seed=0):
    random = np.random.default_rng(seed)
    table = random.normal(size=(n, 12)) * (random.random((n, 12)) < 0.4)
    return csr_matrix(table, dtype=np.float32)


def read_only(values):
    order = np.array(values, np.int32)
    order.setflags(write=False)
    return order


class FromTheLast:
    """An engine that begins with the last task."""

    width = 1

    def map(self, function, items, shared):
        yield from [function(item, *shared) for item in items[::-1]][::-1]


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_who_computes_the_cuts_makes_no_difference(n_jobs, monkeypatch):
    """Tasks return their part and write nowhere: not even into the order that they are given."""
    rows, start = random_rows(), read_only(range(60))
    with monkeypatch.context() as patch, parallel.engine(FromTheLast()):
        patch.setattr("umpteen.clustering.stays_here", lambda *_: False)
        expected = arrange(rows, start, LAYERS, seed=3)
    np.testing.assert_array_equal(arrange(rows, start, LAYERS, seed=3, n_jobs=n_jobs), expected)
    assert (arrange(rows, start, LAYERS, seed=4, n_jobs=n_jobs) != expected).any()


@pytest.mark.parametrize(("width", "few"), [(8, 1000), (2, 0)], ids=["few rows", "few nodes"])
def test_what_is_not_faster_elsewhere_is_not_sent(width, few, monkeypatch):
    """Tasks of milliseconds take longer on their way, and as many cores as here are no gain."""
    monkeypatch.setattr("umpteen.sharding._FEW_VALUES", few)

    class Refusing:
        def map(self, function, items, shared):
            raise AssertionError

    Refusing.width = width
    rows, start = random_rows(), read_only(range(60))
    with parallel.engine(Refusing()):
        order = arrange(rows, start, LAYERS, seed=3, n_jobs=2)
    np.testing.assert_array_equal(order, arrange(rows, start, LAYERS, seed=3))


def level_by_level(rows, order, layers, seed):
    """The literal version: all cuts of a level, then those of the next."""
    coarse = np.array([0, len(order)])
    for fine in layers:
        pending = [fine[i : j + 1] for i, j in pairwise(np.searchsorted(fine, coarse))]
        while pending := [borders for borders in pending if len(borders) > 2]:
            for borders in pending:
                start, split, end = borders[[0, len(borders) // 2, -1]].tolist()
                own = (seed * 1_000_003 + start * 8191 + end) & 0x7FFFFFFF
                cut = Cut(start, split, end, own)
                order = cut_all(rows, order, [cut], max_rounds=20, n_jobs=1)
            middles = [len(borders) // 2 for borders in pending]
            halves = zip(pending, middles, strict=True)
            pending = [half for b, m in halves for half in (b[: m + 1], b[m:])]
        coarse = fine
    return order


@pytest.mark.parametrize("size", [3, 20])  # parts with cuts of their own, or none
def test_cuts_are_those_of_the_literal_version(size):
    rows, start = random_rows(600), read_only(np.random.default_rng(1).permutation(600))
    fine = np.unique([0, *range(7, 590, size), 600])
    layers = [fine[::9] if 600 in fine[::9] else np.append(fine[::9], 600), fine]
    cuts = []
    found = arrange(rows, start, layers, seed=2, done=cuts.append)
    np.testing.assert_array_equal(found, level_by_level(rows, start, layers, seed=2))
    assert sum(cuts) == len(fine) - 2


def test_finer_borders_arrange_within_coarser_ones():
    rows, start = random_rows(), read_only(range(60))
    coarse, fine = (arrange(rows, start, LAYERS[:n], seed=0) for n in (1, 2))
    assert sorted(fine) == list(range(60))
    for begin, end in pairwise(LAYERS[0]):
        assert set(fine[begin:end]) == set(coarse[begin:end])
    assert (fine != coarse).any()


def test_clusters_that_are_plain_to_see_are_found_and_counted():
    rows = csr_matrix(np.eye(4, dtype=np.float32)[np.arange(60) % 4])
    cuts = []
    order = arrange(rows, read_only(range(60)), [np.arange(0, 61, 15)], seed=0, done=cuts.append)
    assert [len(set(cluster % 4)) for cluster in np.split(order, 4)] == [1, 1, 1, 1]
    assert sum(cuts) == 3


def test_a_cut_moves_only_what_is_between_its_ends():
    rows, start = random_rows(), read_only(np.random.default_rng(1).permutation(60))
    order = cut_all(rows, start, [Cut(20, 27, 40, seed=5)], max_rounds=20, n_jobs=1)
    np.testing.assert_array_equal(order[:20], start[:20])
    np.testing.assert_array_equal(order[40:], start[40:])
    assert set(order[20:40]) == set(start[20:40])
    assert (order != start).any()
