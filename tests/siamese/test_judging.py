"""If these fail, answers are ranked badly, or scores depend on the rows beside them."""

import pickle

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array
from scipy.special import logsumexp
from sklearn.ensemble import HistGradientBoostingClassifier

import umpteen as um
from umpteen.errors import ModelPathError
from umpteen.siamese import quadratic_judge, siamese_xml
from umpteen.siamese.boosted_judge import BoostedJudge
from umpteen.siamese.held_out import held_out
from umpteen.siamese.known import Known
from umpteen.siamese.quadratic_judge import QuadraticJudge

N_CANDIDATES = 10


def drawn(n=3_000, seed=0):
    random = np.random.default_rng(seed)
    signs = random.standard_normal((n, 3)).astype(np.float32) * [1, 5, 0.1] + [0, 3, 1]
    logits = signs[:, 0] * (signs[:, 1] - 3) / 2 - 1
    return signs.astype(np.float32), random.random(n) < 1 / (1 + np.exp(-logits))


def ranked(signs, relevant):
    """Samples with ten candidates each."""
    return QuadraticJudge.learned(signs, relevant, np.full(len(signs) // N_CANDIDATES, 10))


def literal_terms(judge, signs):
    units = np.clip((signs - judge.means) / judge.scales, -30, 30)
    pairs = [units[:, i] * units[:, j] for i in range(3) for j in range(i, 3)]
    return np.column_stack([units, *pairs])


def test_relevant_candidates_are_likeliest_among_those_of_their_sample():
    signs, relevant = drawn()
    judge = ranked(signs, relevant)
    terms = literal_terms(judge, signs)

    def loss(weights):
        scores = (terms @ weights).reshape(-1, N_CANDIDATES)
        likelihoods = scores - logsumexp(scores, axis=1, keepdims=True)
        ridge = 2e-3 * relevant.sum() / 2 * (weights**2).sum()
        return ridge - likelihoods[relevant.reshape(scores.shape)].sum()

    best = minimize(loss, np.zeros(terms.shape[1]), method="BFGS")
    direction = judge.weights[1:] / np.linalg.norm(judge.weights[1:])
    np.testing.assert_allclose(direction, best.x / np.linalg.norm(best.x), atol=1e-3)
    expected = 1 / (1 + np.exp(-(judge.weights[0] + terms @ judge.weights[1:])))
    np.testing.assert_allclose(judge.chances(signs[None])[0], expected, rtol=1e-4)


def test_blocks_of_samples_change_nothing(monkeypatch):
    signs, relevant = drawn()
    sizes = np.r_[0, np.full(100, 7), 900, 0, np.full(140, 10)]  # some without a candidate
    whole = QuadraticJudge.learned(signs, relevant, sizes)
    monkeypatch.setattr(quadratic_judge, "_BLOCK", 64)
    np.testing.assert_allclose(
        QuadraticJudge.learned(signs, relevant, sizes).weights, whole.weights, atol=1e-4
    )


@pytest.mark.parametrize("learned", [ranked, BoostedJudge.learned])
def test_chances_come_true(learned):
    judge = learned(*drawn())
    signs, relevant = drawn(seed=1)
    chances = judge.chances(signs[None])[0]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        there = (chances >= low) & (chances < low + 0.2)
        if there.sum() > 50:
            assert abs(relevant[there].mean() - chances[there].mean()) < 0.1


@pytest.mark.parametrize("learned", [ranked, BoostedJudge.learned])
def test_a_sign_that_is_always_the_same_does_no_harm(learned):
    signs, relevant = drawn()
    signs[:, 2] = 7
    assert np.isfinite(learned(signs, relevant).chances(signs[None])).all()


@pytest.mark.parametrize("truth", [np.ones(3_000, bool), np.arange(3_000) == 7])
def test_all_relevant_or_one_alone_can_be_judged(truth):
    chances = ranked(drawn()[0], truth).chances(drawn()[0][None])
    assert np.isfinite(chances).all()


def test_boosted_trees_are_those_of_scikit_learn():
    signs, relevant = drawn()
    judge = BoostedJudge.learned(signs, relevant)
    theirs = HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.08, max_leaf_nodes=15, min_samples_leaf=200,
        early_stopping=False, random_state=0,
    ).fit(signs, relevant)  # fmt: skip
    others = drawn(seed=2)[0]
    expected = theirs.predict_proba(others)[:, 1]
    np.testing.assert_allclose(judge.chances(others[None])[0], expected, rtol=1e-5)


def test_words_are_the_product_of_sparse_rows():
    random = np.random.default_rng(0)
    X, Z = (csr_matrix(random_array((n, 30), density=0.2, rng=random, format="csr",
                                    dtype=np.float32)) for n in (6, 9))  # fmt: skip
    candidates = random.integers(-1, 9, (6, 5)).astype(np.int32)
    known = Known(Z, np.ones(9, np.int64))
    found = known.cosines(X, candidates)
    whole = (X @ Z.T).toarray()
    expected = np.where(candidates >= 0, np.take_along_axis(whole, candidates, 1), 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.array_equal(known.cosines(X[2:], candidates[2:]), found[2:])  # nothing is left over


@pytest.mark.parametrize("n", [1, 7, 60])
def test_labels_by_words_are_those_of_the_largest_products(n):
    random = np.random.default_rng(0)
    X, Z = (
        csr_matrix(
            random_array((rows, 30), density=0.1, rng=random, data_sampler=random.standard_normal)
        )
        for rows in (40, 50)
    )
    known = Known(Z, np.ones(50, np.int64))
    found = known.nearest(X, n)
    assert np.array_equal(known.nearest(X[9:], n), found[9:])  # nothing is left over
    for row, products in enumerate((X @ Z.T).toarray()):
        expected = np.sort(products[products > 0])[::-1][:n]
        labels = found[row][found[row] >= 0]
        assert len(set(labels)) == len(labels)
        np.testing.assert_allclose(np.sort(products[labels])[::-1], expected, rtol=1e-5)


def test_words_of_most_labels_are_passed_over():
    Z = np.zeros((300, 3), np.float32)
    Z[:, 0], Z[:100, 1], Z[7, 2] = 1, 1, 1
    kept = Known(csr_matrix(Z), np.ones(300, np.int64)).by_word.getnnz(axis=1)
    assert kept.tolist() == [0, 100, 1]


def test_removed_labels_are_not_found_by_their_words(model, tmp_path):
    X, Y, _ = topics()
    model.save(tmp_path / "model")
    again = um.load(tmp_path / "model").remove_labels([5])
    with_it = np.flatnonzero(Y.toarray()[:, 5])[:20]
    assert (model.predict_topk(X[with_it], k=10).labels == 5).any()
    assert not (again.predict_topk(X[with_it], k=10).labels == 5).any()


@pytest.mark.parametrize("n_samples", [2_000, 45_017])
def test_few_samples_are_held_out_and_near_copies_together(n_samples):
    sizes = np.random.default_rng(0).integers(1, 6, n_samples)
    group = np.repeat(np.arange(n_samples), sizes)[:n_samples]
    X = csr_matrix(np.eye(100, dtype=np.float32)[group % 100])
    held = held_out(X, seed=3)
    assert 0 < held.sum() <= min(4_000, n_samples / 10)
    boundary = np.flatnonzero(np.diff(held.astype(int)))
    assert (group[boundary] != group[boundary + 1]).all()
    assert (held != held_out(X, seed=4)).any()


def test_rows_that_are_all_alike_are_held_out_in_runs():
    held = held_out(csr_matrix(np.ones((4_000, 1), np.float32)), seed=0)
    assert held.sum() == 400
    assert (np.flatnonzero(np.diff(held.astype(int))) % 40 == 39).all()


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


SETTINGS = {"dim": 48, "epochs": 3, "refine_epochs": 1, "random_state": 0, "verbose": False}


@pytest.fixture(scope="module")
def model():
    X, Y, texts = topics()
    return um.SiameseXML(**SETTINGS).fit(X, Y, label_features=texts)


def test_learned_scores_are_nearly_chances_and_find_what_is_frequent(model):
    X, Y, _ = topics(600, seed=1)
    top = model.predict_topk(X, k=3)
    assert top.scores.min() >= 0
    assert top.scores.max() <= 1
    hits = np.take_along_axis(Y.toarray(), top.labels, axis=1)
    assert abs(top.scores.mean() - hits.mean()) < 0.2  # of label 0, ranking makes too much
    fixed = um.SiameseXML(**SETTINGS, weights="fixed")
    X_train, Y_train, texts = topics()
    fixed.fit(X_train, Y_train, label_features=texts)
    found, missed = (
        um.metrics.recall_at_k(Y, answers.predict_topk(X, k=2), 2) for answers in (model, fixed)
    )
    assert found > missed + 0.05
    assert model.score(X, Y) > 0.85  # one label for certain, one with a chance of a half
    assert fixed.judge_ is None


def test_tail_divides_by_the_propensity(model):
    X, Y, _ = topics()
    plain = model.predict_topk(X[:50], k=N_TOPICS).to_csr(N_TOPICS).toarray()
    model.set_params(tail=1.0)
    scored = model.predict_topk(X[:50], k=N_TOPICS).to_csr(N_TOPICS).toarray()
    model.set_params(tail=0.0)
    chances = um.metrics.propensity(Y)
    np.testing.assert_allclose(scored, plain / chances, rtol=1e-4, atol=1e-20)


def test_a_pickled_model_answers_the_same(model):
    X, _, _ = topics(50)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_topk(X, k=5) == model.predict_topk(X, k=5)


def test_an_answer_does_not_depend_on_the_samples_beside_it(model):
    X, _, _ = topics()
    together = model.predict_topk(X[:30], k=5)
    for row in range(30):
        assert model.predict_topk(X[row], k=5) == together[row : row + 1]


def test_new_labels_and_saving_keep_the_judge(model, tmp_path):
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


def test_a_companion_and_labels_without_texts_can_be_judged(monkeypatch):
    monkeypatch.setattr(siamese_xml, "LEAST_BESIDE_COMPANION", 2_000)
    X, Y, _ = topics()
    fused = um.SiameseXML(**SETTINGS, fuse_with=um.LabelTree(verbose=False)).fit(X, Y)
    X_test, Y_test, _ = topics(300, seed=2)
    assert isinstance(fused.judge_, BoostedJudge)
    assert set(fused.judge_.signs) <= set(range(-1, 7))
    assert fused.score(X_test, Y_test) > 0.6


def test_beside_a_companion_scores_are_geometric_means(monkeypatch):
    monkeypatch.setattr(siamese_xml, "LEAST_BESIDE_COMPANION", 2_000)
    X, Y, texts = topics()
    fused = um.SiameseXML(**SETTINGS, fuse_with=um.LabelTree(verbose=False))
    fused.fit(X, Y, label_features=texts).add_labels(X[:5], np.ones((5, 1)), texts[:1])
    asked = X[:40]
    top = fused.predict_topk(asked, k=3)
    way = fused._way(fused.label_counts_)
    answering = fused._answering(fused.towers_, fused._known, fused.companion_, True)
    (signs,) = answering.signs(asked)
    chances = way.judge.chances(signs.together())
    theirs = fused.companion_.predict_topk(asked, k=50).to_csr(N_TOPICS + 1).toarray()
    theirs = np.take_along_axis(theirs, np.maximum(signs.candidates, 0), axis=1)
    scores = np.sqrt(chances * np.maximum(theirs, 1e-3))
    is_new = signs.candidates == N_TOPICS
    assert is_new.any()
    scores[is_new] = chances[is_new]  # the companion does not know it
    scores[signs.candidates < 0] = -1
    np.testing.assert_allclose(np.sort(scores)[:, :-4:-1], top.scores, rtol=1e-5)


def test_beside_a_companion_scores_do_not_depend_on_k_and_labels_can_go(monkeypatch):
    monkeypatch.setattr(siamese_xml, "LEAST_BESIDE_COMPANION", 2_000)
    X, Y, texts = topics()
    fused = um.SiameseXML(**SETTINGS, shortlist=3, fuse_with=um.LabelTree(verbose=False))
    fused.fit(X, Y, label_features=texts)
    few, many = (fused.predict_topk(X[:40], k=k).to_csr(N_TOPICS).toarray() for k in (2, 30))
    np.testing.assert_array_equal(few[few > 0], many[few > 0])
    assert (fused.predict_topk(X[:40], k=1).labels == 5).any()
    fused.remove_labels([5])
    assert not (fused.predict_topk(X[:40], k=N_TOPICS).labels == 5).any()


def test_samples_with_high_scores_and_few_labels_do_not_turn_the_order():
    random = np.random.default_rng(0)
    signs, relevant = np.zeros((300, 10), np.float32), np.zeros((300, 10), bool)
    for sample in range(300):
        level, n_relevant = ((0.2, 5), (0.6, 1))[sample % 2]
        signs[sample] = level + 0.05 * random.standard_normal(10)
        relevant[sample, np.argsort(-signs[sample])[:n_relevant]] = True
    judge = ranked(signs.reshape(-1, 1), relevant.ravel())
    chances = judge.chances(signs[:, :, None])
    best = chances.argmax(axis=1)
    assert relevant[np.arange(300), best].mean() > 0.95
    assert abs(chances.mean() - relevant.mean()) < 0.01


def test_towers_without_held_out_samples_are_not_taken_for_those_with_all(tmp_path):
    X, Y, texts = topics(2_100)
    settings = {**SETTINGS, "epochs": 1, "checkpoint": str(tmp_path)}
    um.SiameseXML(**settings).fit(X, Y, label_features=texts)
    beside = um.SiameseXML(**settings, fuse_with=um.LabelTree(verbose=False))
    with pytest.raises(ModelPathError, match="another training"):
        beside.fit(X, Y, label_features=texts)


def test_few_samples_leave_a_companion_as_it_is():
    random = np.random.default_rng(0)
    X = np.eye(8, dtype=np.float32)[random.integers(0, 8, 2_500)]
    Y = X > 0
    model = um.SiameseXML(
        dim=8, epochs=1, refine_epochs=1, fuse_with=um.LabelTree(), random_state=0, verbose=False
    ).fit(X, Y, label_features=np.eye(8))
    assert model.judge_ is None
    assert (model.predict_topk(X, 1).labels == model.companion_.predict_topk(X, 1).labels).all()
