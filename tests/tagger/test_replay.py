"""The samples that a tagger keeps, and the names that it knows them by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsError
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.replay import Replay

rows = st.lists(st.integers(0, 4), max_size=12)
labels = st.lists(st.sets(st.integers(0, 3)), min_size=12, max_size=12)


def made(kinds, sets):
    """Rows that are the same where their kind is; kind 4 has no features."""
    table = np.eye(5, 4, dtype=np.float32)[kinds].reshape(len(kinds), 4)
    Y = np.zeros((len(kinds), 4), np.float32)
    for row in range(len(kinds)):
        Y[row, list(sets[row])] = 1
    texts = [f"{kind} {row}" for row, kind in enumerate(kinds)]
    return csr_matrix(table), csr_matrix(Y), texts


@given(rows, labels, rows, labels)
def test_every_different_sample_is_joined_once_with_all_its_labels(old, sets, new, more):
    replay = Replay(*made(old, sets))
    X, Y, texts = made(new, more)
    joined = replay.joined(X, Y, texts)
    given_ = {kind: set() for kind in new}
    for kind, own in zip(new, more, strict=False):
        given_[kind] |= own
    expected = [(kind, own | given_.get(kind, set())) for kind, own in zip(old, sets, strict=False)]
    expected += [(kind, given_[kind]) for kind in dict.fromkeys(new) if kind not in old]
    assert [int(text.split()[0]) for text in joined.texts] == [kind for kind, _ in expected]
    kinds = [row.argmax() if row.any() else 4 for row in joined.X.toarray()]
    assert kinds == [kind for kind, _ in expected]
    assert [set(np.flatnonzero(row)) for row in joined.Y.toarray()] == [own for _, own in expected]
    assert joined.Y.dtype == joined.X.dtype == np.float32
    assert set(joined.Y.data) <= {1.0}


@given(st.integers(0, 40), st.integers(0, 1000))
def test_half_of_what_is_drawn_has_the_rarest_labels(most, seed):
    random = np.random.default_rng(seed)
    Y = csr_matrix((random.random((30, 6)) < [0.6, 0.4, 0.3, 0.2, 0.1, 0.05]).astype(np.float32))
    X = csr_matrix(np.arange(1, 31, dtype=np.float32)[:, None])
    kept = Replay.drawn(X, Y, [str(i + 1) for i in range(30)], most, seed)
    numbers = kept.X.toarray().ravel().astype(int) - 1
    assert len(numbers) == min(most, 30)
    assert (np.diff(numbers) > 0).all()
    assert kept.texts == [str(i + 1) for i in numbers]
    np.testing.assert_array_equal(kept.Y.toarray(), Y.toarray()[numbers])
    counts = Y.toarray().sum(axis=0)
    rarest = [counts[row.indices].min() if row.nnz else np.inf for row in Y]
    for row in range(30):
        if sum(other <= rarest[row] for other in rarest) <= most // 2:
            assert row in numbers, "so rare that it must be among the first half"


@given(st.integers(1, 30), st.integers(0, 100))
def test_what_is_drawn_again_goes_by_all_samples_that_a_label_has(most, seed):
    """Among those that were kept, rare labels seem frequent."""
    X = csr_matrix(np.arange(1, 31, dtype=np.float32)[:, None])
    Y = csr_matrix(np.repeat(np.eye(3, dtype=np.float32), 10, axis=0))
    kept = Replay(X, Y, [str(i) for i in range(30)])
    less = kept.redrawn(most, seed, np.array([1000, 10, 500]))
    numbers = less.X.toarray().ravel().astype(int) - 1
    assert len(less) == most
    assert less.texts == [str(i) for i in numbers]
    assert np.count_nonzero(numbers // 10 == 1) >= min(most // 2, 10)
    assert kept.redrawn(30, seed, np.array([1, 1, 1])) is kept


names = st.lists(st.text(min_size=1, max_size=3), unique=True, min_size=1, max_size=8)


@given(names, st.data())
def test_ids_never_change(known, data):
    first = LabelNames.of([known])
    assert first.names == sorted(known)
    gone = data.draw(st.sets(st.sampled_from(known)))
    left = first.without(gone)
    assert left.ids == {name: i for name, i in first.ids.items() if name not in gone}
    again = left.with_new(sorted(gone))
    assert {name: again.ids[name] for name in left.ids} == left.ids
    for i, name in enumerate(sorted(gone)):
        assert again.ids[name] == len(known) + i
    assert again.names[: len(known)] == first.names
    table = again.matrix([[name] for name in again.ids]).toarray()
    assert [int(np.flatnonzero(row)[0]) for row in table] == list(again.ids.values())


def test_names_that_only_have_a_text_come_last():
    assert LabelNames.of([["z", "a"]], {"b": "", "a": ""}).names == ["a", "z", "b"]


def test_unknown_names_are_refused_with_what_was_meant():
    known = LabelNames.of([["physics", "chemistry"]])
    with pytest.raises(LabelsError, match="'fysics' is not among the 2 labels; did you mean 'phys"):
        known.matrix([["physics"], ["fysics"]])
    with pytest.raises(LabelsError, match=r"'xyz' is not among the 2 labels, such as '"):
        known.id_of("xyz")
