"""The regulariser that is found must be the one that unseen samples like, level by level."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_expit

import umpteen as um
from umpteen.progress import progress_bar
from umpteen.softmax import NoiseTree, tree_fitting
from umpteen.softmax.tree_fitting import (
    GRID,
    choose_regularizers,
    depth_of,
    grow,
    samples_by_class,
    some_nodes,
    split_samples,
)
from umpteen.validation import check_labels


def families(n_samples, n_classes, n_features=24, seed=0):
    """Classes of six families, and a long tail."""
    random = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_classes + 1)
    y = random.choice(n_classes, n_samples, p=frequency / frequency.sum())
    centres = 3 * random.standard_normal((6, n_features))[random.integers(6, size=n_classes)]
    X = centres[y] + random.standard_normal((n_samples, n_features))
    return X.astype(np.float32), y


def tables(tree, X):
    return np.vstack([table for _, table in tree.log_prob_all(X)])


def samples_of(X, y, n_classes=None):
    return samples_by_class(X, check_labels(y, n_labels=n_classes, name="y"))


def grown(samples, regularizers, max_rounds=1):
    """By default along the first split of each node, as values are chosen."""
    with progress_bar("", 1, verbose=False) as bar:
        return grow(samples, np.array(regularizers), max_rounds, 1, bar).arrays


def literal_likelihood(tree, samples, level):
    """Of the samples' ways at one level, each followed from its class's leaf up to there."""
    classes = np.repeat(np.arange(len(tree.leaf_of)), np.diff(samples.start))
    depth, total = depth_of(len(tree.label_of)), 0.0
    for row, label in zip(samples.rows, classes, strict=True):
        below = (tree.leaf_of[label] + len(tree.label_of)) >> (depth - level - 1)
        score = tree.weights[below // 2] @ row + tree.biases[below // 2]
        total += log_expit(score if below % 2 else -score)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_each_level_takes_the_value_whose_neighbours_are_no_better_on_unseen_samples(seed):
    X, y = families(1500, 40, n_features=6, seed=seed)
    samples = samples_of(X, y, 40)
    with progress_bar("", 1, verbose=False) as bar:
        chosen = choose_regularizers(samples, seed, 1, bar).tolist()
    training, validation = split_samples(samples, np.random.default_rng(seed))
    assert len(chosen) == 6
    for level, value in enumerate(chosen):
        place, found = GRID.index(value), {}
        for i in range(max(place - 1, 0), min(place + 2, len(GRID))):
            tree = grown(training, [*chosen[:level], GRID[i], *chosen[level + 1 :]])
            found[i] = literal_likelihood(tree, validation, level)
        assert found[place] >= max(found.values()) - 1e-3


def test_a_fifth_is_for_validation_and_every_class_keeps_a_sample():
    X, y = families(3000, 300)
    samples = samples_of(X, y, 310)
    training, validation = split_samples(samples, np.random.default_rng(1))
    for part in (training, validation):
        assert part.start[-1] == len(part.rows)
        sums = [part.rows[a:b].sum(axis=0) for a, b in pairwise(part.start)]
        np.testing.assert_allclose(part.sums, sums, atol=1e-2)
    sizes = np.diff(samples.start)
    np.testing.assert_array_equal(np.diff(training.start) + np.diff(validation.start), sizes)
    assert (np.diff(training.start)[sizes > 0] > 0).all()
    assert len(validation.rows) == pytest.approx(600, rel=0.2)
    assert (
        np.diff(split_samples(samples, np.random.default_rng(2))[1].start)
        != np.diff(validation.start)
    ).any()


@pytest.mark.parametrize("enough", [0, 40, 150, 10**6])
def test_of_many_nodes_some_whole_ones_are_enough(monkeypatch, enough):
    monkeypatch.setattr(tree_fitting, "_ENOUGH_SAMPLES", enough)
    X, y = families(400, 70)
    samples = samples_of(X, y, 70)
    order, bounds = np.random.default_rng(0).permutation(70), np.arange(0, 71, 5)
    kept, ends = some_nodes(samples, order, bounds, np.random.default_rng(1))
    nodes = {tuple(order[a:b]) for a, b in pairwise(bounds)}
    found = [tuple(kept[a:b]) for a, b in pairwise(ends)]
    assert set(found) <= nodes
    sizes = [np.isin(y, node).sum() for node in found]
    assert len(found) == 14 if enough == 10**6 else 8 <= len(found) < 14
    assert sum(sizes) >= min(enough, 400)
    assert len(found) == 8 or sum(sizes) - max(sizes) < enough


def test_values_found_from_some_nodes_are_near_those_of_all(monkeypatch):
    X, y = families(4000, 120, seed=1)
    every = NoiseTree(regularizer="auto").fit(X, y, n_classes=120)
    monkeypatch.setattr(tree_fitting, "_ENOUGH_SAMPLES", 1000)
    some = NoiseTree(regularizer="auto").fit(X, y, n_classes=120)
    np.testing.assert_array_equal(some.regularizers_[:4], every.regularizers_[:4])
    assert np.abs(np.log(some.regularizers_ / every.regularizers_)).max() < np.log(11)
    assert some.log_likelihood_ == pytest.approx(every.log_likelihood_, abs=0.1)


def test_the_found_values_suit_unseen_samples_better_than_the_papers():
    X, y = families(3000, 300, seed=2)
    X = X + 4 * np.random.default_rng(0).standard_normal(X.shape)
    fixed, found = (
        NoiseTree(regularizer=value).fit(X[:2000], y[:2000], n_classes=300)
        for value in (0.1, "auto")
    )
    assert fixed.regularizers_.tolist() == [0.1] * 9
    assert len(set(found.regularizers_)) > 1
    unseen = X[2000:], y[2000:]
    assert found.log_prob(*unseen).mean() > fixed.log_prob(*unseen).mean() + 0.5


def test_the_tree_is_the_one_of_all_samples_with_the_found_values():
    X, y = families(600, 33)
    tree = NoiseTree(regularizer="auto").fit(X, y, n_classes=33)
    again = grown(samples_of(tree.reduce(X), y, 33), tree.regularizers_, max_rounds=20)
    np.testing.assert_array_equal(tree.weights_, again.weights)
    np.testing.assert_array_equal(tree.leaf_of_, again.leaf_of)
    assert tree.log_likelihood_ == pytest.approx(tree.log_prob(X, y).mean(), abs=1e-5)


def test_threads_and_saving_change_no_bit(tmp_path):
    X, y = families(500, 50)
    one, many = (NoiseTree(regularizer="auto", n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.regularizers_, many.regularizers_)
    np.testing.assert_array_equal(one.weights_, many.weights_)
    one.save(tmp_path / "tree")
    back = um.load(tmp_path / "tree")
    np.testing.assert_array_equal(back.regularizers_, one.regularizers_)
    np.testing.assert_array_equal(tables(back, X), tables(one, X))


@pytest.mark.parametrize("y", [[0, 0, 0], [0, 1, 2], [5, 3, 1]])
def test_too_few_samples_to_hold_any_out_are_a_tree_all_the_same(y):
    tree = NoiseTree(regularizer="auto").fit([[0.0], [1.0], [2.0]], y)
    table = tables(tree, [[0.0], [9.0]])
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1, atol=1e-5)
    assert (tree.regularizers_ == 1).all()
