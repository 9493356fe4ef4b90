"""If these fail, what labels learned of single words is wrong, and frequent labels are confused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array

import umpteen as um
from tests.siamese.settings import siamese
from umpteen.siamese import fitting, words
from umpteen.siamese.lexical import LexicalIndex, index_of
from umpteen.siamese.training import TrainingSet
from umpteen.siamese.words import WordClassifiers
from umpteen.validation import unit_rows

N_SAMPLES, N_FEATURES, N_LABELS = 60, 12, 7


def problem(seed=0):
    random = np.random.default_rng(seed)
    X = csr_matrix(random_array((N_SAMPLES, N_FEATURES), density=0.4, rng=random, dtype=np.float32))
    Y = (X[:, :N_LABELS].toarray() > 0.5) | (random.random((N_SAMPLES, N_LABELS)) < 0.03)
    Y[:, 3] = False
    hard = np.where(Y[:, :2], -1, random.integers(-1, N_LABELS, (N_SAMPLES, 2)))
    relevant = np.take_along_axis(Y, np.maximum(hard, 0), 1) & (hard >= 0)
    return csr_matrix(unit_rows(X)), csr_matrix(Y), np.where(relevant, -1, hard).astype(np.int32)


def literal(X, Y, hard, n_random, per_sample, seed, texts=None):
    """One label after the other, by a general optimiser of the primal problem."""
    X, Y = np.c_[X.toarray().astype(float), np.ones(N_SAMPLES)], Y.toarray()
    described = np.zeros(N_LABELS, bool)
    if texts is not None:
        described = texts.getnnz(axis=1) > 0
        X = np.r_[X, np.c_[texts.toarray(), np.ones(N_LABELS)]]
    order = np.random.default_rng([seed, 0]).permutation(N_SAMPLES)
    found = np.zeros((N_LABELS, N_FEATURES + 1))
    found[:, -1] = -1
    for label in range(N_LABELS):
        own = np.flatnonzero(Y[:, label])
        if len(own) == 0:
            continue
        near = np.flatnonzero((hard == label).any(axis=1))
        rest = [row for row in order if row not in own and row not in near]
        if described[label]:
            own = np.r_[own, N_SAMPLES + label]
        drawn = rest[: max(n_random, per_sample * len(own))]
        rows = np.r_[own, near, drawn].astype(int)
        signs = np.r_[np.ones(len(own)), -np.ones(len(near) + len(drawn))]
        costs = np.r_[
            np.ones(len(own) + len(near)), np.full(len(drawn), len(rest) / max(1, len(drawn)))
        ]

        def loss(weights, rows=rows, signs=signs, costs=costs):
            gaps = np.maximum(0, 1 - signs * (X[rows] @ weights))
            slope = weights - 2 * X[rows].T @ (costs * gaps * signs)
            return weights @ weights / 2 + costs @ gaps**2, slope

        best = minimize(loss, np.zeros(N_FEATURES + 1), jac=True, method="BFGS", tol=1e-9)
        found[label] = best.x
    return found


@pytest.mark.parametrize(("n_random", "per_sample"), [(5, 0), (1, 2), (1000, 4)])
@pytest.mark.parametrize(("has_hard", "has_texts"), [(True, True), (True, False), (False, True)])
def test_each_label_has_the_best_weights_on_its_own_negatives(
    monkeypatch, n_random, per_sample, has_hard, has_texts
):
    X, Y, hard = problem()
    texts = problem(seed=1)[0][:N_LABELS].tolil()
    texts[2] = 0  # a label without a text; label 3 has a text and no samples
    texts = csr_matrix(unit_rows(csr_matrix(texts))) if has_texts else None
    settings = {
        "_N_RANDOM": n_random, "_PER_SAMPLE": per_sample, "_TOLERANCE": 1e-6,
        "_MAX_EPOCHS": 10_000, "_PRUNE": 0.0,
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setattr(words, name, value)
    tables = [hard[:, :1], hard[:, 1:]] if has_hard else []
    fitted = WordClassifiers.fitted(X, Y, tables, seed=3, texts=texts)
    none = np.full_like(hard, -1)
    expected = literal(X, Y, hard if has_hard else none, n_random, per_sample, 3, texts)
    np.testing.assert_allclose(fitted.weights.toarray(), expected[:, :-1], atol=1e-3)
    np.testing.assert_allclose(fitted.biases, expected[:, -1], atol=1e-3)


def test_small_weights_are_left_out_and_the_others_stay(monkeypatch):
    X, Y, hard = problem()
    monkeypatch.setattr(words, "_PRUNE", 0.0)
    whole = WordClassifiers.fitted(X, Y, [hard]).weights.toarray()
    monkeypatch.setattr(words, "_PRUNE", 0.3)
    pruned = WordClassifiers.fitted(X, Y, [hard]).weights
    assert 0 < pruned.nnz < np.count_nonzero(whole)
    assert np.array_equal(pruned.toarray(), np.where(abs(whole) >= 0.3, whole, 0))


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(words, "_BLOCK", 2)
    X, Y, hard = problem()
    one, many = (WordClassifiers.fitted(X, Y, [hard], n_jobs=n) for n in (1, 3))
    assert np.array_equal(one.weights.toarray(), many.weights.toarray())
    assert np.array_equal(one.biases, many.biases)


def test_scores_are_products_and_biases_and_nothing_is_left_over():
    X, Y, hard = problem()
    fitted = WordClassifiers.fitted(X, Y, [hard])
    candidates = np.random.default_rng(0).integers(-1, N_LABELS, (N_SAMPLES, 4)).astype(np.int32)
    whole = (X @ fitted.weights.T).toarray() + fitted.biases
    expected = np.where(candidates >= 0, np.take_along_axis(whole, candidates, 1), 0)
    found = fitted.scores(X, candidates)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.array_equal(fitted.scores(X[5:6], candidates[5:6]), found[5:6])


def test_words_of_long_rows_are_looked_up_to_the_same_bits():
    """A sample of few words and a label of many: the shorter way, and the same sum."""
    random = np.random.default_rng(0)
    X = csr_matrix(random_array((20, 400), density=0.01, rng=random, dtype=np.float32))
    Z = csr_matrix(random_array((5, 400), density=0.7, rng=random, dtype=np.float32))
    X.sort_indices(), Z.sort_indices()
    candidates = np.tile(np.arange(5, dtype=np.int32), (20, 1))
    found = LexicalIndex(Z, np.ones(5, np.int64)).cosines(X, candidates)
    for row in range(20):
        for label in range(5):
            total = np.float32(0)
            for a, b in zip(X[row].toarray()[0], Z[label].toarray()[0], strict=True):
                total += np.float32(a * b)
            assert abs(found[row, label] - total) < 1e-6


def test_new_labels_know_the_mean_of_their_samples():
    X, Y, hard = problem()
    fitted = WordClassifiers.fitted(X, Y, [hard])
    new = csr_matrix(np.r_[[[1, 0, 0], [1, 1, 0]], np.zeros((N_SAMPLES - 2, 3))])
    more = fitted.with_labels(X, new)
    assert more.weights.has_sorted_indices
    assert np.array_equal(more.weights[:N_LABELS].toarray(), fitted.weights.toarray())
    labels = np.arange(N_LABELS, N_LABELS + 3, dtype=np.int32)
    scores = more.scores(X[:2], np.tile(labels, (2, 1)))
    assert scores[:, 0].mean() == pytest.approx(1, abs=1e-5)  # both are samples of the first
    assert scores[1, 1] == pytest.approx(1, abs=1e-5)
    assert np.array_equal(scores[:, 2], [-1, -1])  # no samples
    empty = more.scores(csr_matrix((1, N_FEATURES), dtype=np.float32), labels[None])
    assert np.array_equal(empty, [[-1, -1, -1]])


def test_the_text_of_a_label_is_no_sample_of_another():
    """Otherwise the texts of narrower labels would speak against a wider one."""
    X, Y, hard = problem()
    texts = csr_matrix(np.eye(N_LABELS, N_FEATURES, dtype=np.float32))
    others = texts.tolil()
    others[1:] = 0
    alone = WordClassifiers.fitted(X, Y, [hard], texts=csr_matrix(others))
    beside = WordClassifiers.fitted(X, Y, [hard], texts=texts)
    assert np.array_equal(alone.weights[0].toarray(), beside.weights[0].toarray())
    assert alone.biases[0] == beside.biases[0]


@pytest.fixture(scope="module")
def data():
    """Labels that a word decides; the other words of samples, and those of labels, tell nothing."""
    random = np.random.default_rng(0)
    n, n_labels, n_noise = 2_400, 40, 200
    labels = random.integers(n_labels, size=n)
    columns = np.c_[labels, n_labels + random.integers(n_noise, size=(n, 2))]
    rows = np.repeat(np.arange(n), 3)
    X = csr_matrix((np.ones(3 * n, np.float32), (rows, columns.ravel())), shape=(n, 241))
    Z = csr_matrix(np.eye(241, dtype=np.float32)[np.full(n_labels, 240)])
    return X, labels, Z


@pytest.fixture(scope="module")
def model(data):
    X, labels, Z = data
    return siamese(dim=2, epochs=1, random_state=0, verbose=False).fit(X, labels, label_features=Z)


def test_words_tell_what_few_dimensions_cannot(data, model):
    X, labels, Z = data
    without = siamese(dim=2, epochs=1, random_state=0, verbose=False, word_classifiers=False).fit(
        X, labels, label_features=Z
    )
    assert without.word_classifiers_ is None
    assert model.score(X, labels) > 0.95 > without.score(X, labels) + 0.2


def test_a_saved_model_has_its_words(tmp_path, data, model):
    X = data[0][:50]
    model.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    before, after = model.predict_topk(X, k=3), loaded.predict_topk(X, k=3)
    assert np.array_equal(before.labels, after.labels)
    assert np.array_equal(before.scores, after.scores)


def test_added_and_removed_labels_keep_the_words_of_the_others(data, model):
    X, _, Z = data
    changed = um.siamese.SiameseXML(**model.get_params(deep=False))
    changed.__dict__.update(vars(model))
    asked = X[:40]
    before = changed.predict_topk(asked, k=1)
    own = np.zeros((2, 1)) + 1
    changed.add_labels(asked[:2], own, label_features=Z[:1])
    assert changed.word_classifiers_.weights.shape[0] == 41
    kept = changed.remove_labels([40]).predict_topk(asked, k=1)
    assert np.array_equal(kept.labels, before.labels)
    assert np.array_equal(kept.scores, before.scores)


def test_the_ranker_needs_a_column_for_words(tmp_path, model):
    model.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    loaded.word_classifiers_ = None
    assert list(loaded._faults({})) == ["has a ranker of 7 columns; expected 6"]
    loaded = um.load(tmp_path / "model")
    loaded.learned_texts_ = None
    assert list(loaded._faults({})) == ["has a ranker of 7 columns; expected 6"]
    loaded = um.load(tmp_path / "model")
    loaded.ranker_ = replace(loaded.ranker_, means=loaded.ranker_.means[:6])
    assert list(loaded._faults({})) == ["has a ranker of 6 columns; expected 7"]


def test_words_learn_from_hard_negatives_and_the_ranker_from_words_without_the_split(
    monkeypatch, data
):
    X, labels, Z = data
    asked, towers = [], []
    fitted, train = WordClassifiers.fitted, fitting.train_tower

    def spied(X, Y, hard, seed, n_jobs, verbose, texts):
        asked.append((X.shape[0], Y.shape, hard))
        assert np.array_equal(texts.toarray(), Z.toarray())
        return fitted(X, Y, hard, seed, n_jobs, verbose, texts)

    def watched(*arguments):
        towers.append(train(*arguments))
        return towers[-1]

    known, learned_texts = [], fitting.learned_texts

    def noted(data):
        known.append(data.X.shape[0])
        return learned_texts(data)

    monkeypatch.setattr(fitting, "learned_texts", noted)
    monkeypatch.setattr(WordClassifiers, "fitted", spied)
    monkeypatch.setattr(fitting, "train_tower", watched)
    siamese(dim=2, epochs=1, n_models=2, random_state=0, verbose=False).fit(
        X, labels, label_features=Z
    )
    part, whole = asked
    assert known == [1_800, 2_400]
    assert (part[0], whole[0]) == (1_800, 2_400)  # a quarter is the split
    for (n, shape, hard), made in zip((part, whole), (towers[:2], towers[2:]), strict=True):
        assert shape == (n, 40)
        assert [table.shape for table in hard] == [(n, 20)] * 2
        assert all((table >= 0).any() for table in hard)
        assert all(table is each.hard for table, each in zip(hard, made, strict=True))


def test_labels_without_texts_are_not_their_own_samples_twice(data):
    """Their features are centroids of samples, which say nothing new."""
    X, labels, _ = data
    settings = {"dim": 2, "epochs": 1, "random_state": 0, "verbose": False}
    models = [siamese(**settings, texts_as_samples=each).fit(X, labels) for each in (True, False)]
    with_texts, without = (model.word_classifiers_.weights.toarray() for model in models)
    assert np.array_equal(with_texts, without)


@pytest.mark.parametrize("counts", [True, False])
def test_texts_are_samples_of_their_labels_if_that_is_wanted(counts):
    X, Y, hard = problem()
    texts = csr_matrix(2 * np.eye(N_LABELS, N_FEATURES, dtype=np.float32))
    made = [SimpleNamespace(hard=hard)]
    recipe = siamese(texts_as_samples=counts).recipe
    data = TrainingSet.of(X, texts, Y)
    found = fitting.Fitting(None, recipe, 1, None, False, texts, None, 5).words(data, made)
    own = csr_matrix(unit_rows(texts)) if counts else None
    expected = WordClassifiers.fitted(data.X, data.Y, [hard], 5, texts=own)
    assert np.array_equal(found.weights.toarray(), expected.weights.toarray())


def test_the_best_cosine_is_that_of_labels_with_samples():
    X, Y, _ = problem()
    texts = csr_matrix(np.eye(N_LABELS, N_FEATURES, dtype=np.float32))
    found = fitting.learned_texts(TrainingSet.of(X, texts, Y))
    assert np.array_equal(found.toarray(), np.delete(texts.toarray(), 3, axis=0))
    counts = Y.getnnz(axis=0)
    assert index_of(found, LexicalIndex(texts, counts)).features is found
    every = LexicalIndex(found, np.delete(counts, 3))
    assert index_of(found.copy(), every) is every  # one index serves both


def test_few_samples_give_a_larger_share_to_learn_weights_from():
    shares = [fitting.split_share(n) for n in (2_000, 5_000, 10_000, 100_000)]
    assert shares == [0.25, 0.2, 0.1, 0.1]
