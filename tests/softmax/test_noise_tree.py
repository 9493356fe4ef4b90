"""The noise model: what users of it, first of all adversarial softmax, rely on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_expit
from scipy.stats import chisquare
from sklearn.base import clone

import umpteen as um
from umpteen.errors import (
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    NotFittedError,
    ParameterError,
)
from umpteen.softmax import NoiseTree, noise_tree


def families(n_samples, n_classes, n_features=24, seed=0):
    """Classes of a few families, each with its own kind of sample, and a long tail."""
    random = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_classes + 1)
    y = random.choice(n_classes, n_samples, p=frequency / frequency.sum())
    family = random.integers(6, size=n_classes)
    centres = 3 * random.standard_normal((6, n_features))[family]
    centres += random.standard_normal((n_classes, n_features))
    X = centres[y] + random.standard_normal((n_samples, n_features))
    return X.astype(np.float32), y


def tables(tree, X):
    return np.vstack([table for _, table in tree.log_prob_all(X)])


def literal_tree(Z, y, classes, regularizer):
    """{class: log-probabilities of all rows}: Section 3 of the paper, node by node."""
    if len(classes) == 1:
        return {classes[0]: np.zeros(len(Z))}
    rows = np.hstack([Z, np.ones((len(Z), 1))]).astype(np.float64)
    own = np.isin(y, classes)
    sums = np.array([rows[y == label].sum(axis=0) for label in classes])
    centred = sums[:, :-1] / np.maximum(sums[:, -1:], 1) - rows[own, :-1].mean(axis=0)
    centred[sums[:, -1] == 0] = 0
    _, vectors = np.linalg.eigh((centred * sums[:, -1:]).T @ centred)
    gain_of, right = centred @ vectors[:, -1], None
    while True:
        order = np.argsort(gain_of, kind="stable")
        first = len(order) // 2
        first += len(order) % 2 == 1 and gain_of[order[first]] <= 0
        right, before = set(np.array(classes)[order[first:]]), right
        if right == before:
            break
        sign = np.where([label in right for label in y[own]], 1.0, -1.0)

        def loss(theta, sign=sign):
            return regularizer * theta @ theta - log_expit(sign * (rows[own] @ theta)).sum()

        theta = minimize(loss, np.zeros(rows.shape[1]), options={"gtol": 1e-7}).x
        gain_of = sums @ theta
    scores = rows @ theta
    found = {}
    for part, way in ((right, 1), (set(classes) - right, -1)):
        below = literal_tree(Z, y, sorted(part), regularizer)
        found |= {label: logs + log_expit(way * scores) for label, logs in below.items()}
    return found


@pytest.mark.parametrize("n_classes", [2, 5, 8])
def test_it_is_the_tree_of_the_paper(n_classes):
    X, y = families(120, n_classes, n_features=5, seed=n_classes)
    tree = NoiseTree(dim=3, regularizer=0.5).fit(X, y, n_classes=n_classes)
    expected = literal_tree(tree.reduce(X), y, list(range(n_classes)), 0.5)
    for label, logs in expected.items():
        np.testing.assert_allclose(tree.log_prob(X, np.full(120, label)), logs, atol=2e-3)
    assert tree.log_likelihood_ == pytest.approx(tree.log_prob(X, y).mean(), abs=1e-5)


@settings(max_examples=25)
@given(st.integers(1, 70), st.integers(0, 100))
def test_probabilities_add_up_to_one(n_classes, seed):
    """Any number of classes, with classes that have no sample."""
    X, y = families(60, n_classes, seed=seed)
    tree = NoiseTree(dim=4, regularizer=0.1).fit(X, y, n_classes=n_classes)
    table = tables(tree, X)
    assert table.shape == (60, n_classes)
    assert np.isfinite(table).all()
    np.testing.assert_allclose(np.exp(table.astype(np.float64)).sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(tree.log_prob(X, y), table[np.arange(60), y], atol=1e-5, rtol=1e-5)
    assert sorted(tree.label_of_[tree.label_of_ >= 0]) == list(range(n_classes))
    assert tree.label_of_[tree.leaf_of_].tolist() == list(range(n_classes))


def test_classes_are_drawn_as_often_as_they_are_probable():
    X, y = families(500, 45)
    tree = NoiseTree(regularizer=3).fit(X, y)
    few = X[:4]
    labels, logs = tree.sample_with_log_prob(few, 30_000, rng=1)
    np.testing.assert_allclose(logs, np.take_along_axis(tables(tree, few), labels, 1), atol=1e-4)
    for row, table in enumerate(tables(tree, few)):
        expected = 30_000 * np.exp(table.astype(np.float64))
        counts = np.bincount(labels[row], minlength=45)
        common = expected >= 5
        counts = np.append(counts[common], counts[~common].sum())
        expected = np.append(expected[common], expected[~common].sum())
        assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_draws_follow_the_generator_that_is_passed():
    X, y = families(100, 30)
    tree = NoiseTree(regularizer=30).fit(X, y)
    np.testing.assert_array_equal(tree.sample(X, 3, rng=5), tree.sample(X, 3, rng=5))
    rng = np.random.default_rng(5)
    first, second = tree.sample(X, 3, rng), tree.sample(X, 3, rng)
    np.testing.assert_array_equal(first, tree.sample(X, 3, rng=5))
    assert (first != second).any()
    assert first.shape == (100, 3)
    assert first.dtype == np.int32


def test_unseen_samples_are_more_probable_than_by_the_frequency_of_their_class():
    X, y = families(6000, 150)
    tree = NoiseTree().fit(X[:4500], y[:4500], n_classes=150)
    counts = np.bincount(y[:4500], minlength=150) + 1.0
    by_frequency = np.log(counts / counts.sum())[y[4500:]].mean()
    assert tree.log_prob(X[4500:], y[4500:]).mean() > by_frequency + 1.5


def test_alternation_is_better_than_the_first_split():
    X, y = families(3000, 200, seed=3)
    once, often = (NoiseTree(regularizer=1, max_rounds=rounds).fit(X, y) for rounds in (1, 20))
    assert once.n_rounds_.max() == 1
    assert often.n_rounds_.max() > 1
    assert often.log_likelihood_ > once.log_likelihood_ + 0.01


def test_a_wide_beam_is_exact_and_a_narrow_one_nearly():
    X, y = families(800, 100)
    tree, few = NoiseTree().fit(X, y, n_classes=100), X[:50]
    table = tables(tree, few)
    expected = np.lexsort((np.broadcast_to(np.arange(100), table.shape), -table), axis=1)[:, :7]
    wide, narrow = tree.topk(few, 7, beam_width=64), tree.topk(few, 7, beam_width=8)
    np.testing.assert_array_equal(wide.labels, expected)
    np.testing.assert_allclose(wide.scores, np.take_along_axis(table, expected, axis=1), atol=1e-5)
    assert (narrow.labels[:, 0] == expected[:, 0]).mean() > 0.9
    everything = tree.topk(few, 10**9)
    assert everything.k == 100
    assert (everything.labels >= 0).all()


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(noise_tree, "_BLOCK_ROWS", 16)
    X, y = families(400, 60)
    one, many = (NoiseTree(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3))
    for name in ("weights_", "biases_", "label_of_", "leaf_of_", "n_rounds_", "log_likelihood_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
    np.testing.assert_array_equal(one.sample(X, 4, rng=0), many.sample(X, 4, rng=0))
    np.testing.assert_array_equal(one.log_prob(X, y), many.log_prob(X, y))
    np.testing.assert_array_equal(tables(one, X), tables(many, X))
    assert one.topk(X, 5) == many.topk(X, 5)


def test_blocks_of_all_probabilities_hold_no_more_than_they_may(monkeypatch):
    X, y = families(100, 60)
    tree = NoiseTree().fit(X, y, n_classes=60)
    whole = tables(tree, X)
    monkeypatch.setattr(noise_tree, "_BLOCK_SCORES", 60 * 7)
    blocks = list(tree.log_prob_all(X))
    assert [rows.stop for rows, _ in blocks] == [*range(7, 100, 7), 100]
    assert all(len(table) == rows.stop - rows.start for rows, table in blocks)
    np.testing.assert_array_equal(np.vstack([table for _, table in blocks]), whole)


def test_a_saved_tree_answers_with_the_same_bits(tmp_path):
    X, y = families(300, 37)
    tree = NoiseTree(dim=5).fit(X, y)
    tree.save(tmp_path / "tree")
    back = um.load(tmp_path / "tree")
    assert back.get_params() == tree.get_params()
    np.testing.assert_array_equal(tables(back, X), tables(tree, X))
    np.testing.assert_array_equal(back.sample(X, 2, rng=0), tree.sample(X, 2, rng=0))
    assert back.topk(X, 3) == tree.topk(X, 3)


def test_sparse_and_dense_features_agree():
    X, y = families(300, 20)
    X[np.abs(X) < 1] = 0
    dense, sparse = NoiseTree(dim=6).fit(X, y), NoiseTree(dim=6).fit(csr_matrix(X), y)
    np.testing.assert_array_equal(tables(dense, X), tables(dense, csr_matrix(X)))
    assert sparse.log_likelihood_ == pytest.approx(dense.log_likelihood_, abs=0.05)


def test_several_labels_per_sample_count_as_several_samples():
    X, y = families(100, 12)
    other = (y + 1) % 12
    twice = NoiseTree().fit(X, [[int(a), int(b)] for a, b in zip(y, other, strict=True)])
    logs = twice.log_prob(X, np.stack([y, other], axis=1))
    assert logs.shape == (100, 2)
    assert twice.log_likelihood_ == pytest.approx(logs.mean(), abs=1e-5)


def test_one_class_is_certain():
    tree = NoiseTree().fit([[1.0], [2.0]], [0, 0])
    assert tree.log_prob([[5.0]], [0]).tolist() == [0]
    assert tree.sample([[1.0], [2.0]], 3, rng=0).tolist() == [[0, 0, 0], [0, 0, 0]]
    top = tree.topk([[1.0]], 2)
    assert (top.labels.tolist(), top.scores.tolist()) == ([[0]], [[0]])
    assert tables(tree, [[1.0]]).tolist() == [[0]]


def test_features_that_tell_nothing_leave_the_frequencies():
    """With equal rows there is only the bias, which the regulariser hardly holds back here."""
    y = np.repeat([0, 1, 2], [60, 30, 10])
    tree = NoiseTree(regularizer=1e-6).fit(np.full((100, 4), 0.1), y)
    np.testing.assert_allclose(np.exp(tables(tree, np.zeros((1, 4))))[0], [0.6, 0.3, 0.1], 1e-4)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_empty_rows_and_fewer_samples_than_classes_and_features_than_dim(form):
    X = form(np.array([[0, 0], [1, 0], [0, 0], [0, 1]], np.float32))
    tree = NoiseTree().fit(X, [8, 1, 2, 2])
    table = tables(tree, X)
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1, atol=1e-5)
    assert (np.exp(table) > 0).all()
    assert tree.topk(X[:1], 1).labels[0, 0] in (2, 8)


def test_a_class_without_samples_is_improbable_but_possible():
    X, y = families(2000, 30)
    y[y == 7] = 8
    tree = NoiseTree().fit(X, y, n_classes=31)
    probability = np.exp(tables(tree, X))[:, [7, 30]]
    assert (probability > 0).all()
    assert probability.mean() < 0.01


@pytest.mark.parametrize("regularizer", [1e-12, 1e12])
def test_hardly_any_and_far_too_much_regularisation_give_numbers(regularizer):
    X, y = families(60, 40)
    tree = NoiseTree(regularizer=regularizer).fit(1e6 * X, y, n_classes=40)
    table = tables(tree, 1e6 * X)
    assert np.isfinite(table).all()
    np.testing.assert_allclose(np.exp(table.astype(np.float64)).sum(axis=1), 1, atol=1e-4)


def test_no_rows_are_an_empty_answer():
    X, y = families(50, 6)
    tree, none = NoiseTree().fit(X, y), np.empty((0, 24), np.float32)
    assert tree.sample(none, 3).shape == (0, 3)
    assert tree.log_prob(none, []).shape == (0,)
    assert len(tree.topk(none, 2)) == 0
    assert [table.shape for _, table in tree.log_prob_all(none)] == [(0, tree.n_classes_)]


def test_it_does_not_change_what_it_is_given():
    X, y = families(50, 6)
    before = X.copy(), y.copy()
    NoiseTree().fit(X, y).sample(X, 2)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"dim": 0}, {"dim": 2.5}, {"regularizer": 0}, {"regularizer": -1}, {"regularizer": "much"},
        {"regularizer": np.inf}, {"regularizer": np.nan}, {"max_rounds": 0}, {"n_jobs": 0},
        {"random_state": "x"}, {"verbose": 3},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        NoiseTree(**wrong).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "n_classes", "error"),
    [
        ([[1.0], [np.nan]], [0, 1], None, FeaturesError),
        ([1.0, 2.0], [0, 1], None, FeaturesError),
        (np.empty((0, 2)), [], None, FeaturesError),
        ([[1.0], [2.0]], [0], None, LabelsShapeError),
        ([[1.0], [2.0]], [0, -1], None, LabelsError),
        ([[1.0], [2.0]], [0, 0.5], None, LabelsError),
        ([[1.0], [2.0]], [0, 3], 3, LabelsError),
        ([[1.0], [2.0]], [[], []], 3, LabelsError),
        ([[1.0], [2.0]], [0, 1], 0, ParameterError),
    ],
)
def test_bad_training_data_is_refused(X, y, n_classes, error):
    with pytest.raises(error):
        NoiseTree().fit(X, y, n_classes=n_classes)


def test_bad_questions_are_refused():
    X, y = families(50, 6)
    tree = NoiseTree().fit(X, y, n_classes=6)
    with pytest.raises(FeaturesError, match="expecting 24"):
        tree.sample(X[:, :3], 1)
    with pytest.raises(LabelsError, match="ids end at 5"):
        tree.log_prob(X, np.full(50, 6))
    with pytest.raises(LabelsError, match="ids start at 0"):
        tree.log_prob(X, np.full(50, -1))
    with pytest.raises(LabelsShapeError, match=r"\(50,\)"):
        tree.log_prob(X, y[:49])
    with pytest.raises(ParameterError, match="n=0"):
        tree.sample(X, 0)
    with pytest.raises(ParameterError, match="rng='dice'"):
        tree.sample(X, 1, rng="dice")
    with pytest.raises(ParameterError, match="beam_width=0"):
        tree.topk(X, 1, beam_width=0)
    with pytest.raises(NotFittedError):
        clone(tree).sample(X, 1)


def test_a_refused_fit_leaves_the_tree_as_it_was():
    X, y = families(50, 6)
    tree = NoiseTree().fit(X, y)
    before = tables(tree, X)
    with pytest.raises(LabelsShapeError):
        tree.fit(X, y[:-1])
    np.testing.assert_array_equal(tables(tree, X), before)
