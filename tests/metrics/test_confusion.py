"""If these fail, people mend labels that were never confused, and miss those that are."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from umpteen import TopK, metrics
from umpteen.errors import ParameterError
from umpteen.metrics import confusion

N_LABELS = 6
ids = st.integers(0, N_LABELS - 1)
samples = st.lists(
    st.tuples(st.lists(ids, unique=True, max_size=4), st.lists(st.integers(-1, 5), max_size=4)),
    max_size=12,
)


def to_arrays(samples):
    Y = np.zeros((len(samples), N_LABELS))
    labels = np.full((len(samples), 4), -1)
    for i, (relevant, ranking) in enumerate(samples):
        Y[i, relevant] = 1
        labels[i, : len(ranking)] = ranking
    return csr_array(Y), TopK(labels, np.zeros(labels.shape))


def literal(samples):
    """One sample, one wrong answer, one miss at a time."""
    pairs, misses = Counter(), Counter()
    for relevant, ranking in samples:
        answered = {label for label in ranking[: len(relevant)] if label >= 0}
        missed = set(relevant) - answered
        misses.update(missed)
        pairs.update((wrong, miss) for wrong in answered - set(relevant) for miss in missed)
    order = sorted(pairs, key=lambda pair: (-pairs[pair], pair))
    return [(*pair, pairs[pair], pairs[pair] / misses[pair[1]]) for pair in order]


@given(samples, st.sampled_from([1, 3, 100]), st.sampled_from([1, 5, 1 << 22]))
def test_pairs_are_the_definition(samples, n, block):
    Y, top = to_arrays(samples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confusion, "_ENTRIES_PER_BLOCK", block)
        found = metrics.most_confused(Y, top, n)
    rows = [(pair.given, pair.missed, pair.count, pair.share) for pair in found]
    assert rows == literal(samples)[:n]


def test_perfect_answers_confuse_nothing():
    Y = csr_array(np.eye(4))
    assert metrics.most_confused(Y, Y) == []


def test_many_labels_stay_sparse():
    """A dense table of these labels would need 40 TB."""
    n_labels = 1 << 21
    ids = np.random.default_rng(0).integers(0, n_labels, (2, 1000))
    pairs = metrics.most_confused(
        [[label] for label in ids[0]] + [[7], [7]],
        TopK(np.append(ids[1], [9, 9])[:, None], np.ones((1002, 1))),
        n=1,
    )
    assert pairs[0] == confusion.Confused(given=9, missed=7, count=2, share=1.0)


def test_n_is_a_number():
    with pytest.raises(ParameterError, match="n=0"):
        metrics.most_confused([[0]], TopK([[1]], [[0.5]]), n=0)
