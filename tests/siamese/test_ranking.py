"""If these fail, answers are ranked badly, or scores depend on the rows beside them."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import umpteen as um
from tests.siamese.settings import siamese
from umpteen.errors import ModelPathError
from umpteen.kernels.nearest import merge_nearest
from umpteen.ranking import QuadraticRanker
from umpteen.ranking import quadratic as ranker
from umpteen.siamese import word_products
from umpteen.siamese.lexical import LexicalIndex
from umpteen.siamese.recipe import upgrade_from_4
from umpteen.siamese.weighing import RankerData, ValidationEvidence, hidden_pairs, newcomers
from umpteen.siamese.word_products import WordProducts
from umpteen.validation import unit_rows

N_CANDIDATES = 10


def drawn(n=3_000, seed=0):
    random = np.random.default_rng(seed)
    evidence = random.standard_normal((n, 3)).astype(np.float32) * [1, 5, 0.1] + [0, 3, 1]
    logits = evidence[:, 0] * (evidence[:, 1] - 3) / 2 - 1
    return evidence.astype(np.float32), random.random(n) < 1 / (1 + np.exp(-logits))


def ranked(evidence, relevant):
    """Samples with ten candidates each."""
    return QuadraticRanker.fitted(evidence, relevant, np.full(len(evidence) // N_CANDIDATES, 10))


def literal_terms(fitted, evidence):
    units = np.clip((evidence - fitted.means) / fitted.scales, -30, 30)
    pairs = [units[:, i] * units[:, j] for i in range(3) for j in range(i, 3)]
    return np.column_stack([units, *pairs])


def test_relevant_candidates_are_likeliest_among_those_of_their_sample():
    evidence, relevant = drawn()
    fitted = ranked(evidence, relevant)
    terms = literal_terms(fitted, evidence)

    def loss(weights):
        scores = (terms @ weights).reshape(-1, N_CANDIDATES)
        likelihoods = scores - logsumexp(scores, axis=1, keepdims=True)
        ridge = 2e-3 * relevant.sum() / 2 * (weights**2).sum()
        return ridge - likelihoods[relevant.reshape(scores.shape)].sum()

    best = minimize(loss, np.zeros(terms.shape[1]), method="BFGS")
    direction = fitted.weights[1:] / np.linalg.norm(fitted.weights[1:])
    np.testing.assert_allclose(direction, best.x / np.linalg.norm(best.x), atol=1e-3)
    expected = 1 / (1 + np.exp(-(fitted.weights[0] + terms @ fitted.weights[1:])))
    np.testing.assert_allclose(fitted.probabilities(evidence[None])[0], expected, rtol=1e-4)


def test_blocks_of_samples_change_nothing(monkeypatch):
    evidence, relevant = drawn()
    sizes = np.r_[0, np.full(100, 7), 900, 0, np.full(140, 10)]  # some without a candidate
    whole = QuadraticRanker.fitted(evidence, relevant, sizes)
    monkeypatch.setattr(ranker, "_BLOCK", 64)
    np.testing.assert_allclose(
        QuadraticRanker.fitted(evidence, relevant, sizes).weights, whole.weights, atol=1e-4
    )


def test_read_only_weights_compile_nothing_anew():
    """Those of a mapped model, and on a cluster, are read-only: each worker would compile."""
    fitted = ranked(*drawn(500))
    fitted.probabilities(drawn(500)[0][None])
    before = list(ranker.quadratic_probabilities.signatures)
    for array in (fitted.means, fitted.scales, fitted.weights):
        array.flags.writeable = False
        fitted.probabilities(drawn(500)[0][None])
    assert ranker.quadratic_probabilities.signatures == before


def test_probabilities_come_true():
    fitted = ranked(*drawn())
    evidence, relevant = drawn(seed=1)
    probabilities = fitted.probabilities(evidence[None])[0]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        there = (probabilities >= low) & (probabilities < low + 0.2)
        if there.sum() > 50:
            assert abs(relevant[there].mean() - probabilities[there].mean()) < 0.1


def test_evidence_that_is_always_the_same_does_no_harm():
    evidence, relevant = drawn()
    evidence[:, 2] = 7
    assert np.isfinite(ranked(evidence, relevant).probabilities(evidence[None])).all()


@pytest.mark.parametrize("truth", [np.ones(3_000, bool), np.arange(3_000) == 7])
def test_all_relevant_or_one_alone_can_be_ranked(truth):
    probabilities = ranked(drawn()[0], truth).probabilities(drawn()[0][None])
    assert np.isfinite(probabilities).all()


def test_words_are_the_product_of_sparse_rows():
    random = np.random.default_rng(0)
    X, Z = (csr_matrix(random_array((n, 30), density=0.2, rng=random, format="csr",
                                    dtype=np.float32)) for n in (6, 9))  # fmt: skip
    candidates = random.integers(-1, 9, (6, 5)).astype(np.int32)
    lexical = LexicalIndex(Z, np.ones(9, np.int64))
    found = lexical.cosines(X, candidates)
    whole = (X @ Z.T).toarray()
    expected = np.where(candidates >= 0, np.take_along_axis(whole, candidates, 1), 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.array_equal(lexical.cosines(X[2:], candidates[2:]), found[2:])  # nothing is left over


@pytest.mark.parametrize("long", [0, 3, 100])
def test_products_of_words_have_the_same_bits_however_long_a_row_is(monkeypatch, long):
    random = np.random.default_rng(2)
    X, Z = (
        csr_matrix(random_array((rows, 30), density=0.2, rng=random, dtype=np.float32))
        for rows in (9, 50)
    )
    X.sort_indices()
    Z.sort_indices()
    candidates = random.integers(-1, 50, (9, 20)).astype(np.int32)
    expected = np.zeros(candidates.shape, np.float32)
    for row, place in np.argwhere(candidates >= 0):
        sample, label = X[row], Z[candidates[row, place]]
        for word in np.intersect1d(sample.indices, label.indices):  # one after the other
            expected[row, place] += label[0, word] * sample[0, word]
    monkeypatch.setattr(word_products, "_LONG", long)
    products = WordProducts(Z)
    assert np.array_equal(products.of(X, candidates), expected)
    assert np.array_equal(products.of(X[2:], candidates[2:]), expected[2:])  # nothing is left over


@pytest.mark.parametrize("n", [1, 7, 60])
def test_labels_by_words_are_those_of_the_largest_products(n):
    random = np.random.default_rng(0)
    X, Z = (
        csr_matrix(
            random_array((rows, 30), density=0.1, rng=random, data_sampler=random.standard_normal)
        )
        for rows in (40, 50)
    )
    lexical = LexicalIndex(Z, np.ones(50, np.int64))
    found, best = lexical.nearest(X, n)
    for whole, part in zip((found, best), lexical.nearest(X[9:], n), strict=True):
        assert np.array_equal(part, whole[9:])  # nothing is left over
    assert np.array_equal(best, lexical.best(X))
    for row, products in enumerate((X @ Z.T).toarray()):
        expected = np.sort(products[products > 0])[::-1][:n]
        labels = found[row][found[row] >= 0]
        assert len(set(labels)) == len(labels)
        np.testing.assert_allclose(np.sort(products[labels])[::-1], expected, rtol=1e-5)


def test_the_best_label_by_words_has_the_largest_product():
    random = np.random.default_rng(1)
    X, Z = (
        csr_matrix(
            random_array((rows, 30), density=0.1, rng=random, data_sampler=random.standard_normal)
        )
        for rows in (40, 50)
    )
    lexical = LexicalIndex(Z, np.zeros(50, np.int64))
    found = lexical.best(X)
    expected = np.maximum((X @ Z.T).toarray().max(axis=1), 0)
    assert (expected == 0).any()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.array_equal(lexical.best(X[9:]), found[9:])  # nothing is left over


def test_words_of_most_labels_are_passed_over():
    Z = np.zeros((300, 3), np.float32)
    Z[:, 0], Z[:100, 1], Z[7, 2] = 1, 1, 1
    kept = LexicalIndex(csr_matrix(Z), np.ones(300, np.int64)).by_word.getnnz(axis=1)
    assert kept.tolist() == [0, 100, 1]


def test_removed_labels_are_not_found_by_their_words(model, tmp_path):
    X, Y, _ = topics()
    model.save(tmp_path / "model")
    again = um.load(tmp_path / "model").remove_labels([5])
    with_it = np.flatnonzero(Y.toarray()[:, 5])[:20]
    assert (model.predict_topk(X[with_it], k=10).labels == 5).any()
    assert not (again.predict_topk(X[with_it], k=10).labels == 5).any()


N_TOPICS = 40


def topics(n_samples=2_400, seed=0):
    """Labels with five words each, of which a sample has two, beside one of no meaning; label 0
    is on every other sample whatever its words, so that only samples tell how likely it is."""
    random = np.random.default_rng(seed)
    Y = np.zeros((n_samples, N_TOPICS), np.float32)
    X = np.zeros((n_samples, 5 * N_TOPICS + 10), np.float32)
    for row in range(n_samples):
        topic = min(int(random.exponential(8)), N_TOPICS - 2) + 1
        Y[row, topic], Y[row, 0] = 1, random.random() < 0.5
        X[row, 5 * topic + random.permutation(5)[:2]] = 1
        X[row, 5 * N_TOPICS + random.integers(10)] = 1
    texts = np.zeros((N_TOPICS, X.shape[1]), np.float32)
    for topic in range(N_TOPICS):
        texts[topic, 5 * topic : 5 * topic + 5] = 1
    return csr_matrix(X), csr_matrix(Y), csr_matrix(texts)


SETTINGS = {
    "dim": 48, "epochs": 3, "refine_epochs": 1, "joint_epochs": 1, "random_state": 0,
    "verbose": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    X, Y, texts = topics()
    return siamese(**SETTINGS).fit(X, Y, label_features=texts)


def test_learned_scores_are_nearly_probabilities_and_find_what_is_frequent(model):
    X, Y, _ = topics(600, seed=1)
    top = model.predict_topk(X, k=3)
    assert top.scores.min() >= 0
    assert top.scores.max() <= 1
    hits = np.take_along_axis(Y.toarray(), top.labels, axis=1)
    assert abs(top.scores.mean() - hits.mean()) < 0.2  # of label 0, ranking makes too much
    fixed = siamese(**SETTINGS, weights="fixed", classifier="cosine")
    X_train, Y_train, texts = topics()
    fixed.fit(X_train, Y_train, label_features=texts)
    found, missed = (
        um.metrics.recall_at_k(Y, answers.predict_topk(X, k=2), 2) for answers in (model, fixed)
    )
    assert found > missed + 0.05
    assert model.score(X, Y) > 0.85  # one label for certain, one with a chance of a half
    assert fixed.ranker_ is None


def test_tail_divides_by_the_propensity(model):
    X, Y, _ = topics()
    plain = model.predict_topk(X[:50], k=N_TOPICS).to_csr(N_TOPICS).toarray()
    model.set_params(tail=1.0)
    scored = model.predict_topk(X[:50], k=N_TOPICS).to_csr(N_TOPICS).toarray()
    model.set_params(tail=0.0)
    probabilities = um.metrics.propensity(Y)
    np.testing.assert_allclose(scored, plain / probabilities, rtol=1e-4, atol=1e-20)


def literal_columns(model, x, label):
    """What speaks for a label, one number after the other."""
    tower = model.towers_[0]
    units = csr_matrix(unit_rows(x))
    bag = tower.encoder.bags(x)[0]
    texts, words = model.label_features_.toarray(), model.word_classifiers_
    row = units.toarray()[0]
    best = max(float(row @ text) for text in model.learned_texts_.toarray())
    return np.array([
        tower.classifiers[label] @ bag + tower.biases[label], tower.texts[label] @ bag,
        tower.centroids[label] @ bag, texts[label] @ row, np.log1p(model.label_counts_[label]),
        words.weights.toarray()[label] @ row + words.biases[label], texts[label] @ row - best,
    ])  # fmt: skip


def test_scores_are_the_rankers_of_all_that_speaks_for_a_label(model):
    X, _, _ = topics(8, seed=3)
    top = model.predict_topk(X, k=N_TOPICS)
    for row in range(8):
        for label, score in zip(top.labels[row], top.scores[row], strict=True):
            columns = literal_columns(model, X[row], label).astype(np.float32)
            expected = model.ranker_.probabilities(columns[None, None])[0, 0]
            assert score == pytest.approx(expected, abs=1e-4)


def test_other_labels_keep_their_scores_when_some_come_or_go(model, tmp_path):
    """The best cosine of a sample is that to labels of training, whatever became of them."""
    X, _, _ = topics(30, seed=4)
    before = model.predict_topk(X, k=N_TOPICS).to_csr(N_TOPICS + 1).toarray()
    model.save(tmp_path / "model")
    more = um.load(tmp_path / "model").add_labels(X[:3], np.ones((3, 1)), label_features=X[:1])
    after = more.predict_topk(X, k=N_TOPICS + 1).to_csr(N_TOPICS + 1).toarray()
    assert np.array_equal(after[:, :N_TOPICS], before[:, :N_TOPICS])
    gone = np.arange(3, 12)
    less = um.load(tmp_path / "model").remove_labels(gone)
    after = less.predict_topk(X, k=N_TOPICS).to_csr(N_TOPICS + 1).toarray()
    kept = np.setdiff1d(np.arange(N_TOPICS), gone)
    assert np.array_equal(after[:, kept], before[:, kept])
    assert not after[:, gone].any()


def test_a_model_of_an_earlier_version_goes_without_the_best_cosine(model, tmp_path):
    X, _, _ = topics(20, seed=5)
    ranker = model.ranker_
    terms = [(i, j) for i in range(7) for j in range(i, 7)]
    kept = [*range(7), *(8 + place for place, (_, j) in enumerate(terms) if j < 6)]
    earlier = um.SiameseXML(**model.get_params(deep=False))
    earlier.__dict__.update(vars(model))
    earlier.learned_texts_ = earlier._learned = None
    earlier.ranker_ = QuadraticRanker(ranker.means[:6], ranker.scales[:6], ranker.weights[kept])
    earlier.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    assert list(loaded._faults({})) == []
    top = loaded.predict_topk(X, k=3)
    for row in range(20):
        columns = literal_columns(model, X[row], top.labels[row, 0]).astype(np.float32)[:6]
        expected = earlier.ranker_.probabilities(columns[None, None])[0, 0]
        assert top.scores[row, 0] == pytest.approx(expected, abs=1e-4)
    state = {}
    upgrade_from_4({}, state)
    assert state == {"learned_texts_": None}


def test_a_pickled_model_answers_the_same(model):
    X, _, _ = topics(50)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_topk(X, k=5) == model.predict_topk(X, k=5)


def test_an_answer_does_not_depend_on_the_samples_beside_it(model):
    X, _, _ = topics()
    together = model.predict_topk(X[:30], k=5)
    for row in range(30):
        assert model.predict_topk(X[row], k=5) == together[row : row + 1]


def test_new_labels_and_saving_keep_the_ranker(model, tmp_path):
    X, _, texts = topics()
    model.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    before = again.predict_topk(X[:20], k=5)
    assert before == model.predict_topk(X[:20], k=5)
    new = csr_matrix(np.eye(texts.shape[1], dtype=np.float32)[-3:-2])
    again.add_labels(label_features=new)
    after = again.predict_topk(X[:20], k=6).to_csr(N_TOPICS + 1).toarray()[:, :N_TOPICS]
    found = before.to_csr(N_TOPICS).toarray()
    np.testing.assert_array_equal(after[found > 0], found[found > 0])
    assert again.label_counts_[-1] == 0


def test_samples_with_high_scores_and_few_labels_do_not_turn_the_order():
    random = np.random.default_rng(0)
    evidence, relevant = np.zeros((300, 10), np.float32), np.zeros((300, 10), bool)
    for sample in range(300):
        level, n_relevant = ((0.2, 5), (0.6, 1))[sample % 2]
        evidence[sample] = level + 0.05 * random.standard_normal(10)
        relevant[sample, np.argsort(-evidence[sample])[:n_relevant]] = True
    fitted = ranked(evidence.reshape(-1, 1), relevant.ravel())
    probabilities = fitted.probabilities(evidence[:, :, None])
    best = probabilities.argmax(axis=1)
    assert relevant[np.arange(300), best].mean() > 0.95
    assert abs(probabilities.mean() - relevant.mean()) < 0.01


def test_towers_of_another_split_are_another_training(tmp_path):
    X, Y, texts = topics(2_100)
    settings = {**SETTINGS, "epochs": 1, "checkpoint": str(tmp_path)}
    siamese(**settings).fit(X, Y, label_features=texts)
    with pytest.raises(ModelPathError, match="another training"):
        siamese(**settings, weights="fixed").fit(X, Y, label_features=texts)


def test_a_given_split_is_answered_by_towers_and_weights_that_have_not_seen_it():
    """Answers are those of a model without the split; shuffled labels must not be found."""
    X, Y, texts = topics()
    split = np.arange(X.shape[0]) % 8 == 3
    model = siamese(**SETTINGS)
    answers = model.fit_validated(X, Y, split, k=3, label_features=texts)
    assert answers.labels.shape == (split.sum(), 3)
    assert um.metrics.precision_at_k(Y[split], answers, 1) > 0.8
    assert model.score(X, Y) > 0.85
    random = np.random.default_rng(5)
    marked = csr_matrix(X + csr_matrix(random.random(X.shape) * 1e-6))  # tell all rows apart
    shuffled = Y[random.permutation(X.shape[0])]
    fair = siamese(**SETTINGS).fit_validated(marked, shuffled, split, k=1, label_features=texts)
    counts = np.asarray(shuffled.sum(axis=0)).ravel()
    best_guess = counts.max() / X.shape[0]
    assert um.metrics.precision_at_k(shuffled[split], fair, 1) < best_guess + 0.1


@pytest.fixture
def trainings(monkeypatch):
    """The data and the modules of each training."""
    from umpteen.siamese import fitting

    calls, original = [], fitting.train_tower

    def telling(data, table, settings, seed):
        calls.append((data, settings.recipe.modules))
        return original(data, table, settings, seed)

    monkeypatch.setattr(fitting, "train_tower", telling)
    return calls


def test_all_samples_train_the_tower_that_answers(trainings):
    """First without the split, to learn the weights from it; then once more with all samples."""
    X, Y, texts = topics()
    split = np.arange(X.shape[0]) % 8 == 3
    model = siamese(**{**SETTINGS, "epochs": 1})
    model.fit_validated(X, Y, split, label_features=texts)
    assert [data.X.shape[0] for data, _ in trainings] == [(~split).sum(), X.shape[0]]
    assert trainings[1][0].Y.nnz == Y.nnz
    centroid = model.towers_[0].encoder.bags(X).T @ Y.toarray()[:, 7]
    np.testing.assert_allclose(
        model.towers_[0].centroids[7], centroid / np.linalg.norm(centroid), atol=1e-5
    )


@pytest.mark.parametrize("helps", [True, False])
def test_module_4_is_kept_where_the_split_says_that_it_helps(trainings, helps, monkeypatch):
    qualities = iter([0.7, 0.6] if helps else [0.6, 0.7])  # with it, and before it
    monkeypatch.setattr(ValidationEvidence, "quality", lambda _: next(qualities))
    X, Y, texts = topics()
    modules = ("embed", "refine", "joint")
    model = siamese(**{**SETTINGS, "epochs": 1, "modules": modules, "joint_epochs": 1})
    model.fit(X, Y, label_features=texts)
    assert [used for _, used in trainings] == [modules, modules if helps else modules[:2]]
    assert ("joint" in model.history_[0]) == helps


def test_labels_that_are_hidden_have_texts_and_are_not_frequent():
    random = np.random.default_rng(0)
    Y = random.random((500, 400)) < 0.003
    Y[:, :20] = random.random((500, 20)) < 0.1
    texts = np.ones((400, 3))
    texts[300:] = 0
    hidden = newcomers(csr_matrix(Y), csr_matrix(texts), 0)
    counts = Y.sum(axis=0)
    possible = (counts > 0) & (counts <= 5) & (np.arange(400) < 300)
    assert possible[hidden].all()
    assert len(hidden) == int(0.05 * possible.sum())
    assert not np.array_equal(hidden, newcomers(csr_matrix(Y), csr_matrix(texts), 1))


def test_towers_that_weights_are_learned_with_know_no_sample_of_hidden_labels(
    trainings, monkeypatch
):
    from umpteen.siamese import fitting

    monkeypatch.setattr(fitting, "newcomers", lambda *_: np.array([5, 9]))
    X, Y, texts = topics()
    model = siamese(**{**SETTINGS, "epochs": 1}).fit(X, Y, label_features=texts)
    part, whole = (data for data, _ in trainings)
    assert part.Y[:, [5, 9]].nnz == 0
    assert (np.delete(part.Y.getnnz(axis=0), [5, 9]) > 0).all()
    assert whole.Y.nnz == Y.nnz
    assert len(model.newcomer_ranker_.means) == 2


def test_newcomers_are_judged_by_their_own_ranker(model):
    X, _, texts = topics()
    again = pickle.loads(pickle.dumps(model)).add_labels(label_features=texts[3:5])
    columns = np.array([[0.9, 0.8], [0.0, 0.0]], np.float32)
    again.newcomer_ranker_ = QuadraticRanker.fitted(
        np.tile(columns, (50, 1)), np.tile([True, False], 50), np.full(50, 2)
    )
    answers = again.predict_topk(X[:40], k=N_TOPICS + 2)
    scores = answers.to_csr(N_TOPICS + 2).toarray()[:, N_TOPICS:]
    tower = again.towers_[0]
    bags = tower.encoder.bags(X[:40])
    units = csr_matrix(X[:40] / np.sqrt(3))
    words = (units @ again.label_features_[N_TOPICS:].T).toarray()
    evidence = np.stack([bags @ tower.texts[N_TOPICS:].T, words], axis=-1).astype(np.float32)
    expected = again.newcomer_ranker_.probabilities(evidence)
    found = scores > 0
    assert found.any()
    np.testing.assert_allclose(scores[found], expected[found], rtol=1e-3)


def test_hidden_labels_of_training_samples_are_pairs_unless_the_sample_is_their_only_one():
    """Sample 0 is the only one of label 1, which nobody would know without it."""
    candidates = np.array([[1, 2, 4, -1], [1, 3, 4, 2]], np.int32)
    columns = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
    block = SimpleNamespace(candidates=candidates, newcomer_columns=lambda: columns)
    predictor = SimpleNamespace(evidence=lambda X: [block])
    Y = csr_matrix([[0, 1, 0, 0, 1], [0, 0, 0, 1, 1]], dtype=np.float32)
    found = hidden_pairs(predictor, csr_matrix((2, 3)), Y, np.array([1, 4]))
    np.testing.assert_array_equal(found.columns, columns[[0, 1, 1], [2, 0, 2]])
    assert found.relevant.tolist() == [True, False, True]
    assert found.n_candidates.tolist() == [1, 2]


def split_evidence(useful):
    """Ten labels, the last two hidden; label 0 is right on every other sample, and label 7, which
    only the split has, on all."""
    random = np.random.default_rng(0)
    candidates = np.tile(np.arange(10, dtype=np.int32), (200, 1))
    relevant = np.zeros((200, 10), bool)
    relevant[::2, 0] = relevant[:, 7] = True
    relevant[np.arange(200), 8 + random.integers(2, size=200)] = random.random(200) < useful
    columns = random.random((200, 10, 3)).astype(np.float32)
    columns[:, 0, 0] += 1
    hidden = candidates >= 8
    columns[hidden & relevant, 1] += 0.3
    of_new = columns[:, :, 1:]
    further = RankerData(of_new[hidden][:200], relevant[hidden][:200], np.full(100, 2))
    return ValidationEvidence(
        candidates, columns, of_new, relevant, candidates < 7, hidden,
        csr_matrix(relevant * 1.0), further,
    )  # fmt: skip


@pytest.mark.parametrize("useful", [0.1, 0.6])
def test_odds_of_newcomers_are_raised_as_far_as_costs_nothing(useful):
    split = split_evidence(useful)
    pairs = split.newcomer_columns[split.hidden]
    honest = QuadraticRanker.fitted(
        np.concatenate([pairs, split.further.columns]),
        np.concatenate([split.relevant[split.hidden], split.further.relevant]),
        np.full(300, 2),
    ).probabilities(pairs[None])
    found = split.newcomer_ranker(split.ranker()).probabilities(pairs[None])
    times = float(np.median(found / (1 - found) / (honest / (1 - honest))))
    others = split.ranker().probabilities(split.columns)

    def quality(factor):
        scores = others.copy()
        scores[split.hidden] = factor * honest[0] / (1 - honest[0] + factor * honest[0])
        scores[:, 7] = 0
        answers = um.TopK(*merge_nearest(split.candidates, scores, 5))
        return um.metrics.ndcg_at_k(split.Y, answers, 5)

    good = [n for n in (2, 3, 4, 6, 8) if quality(n) >= 0.998 * quality(0)]
    assert times == pytest.approx(max(good, default=1), rel=1e-2)


def test_a_new_label_is_not_sure_of_an_unrelated_text_where_weights_are_learned(model):
    """Nor is it the better for the removal of all others."""
    X, _, texts = topics(60)
    again = pickle.loads(pickle.dumps(model))
    again.add_labels(label_features=csr_matrix(np.eye(texts.shape[1], dtype=np.float32)[-1:]))
    asked = X[np.flatnonzero(X[:, [-1]].toarray().ravel() == 0)]
    among_all = again.predict_topk(asked, k=N_TOPICS + 1).to_csr(N_TOPICS + 1)
    alone = again.remove_labels(np.arange(N_TOPICS)).predict_topk(asked, k=1)
    assert among_all[:, N_TOPICS].toarray().max() < 0.5
    assert alone.scores.max() < 0.5


def test_where_no_label_was_hidden_a_new_label_is_not_sure_of_an_unrelated_text():
    """Of twelve labels, a twentieth is none: newcomers have the ranker of labels with samples."""
    random = np.random.default_rng(0)
    y = random.integers(12, size=2_300)
    X = np.zeros((2_300, 75), np.float32)  # five words for each label and 15 of no meaning
    for row, topic in enumerate(y):
        X[row, 5 * topic + random.permutation(5)[:2]] = X[row, 60 + random.integers(10)] = 1
    texts = np.kron(np.eye(15), np.ones(5))[:12].astype(np.float32)
    Y = csr_matrix(np.eye(12, dtype=np.float32)[y])
    quick = {**SETTINGS, "epochs": 1, "modules": ("embed", "mine", "refine")}
    model = siamese(**quick).fit(X[:2_000], Y[:2_000], label_features=texts)
    assert model.ranker_ is not None
    assert model.newcomer_ranker_ is None
    new = np.zeros((3, 75), np.float32)
    new[0, 70:] = new[1, 60] = new[2, 60:70] = 1  # words of no sample, and of no meaning
    model.add_labels(label_features=new)
    scores = model.predict_topk(X[2_000:], k=15).to_csr(15).toarray()
    assert scores[:, 12:].max() < 0.5
    assert scores[np.arange(300), y[2_000:]].mean() > 0.9
    alone = model.remove_labels(np.arange(12)).predict_topk(X[2_000:], k=1)
    assert alone.scores.max() < 0.5


def test_logistic_weights_are_those_of_scikit_learn():
    evidence, relevant = drawn()
    fitted = QuadraticRanker.logistic(evidence, relevant)
    terms = literal_terms(fitted, evidence)
    ridge = 5e-2 * relevant.sum()
    expected = LogisticRegression(C=1 / ridge, tol=1e-8, max_iter=1000).fit(terms, relevant)
    found = np.r_[expected.intercept_, expected.coef_[0]]
    np.testing.assert_allclose(fitted.weights, found, atol=1e-3)


def test_blocks_of_pairs_change_no_logistic_weight(monkeypatch):
    evidence, relevant = drawn()
    whole = QuadraticRanker.logistic(evidence, relevant)
    monkeypatch.setattr(ranker, "_BLOCK", 64)
    parts = QuadraticRanker.logistic(evidence, relevant)
    np.testing.assert_allclose(parts.weights, whole.weights, atol=1e-5)


@pytest.mark.parametrize("truth", [np.ones(3_000, bool), np.arange(3_000) == 7])
def test_all_relevant_or_one_alone_have_probabilities(truth):
    fitted = QuadraticRanker.logistic(drawn()[0], truth)
    assert np.isfinite(fitted.probabilities(drawn()[0][None])).all()


def test_the_ranker_of_labels_with_samples_learns_probabilities_from_these_alone():
    split = split_evidence(0.6)
    expected = QuadraticRanker.logistic(split.columns[split.learned], split.relevant[split.learned])
    assert np.array_equal(split.ranker().weights, expected.weights)
    half = np.arange(200) < 100
    kept = split.learned & half[:, None]
    expected = QuadraticRanker.logistic(split.columns[kept], split.relevant[kept])
    assert np.array_equal(split.ranker(half).weights, expected.weights)
