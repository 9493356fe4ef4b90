"""If these fail, the page on Multi-Head Encoding compares heads on wrong samples or wrong terms."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from papers import cifar
from papers.contents import Table
from papers.multihead import (
    bottleneck,
    decomposition,
    labels,
    powersets,
    settings,
    several,
    tasks,
    worker,
)
from papers.multihead import cifar as multihead_cifar
from papers.sets import rarest_label
from umpteen.data.dataset import Split
from umpteen.multihead import LabelCode


def table(seed, n=30, n_labels=12, density=0.2):
    drawn = random_array(
        (n, n_labels), density=density, rng=np.random.default_rng(seed), format="csr"
    )
    return csr_matrix(drawn > 0, dtype=np.float32)


def small_task(n=240, n_labels=8, several=False):
    """A feature for each label; with `several`, samples have two of them."""
    random = np.random.default_rng(0)
    classes = np.arange(n) % n_labels
    Y = np.eye(n_labels, dtype=np.float32)[classes]
    if several:
        Y[np.arange(n), (classes + random.integers(1, n_labels, n)) % n_labels] = 1
    X = csr_matrix(Y)
    answers = csr_matrix(Y) if several else classes
    return tasks.Task("small", X[:200], answers[:200], X[200:], answers[200:])


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_class_of_a_sample_is_its_rarest_label(seed, least):
    Y = table(seed)
    counts = Y.getnnz(axis=0)
    for row, found in enumerate(rarest_label(Y, counts, least).tolist()):
        mine = [label for label in Y[row].indices.tolist() if counts[label] >= least]
        assert found == min(mine, key=lambda label: (counts[label], label), default=-1)


def test_classes_are_learnt_from_and_tested_on_with_the_same_numbers(monkeypatch):
    Y, Y_test = table(0, n=60), table(1, n=40)
    task = tasks.Task("made up", csr_matrix(np.eye(60)), Y, csr_matrix(np.eye(40)), Y_test)
    monkeypatch.setattr(tasks, "texts_task", lambda name, quick: task)
    tasks.classes_task.cache_clear()
    found = tasks.classes_task("made up", True)
    tasks.classes_task.cache_clear()
    counts = Y.getnnz(axis=0)
    train, test = (rarest_label(labels, counts, 3) for labels in (Y, Y_test))
    known = sorted(set(train.tolist()) - {-1})
    np.testing.assert_array_equal(np.unique(found.Y), np.arange(len(known)))
    rows = np.asarray(found.X.argmax(axis=1)).ravel()
    assert [known[y] for y in found.Y] == train[rows].tolist()
    test_rows = np.asarray(found.X_test.argmax(axis=1)).ravel()
    assert [known[y] for y in found.Y_test] == test[test_rows].tolist()
    assert set(test_rows.tolist()) == {row for row, y in enumerate(test.tolist()) if y in known}


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_trimming_takes_the_rarest_labels(seed, rate):
    Y = table(seed, density=0.4)
    trimmed = labels.without_tail(Y, rate)
    assert trimmed.shape == Y.shape
    counts, left = Y.getnnz(axis=0), trimmed.getnnz(axis=0)
    gone = np.sort(counts)[: int(rate * len(counts))]
    assert left.sum() == counts.sum() - gone.sum()
    kept = left > 0
    np.testing.assert_array_equal(left[kept], counts[kept])
    assert (trimmed.data == 1).all()


def test_centroids_are_of_each_label():
    task = small_task()
    found = decomposition.centroids(task)
    np.testing.assert_allclose(found.toarray(), np.eye(8), atol=1e-6)
    assert (decomposition.centroids(small_task(several=True)).diagonal() > 0).all()


def test_seeds_side_by_side_are_trained_as_if_alone():
    alone, both = (bottleneck.trained(6, 1, "softmax", True, 50, n, rate=0.1) for n in (1, 2))
    assert [v[0] for v in alone.accuracy] == [v[0] for v in both.accuracy]


def test_a_section_of_it(monkeypatch):
    """Random against clustered labels, on samples that take no time."""
    monkeypatch.setattr(decomposition, "classes_task", lambda name, quick: small_task())
    monkeypatch.setattr(decomposition, "available", lambda names: names)
    monkeypatch.setattr(decomposition, "texts_task", lambda name, quick: small_task(several=True))
    training = settings.Training(2, batch_size=32, dim=16)
    parts = list(decomposition._orders(True, training, training)) + list(
        decomposition._lengths(True, training)
    )
    tables = [part for part in parts if isinstance(part, Table)]
    assert [len(table.rows) for table in tables] == [8, 8]
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)


def test_weights_of_each_head():
    weights = {name: worker.measure(name, 200, steps=1)["weights"] for name in worker.HEADS}
    n_groups = LabelCode.descending(200).n_groups[0]
    assert weights == {
        "full": 512 * 200,
        "MHP": 512 * (15 + 14),
        "MHC": 512 * n_groups + 512 * 256 + 200 * 256,
        "MHS": 512 * 200,
    }


def test_one_hidden_unit_needs_the_right_loss():
    """Theorem 3 in small: 6 classes by one number and a bias."""
    softmax = bottleneck.trained(6, 1, "softmax", True, 300, 1, rate=0.2)
    frobenius = bottleneck.trained(6, 1, "frobenius", True, 300, 1, rate=0.2)
    assert (softmax.accuracy[-1] == 100).all()
    assert (frobenius.accuracy[-1] <= 50).all()
    assert (softmax.rank[-1] > frobenius.rank[-1]).all()


def test_some_images_of_each_class():
    X, y = np.arange(40, dtype=np.float32).reshape(40, 1, 1, 1), np.arange(40) // 10
    split = Split(Y=csr_matrix(np.eye(4, dtype=np.float32)[y]), X=X)
    images, classes = cifar._some(split, 3, 0)
    assert np.bincount(classes).tolist() == [3, 3, 3, 3]
    assert (images.ravel() // 10 == classes).all()
    assert not (np.diff(classes) >= 0).all()  # in random order


def test_a_stack_is_of_images_whose_kinds_are_its_digits():
    images = np.arange(30, dtype=np.float32)[:, None, None, None] * np.ones((1, 3, 32, 32))
    kinds = np.arange(30) % 10
    made, classes = multihead_cifar._stacked((images.astype(np.float32), kinds), 3, 20, 0)
    assert made.shape == (20, 9, 16, 16)
    own = made[:, ::3, 0, 0].astype(int) % 10  # the kind of each image, by its grey
    np.testing.assert_array_equal(classes, own @ [100, 10, 1])
    assert classes[-1] == 999


@pytest.mark.parametrize("n_labels", [3_721, 8_998])
def test_several_codes_have_a_tenth_of_the_parameters(n_labels):
    sizes = {
        name: each.head.build(64, n_labels).n_parameters
        for name, each in several.heads(n_labels).items()
    }
    full = sizes.pop("full")
    one, summed, codes, longer, share = sizes.values()
    assert one < summed == codes == longer <= share <= full / 10


def test_thresholds_are_the_best_on_samples_that_were_not_learned():
    task, training = small_task(several=True), settings.QUICK
    found = powersets.chosen_thresholds(task, training, 0)
    assert set(found) == set(powersets._MEASURES)
    rows = np.random.default_rng(0).permutation(200)
    others = np.sort(rows[:20])
    model = training.network(powersets.blueprint(powersets.FullHead), 0)
    model.fit(task.X[np.sort(rows[20:])], task.Y[np.sort(rows[20:])])
    top = model.predict_topk(task.X[others], k=8)
    for measure, score in powersets._MEASURES.items():
        each = [score(task.Y[others], powersets.above(top, t, task.Y[others]))
                for t in powersets._THRESHOLDS]  # fmt: skip
        assert found[measure] == powersets._THRESHOLDS[int(np.argmax(each))]


def test_a_set_without_texts_has_its_own_features(monkeypatch):
    """bibtex is such a set."""
    X = csr_matrix(np.eye(6, dtype=np.float32))
    part = Split(csr_matrix(np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1, 0]]), X=X)
    monkeypatch.setattr(tasks, "train_and_test", lambda name: (part, part))
    found = tasks.texts_task("words only", False)
    np.testing.assert_array_equal(found.X.toarray(), X.toarray())
    np.testing.assert_array_equal(found.Y.toarray(), part.Y.toarray())
