"""If these fail, the page on neural collapse shows other numbers than it says."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.sparse import csr_matrix

from papers.collapse import (
    cifar,
    curves,
    decoders,
    heads,
    projection,
    stacks,
    texts,
    theory,
    unseen,
)
from papers.contents import Figure, Table
from papers.multihead import tasks as text_tasks
from umpteen import TopK

FAST = stacks.Training(2, dim=12)


@pytest.fixture
def images(monkeypatch):
    """Ten classes, each a bright place of its own; no files are needed."""
    random = np.random.default_rng(0)

    def drawn(n):
        y = np.arange(n) % 10
        X = 0.1 * random.random((n, 1, 28, 28), dtype=np.float32)
        for image, label in zip(X, y, strict=True):
            image[0, 4 * (label // 5) * 3 + 2 : 4 * (label // 5) * 3 + 8, 5 * (label % 5) :][
                :, :5
            ] = 1
        return X, y

    parts = drawn(10_200), drawn(100)
    monkeypatch.setattr(stacks, "_originals", lambda name: parts)
    monkeypatch.setattr(stacks, "available", lambda: ["MNIST"])
    for chapter in (curves, decoders, heads, projection, unseen):
        monkeypatch.setattr(chapter, "available", lambda: ["MNIST"])
    return parts


def test_no_image_is_both_learnt_from_and_judged_by(images, monkeypatch):
    (X, y), test = images
    X = np.broadcast_to(np.arange(len(y), dtype=np.float32)[:, None, None, None], X.shape)
    given = {}

    def kept(images, classes, sizes, **options):
        given[options["random_state"]] = set(np.asarray(images)[:, 0, 0, 0].tolist())
        return stacked(images[:1], [0], {1: 1})

    stacked = stacks.stack_images
    monkeypatch.setattr(stacks, "_originals", lambda name: ((X, y), (-1 - X[:100], test[1])))
    monkeypatch.setattr(stacks, "stack_images", kept)
    stacks.stacks("MNIST", {1: 3}, seed=4)
    train, dev, tested = (given[seed] for seed in (12, 13, 14))
    assert all(len(part) for part in (train, dev, tested))
    assert len(train | dev | tested) == len(train) + len(dev) + len(tested)


def test_a_training_is_measured_at_the_moments_asked_for(images):
    task = stacks.stacks("MNIST", {1: 6, 2: 2}, test_samples={1: 1})
    seen = []
    measures = stacks.Measures(task.train.X, task.train.Y, [1, 3], also=seen.append)
    model = stacks.Training(3, dim=12).network(0).fit(task.train.X, task.train.Y, watch=measures)
    assert measures.epochs == [1, 3]
    found = measures.curves()
    assert set(found) == {
        "NC1, 1 label(s)", "NC1, 2 label(s)", "NC2, classifier", "NC2, means", "NC3",
        "NCm, 2 labels",
    }  # fmt: skip
    assert all(len(curve) == 2 and np.isfinite(curve).all() for curve in found.values())
    np.testing.assert_array_equal(seen[-1], model.features(task.train.X))
    table = curves.falls({"NC1": [4.0, 0.5]})
    assert [cell.ours for cell in table.rows[0][1:]] == [4.0, 0.5, 8.0]


def test_groups_of_pairs_are_told_apart_by_their_samples(images):
    task = stacks.stacks("MNIST", {1: 6, 2: (4, 2)}, test_samples={1: 1})
    rows = curves._group_rows(task)
    assert list(rows) == [4, 2]
    sizes = np.diff(task.train.Y.indptr)
    assert all((chosen[sizes == 1]).all() for chosen in rows.values())
    assert sum((chosen & (sizes == 2)).sum() for chosen in rows.values()) == (sizes == 2).sum()


def test_hidden_sets_are_hidden_in_training_only(images):
    missing = unseen.hidden_sets(10, seed=0)
    assert len(missing) == 11 + 30
    assert len(set(missing)) == 41
    task = stacks.stacks(
        "MNIST", {1: 4, 2: 1, 3: 1}, test_samples={1: 1, 2: 1, 3: 1}, missing=missing
    )
    assert not unseen.is_among(task.train.Y, missing).any()
    assert unseen.is_among(task.test.Y, missing).sum() == 41
    model = FAST.network(0).fit(task.train.X, task.train.Y)
    scores = unseen._scores(model, task, missing)
    assert scores["ONN (NearestSet)"][1] == 0


def test_iou_is_the_share_of_the_softmax(images):
    task = stacks.stacks("MNIST", {1: 4, 2: 1}, test_samples={1: 1, 2: 1})
    model = FAST.network(0).fit(task.train.X, task.train.Y)
    logits = (
        model.features(task.test.X) @ model.weights_["head.weight"].T + model.weights_["head.bias"]
    )
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = (softmax * task.test.Y.toarray()).sum(axis=1).mean()
    assert heads.softmax_share(model, task.test) == pytest.approx(expected, rel=1e-4)


def test_clouds_are_of_one_label_set_each():
    random = np.random.default_rng(0)
    Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]] * 5))
    features = random.normal(size=(20, 6))
    found = projection.clouds(features, Y)
    assert [cloud.name for cloud in found] == ["{0}", "{1}", "{2}", "{0, 1}"]
    assert [cloud.dashed for cloud in found] == [False, False, False, True]
    for cloud in found:
        np.testing.assert_allclose(cloud.points.mean(axis=0), cloud.mean)


def test_texts_have_labels_that_stand_alone():
    Y = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0]])
    task = text_tasks.Task("made up", csr_matrix(np.eye(7)), Y, None, None)
    X, labels = texts.small_part(task, least=2)
    assert X.toarray().argmax(axis=1).tolist() == [0, 1, 2, 3, 5]
    assert labels.toarray().tolist() == [[1, 0], [1, 0], [0, 1], [1, 1], [0, 1]]


def test_theory_and_descent_agree_on_the_page():
    parts = list(theory.sections(True)[0].measure())
    assert [float(row[2]) < 1e-6 for row in parts[0].rows] == [True] * 3
    assert [float(row[3]) > 0.9999 for row in parts[0].rows] == [True] * 3
    for row in parts[1].rows:
        assert (row[1] == "zero") == (float(row[0]) > 1)
        assert (float(row[2]) < 1e-3) == (row[1] == "zero")


def test_the_page_in_very_small(images, monkeypatch):
    """All image chapters run, and what they give can be drawn."""
    for chapter in (curves, decoders, heads, projection, unseen):
        monkeypatch.setattr(chapter, "Training", lambda epochs, **options: FAST)
    section = decoders.sections(True)[0]
    parts = list(section.measure())
    assert sum(isinstance(part, Table) for part in parts) == 3
    picture = next(iter(projection.sections(True)[0].measure()))
    assert isinstance(picture, Figure)
    assert picture.svg.startswith("<?xml")


def test_the_error_counts_samples_whose_highest_scores_are_not_their_labels():
    Y = csr_matrix([[1, 0, 0], [1, 0, 1], [0, 1, 1], [0, 0, 1]])
    best = np.array([[0, 1], [2, 0], [2, 0], [1, 2]])

    class Model:
        def predict_topk(self, X, k):
            assert k == 2
            return TopK(best, np.zeros((4, 2), np.float32))

    wrong = [set(best[row, : Y[row].nnz]) != set(Y[row].indices) for row in range(4)]
    assert wrong == [False, False, True, True]
    assert cifar.error(Model(), None, Y) == 50.0


def test_stacks_of_other_seeds_are_other_images(monkeypatch):
    random = np.random.default_rng(0)
    part = random.random((80, 3, 32, 32), dtype=np.float32), np.arange(80) % 10
    monkeypatch.setattr(cifar.cifar, "images", lambda per_class: (part, part))
    one, same, other = (cifar.stacks({1: 2, 2: 1}, [(0, 1)], seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.train.X, same.train.X)
    assert abs(one.train.X - other.train.X).max() > 0.1
    pairs = [np.array(made.Y[:, 0].multiply(made.Y[:, 1]).sum()) for made in (one.train, one.test)]
    assert pairs == [0, 1]  # missing in training only
