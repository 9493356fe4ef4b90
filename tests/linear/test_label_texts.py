"""Label texts and names: the evidence for candidates, and when a ranker learns from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array, vstack
from sklearn.preprocessing import normalize

import umpteen as um
from tests.engines import OtherProcesses
from umpteen import parallel
from umpteen.errors import FeaturesError
from umpteen.kernels.blending import N_EVIDENCE, blend, join_evidence
from umpteen.kernels.compiling import frozen
from umpteen.kernels.topk import frozen_csr
from umpteen.linear import LabelTree, NameFeatures
from umpteen.linear.label_texts import LabelTexts
from umpteen.linear.weighing import choose
from umpteen.metrics import precision_at_k

N_LABELS, N_OWN, N_COMMON = 150, 3, 300
N_FEATURES = N_LABELS * N_OWN + N_COMMON


def problem(n, seed):
    """Samples with two of the three words of each of their two labels, and six misleading words."""
    random = np.random.default_rng(seed)
    X, Y = np.zeros((n, N_FEATURES), np.float32), np.zeros((n, N_LABELS), np.float32)
    for i in range(n):
        for label in random.choice(N_LABELS, 2, replace=False):
            Y[i, label] = 1
            X[i, label * N_OWN + random.choice(N_OWN, 2, replace=False)] = 1
        X[i, random.choice(N_LABELS * N_OWN, 6)] = 1
        X[i, N_LABELS * N_OWN + random.choice(N_COMMON, 8)] = 1
    return csr_matrix(X), csr_matrix(Y)


def own_words(n_labels=N_LABELS):
    names = np.zeros((n_labels, N_FEATURES), np.float32)
    for label in range(n_labels):
        names[label, label * N_OWN : label * N_OWN + N_OWN] = 1
    return csr_matrix(names)


X, Y = problem(1600, 0)
X_TEST, Y_TEST = problem(500, 1)
NAMES = own_words()


def tree(**changes):
    return LabelTree(random_state=0, verbose=False).set_params(**changes)


def p_at_2(model):
    return float(precision_at_k(Y_TEST, model.predict_topk(X_TEST, 2), 2))


@pytest.fixture(scope="module")
def ranked():
    model = tree().fit(X, Y, label_features=NAMES)
    assert model.label_texts_.ranker is not None
    return model


@pytest.fixture(scope="module")
def nameless():
    return tree().fit(X, Y)


# --- the kernels


def rows_of(matrix):
    return [
        dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in (matrix[i] for i in range(matrix.shape[0]))
    ]


def literal_evidence(samples, labels, names, starts, tree_labels, tree_scores, near, log_counts):
    found = []
    labels, names = rows_of(labels), rows_of(names)
    for sample, own_labels, scores, own_near in zip(
        rows_of(samples), tree_labels.tolist(), tree_scores.tolist(), near.tolist(), strict=True
    ):
        slots = []
        for slot, label in enumerate([*own_labels, *own_near]):
            if label < 0 or label in [one and one[0] for one in slots]:
                slots.append(None)
                continue
            in_tree = slot < len(own_labels)
            score = scores[slot] if in_tree else 0.0
            cosine = sum(value * sample.get(word, 0) for word, value in labels[label].items())
            shares, lengths = [0.0], [0]
            for name in names[starts[label] : starts[label + 1]]:
                shares.append(sum(v * v for word, v in name.items() if word in sample))
                lengths.append(len(name) if shares[-1] > 0.999 else 0)
            slots.append(
                (label, [
                    score, np.log(score + 1e-4), 0, 1 / (1 + slot) if in_tree else 0, cosine, 0,
                    max(shares), max(lengths), log_counts[label],
                ])
            )  # fmt: skip
        best = [max([0, *(one[1][column] for one in slots if one)]) for column in (0, 4)]
        for one in filter(None, slots):
            one[1][2], one[1][5] = one[1][0] - best[0], one[1][4] - best[1]
        found.append(slots)
    return found


def sparse(random, shape, density):
    matrix = csr_matrix(random_array(shape, density=density, rng=random), dtype=np.float32)
    return csr_matrix(normalize(matrix)) if shape[0] else matrix


@st.composite
def evidence_inputs(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_labels, n_features = (draw(st.integers(1, most)) for most in (5, 8, 12))
    n_tree, n_near = min(n_labels, draw(st.integers(1, 5))), draw(st.integers(0, 6))
    starts = np.cumsum([0, *random.integers(0, 4, n_labels)])
    labels = sparse(random, (n_labels, n_features), 0.4)
    names = sparse(random, (int(starts[-1]), n_features), 0.3)
    removed = np.repeat(random.random(n_labels) < 0.2, np.diff(starts))
    names = csr_matrix(names.multiply(~removed[:, None]), dtype=np.float32)
    names.eliminate_zeros()
    tree_labels = np.array([random.permutation(n_labels)[:n_tree] for _ in range(n)], np.int32)
    tree_labels[random.random(tree_labels.shape) < 0.2] = -1
    tree_scores = -np.sort(-random.random((n, n_tree)), axis=1).astype(np.float32)
    near = random.integers(-1, n_labels, (n, n_near)).astype(np.int32)
    counts = np.log1p(random.integers(1, 9, n_labels)).astype(np.float32)
    samples = sparse(random, (n, n_features), 0.5)
    return samples, labels, names, starts, tree_labels, tree_scores, near, counts


@settings(deadline=None, max_examples=60)
@given(evidence_inputs())
def test_evidence_is_that_of_a_literal_version(inputs):
    samples, labels, names, starts, *rest = inputs
    found = join_evidence(
        frozen_csr(samples),
        frozen_csr(labels),
        frozen_csr(names),
        *frozen((starts, *rest)),
        samples.shape[1],
    )
    expected = literal_evidence(*inputs)
    assert found[1].shape[2] == N_EVIDENCE
    for labels_found, evidence, slots in zip(*found, expected, strict=True):
        assert labels_found.tolist() == [one[0] if one else -1 for one in slots]
        for values, one in zip(evidence, slots, strict=True):
            if one:
                np.testing.assert_allclose(values, one[1], atol=2e-5)


@settings(deadline=None, max_examples=40)
@given(evidence_inputs())
def test_a_weighed_cosine_ranks_each_label_once(inputs):
    samples, labels, _, _, tree_labels, tree_scores, near, _ = inputs
    k, weight = 4, np.float32(0.5)
    found, scores = blend(
        frozen_csr(samples), frozen_csr(labels), *frozen((tree_labels, tree_scores, near)), weight,
        k, samples.shape[1],
    )  # fmt: skip
    cosines = (samples @ labels.T).toarray().clip(0, 1)
    for i, own in enumerate(found):
        total = {int(label): weight * cosines[i, label] / 1.5 for label in near[i] if label >= 0}
        total = {label: score for label, score in total.items() if score > 0}
        for label, score in zip(tree_labels[i].tolist(), tree_scores[i].tolist(), strict=True):
            if label >= 0:
                total[label] = (score + weight * cosines[i, label]) / 1.5
        kept = own[own >= 0].tolist()
        assert len({*kept}) == len(kept) == min(k, len(total))
        np.testing.assert_allclose(scores[i][: len(kept)], [total[x] for x in kept], atol=1e-5)
        np.testing.assert_allclose(
            scores[i][: len(kept)], sorted(total.values(), reverse=True)[: len(kept)], atol=1e-5
        )


# --- what is chosen


def test_names_that_say_much_are_used_and_help(ranked, nameless):
    assert p_at_2(ranked) > p_at_2(nameless) + 0.05


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_names_that_say_nothing_do_no_harm(nameless, seed):
    random = np.random.default_rng(seed)
    noise = csr_matrix((random.random(NAMES.shape) < 3 / N_FEATURES).astype(np.float32))
    # The ranker also knows the rank in the tree and the frequency, so it may gain, not lose.
    assert p_at_2(tree().fit(X, Y, label_features=noise)) > p_at_2(nameless) - 0.01


@pytest.mark.parametrize("several", [False, True])
def test_a_text_that_is_a_name_speaks_for_no_other_label(several):
    """Its cosine is larger than any that the ranker learned from."""
    names = two_names() if several else None
    model = tree().fit(X, Y, label_features=NAMES, label_names=names)
    assert model.label_texts_.ranker is not None
    top = model.predict_topk(NAMES, 5)
    np.testing.assert_array_equal(top.labels[:, 0], np.arange(N_LABELS))
    assert (top.scores[:, 0] > 10 * top.scores[:, 1]).all()
    assert top.scores[:, 1].max() < 0.1


def test_the_first_labels_do_not_depend_on_k(ranked):
    longest = ranked.predict_topk(X_TEST, 100)
    for k in (1, 5, 30, 31, 45, 60, 61):
        shorter = ranked.predict_topk(X_TEST, k)
        np.testing.assert_array_equal(shorter.labels, longest.labels[:, :k])
        np.testing.assert_array_equal(shorter.scores, longest.scores[:, :k])


def test_as_many_labels_as_the_tree_finds(ranked, nameless):
    """Near ones add to them: none gets lost for an empty place."""
    found = (ranked.predict_topk(X_TEST, 50, beam_width=1000).labels >= 0).sum(axis=1)
    assert (found == 50).all()


def test_any_number_of_threads_gives_the_same_bits(ranked):
    one, two = (tree(n_jobs=n).fit(X, Y, label_features=NAMES) for n in (1, 2))
    found = one.predict_topk(X_TEST, 9)
    np.testing.assert_array_equal(found.scores, two.predict_topk(X_TEST, 9).scores)
    np.testing.assert_array_equal(found.labels, two.predict_topk(X_TEST, 9).labels)


def test_a_saved_ranker_answers_the_same(ranked, tmp_path):
    um.storage.save(ranked, tmp_path / "m")
    top, again = (model.predict_topk(X_TEST, 40) for model in (ranked, um.load(tmp_path / "m")))
    np.testing.assert_array_equal(top.labels, again.labels)
    np.testing.assert_array_equal(top.scores, again.scores)


def test_explained_scores_are_predicted_ones(ranked):
    top = ranked.predict_topk(X_TEST[:20], 5)
    for i in range(20):
        for label, score in zip(top.labels[i].tolist(), top.scores[i].tolist(), strict=True):
            why = ranked.explain(X_TEST[i], label)
            assert why.is_ranked
            assert why.score == score
            assert why.text_weight == 0
            words = set(X_TEST[i].indices) & set(NAMES[label].indices)
            assert why.covered == pytest.approx(len(words) / N_OWN)


def test_answers_to_the_validation_split_did_not_learn_from_it():
    random = np.random.default_rng(3)
    noise = random.integers(0, 2, (600, 100)).astype(np.float32)
    Y_noise = np.zeros((600, 60), np.float32)
    for row in Y_noise:
        row[random.choice(60, 3, replace=False)] = 1
    names = csr_matrix((random.random((60, 100)) < 0.05).astype(np.float32))
    split = np.arange(600) % 3 == 0
    model = tree()
    top = model.fit_validated(csr_matrix(noise), csr_matrix(Y_noise), split, 5, names)
    assert float(precision_at_k(csr_matrix(Y_noise[split]), top, 5)) == pytest.approx(
        0.05, abs=0.03
    )


# --- names


def test_one_name_each_is_the_same_as_none(ranked):
    names = NameFeatures(NAMES, np.arange(N_LABELS + 1))
    again = tree().fit(X, Y, label_features=NAMES, label_names=names)
    np.testing.assert_array_equal(
        ranked.predict_topk(X_TEST, 9).scores, again.predict_topk(X_TEST, 9).scores
    )


def two_names(n_labels=N_LABELS):
    """All words of each label, and the first two."""
    names = own_words(n_labels)[np.repeat(np.arange(n_labels), 2)].toarray()
    names[2 * np.arange(n_labels) + 1, np.arange(n_labels) * N_OWN + 2] = 0
    return NameFeatures(csr_matrix(names), 2 * np.arange(n_labels + 1))


@pytest.mark.parametrize("weight", ["auto", 0.5])
def test_a_label_of_several_names_is_answered_once(weight):
    model = tree(recipe__label_text_weight=weight)
    model.fit(X, Y, label_features=NAMES, label_names=two_names())
    assert (model.label_texts_.ranker is not None) == (weight == "auto")
    for row in model.predict_topk(X_TEST, 70).labels:
        kept = row[row >= 0]
        assert len(np.unique(kept)) == len(kept)


@pytest.mark.parametrize("starts", [[0, 1], np.arange(N_LABELS + 1) + 1, "falling", "halves"])
def test_names_that_do_not_fit_labels_are_refused(starts):
    if isinstance(starts, str):
        starts = np.arange(N_LABELS + 1.0) if starts == "halves" else np.arange(N_LABELS + 1)[::-1]
    with pytest.raises(FeaturesError, match=r"label_names\.starts does not divide 150 names"):
        tree().fit(X, Y, label_features=NAMES, label_names=NameFeatures(NAMES, starts))


def test_names_of_other_features_are_refused():
    names = NameFeatures(NAMES[:, :7], np.arange(N_LABELS + 1))
    with pytest.raises(FeaturesError, match="label_names has 7 features"):
        tree().fit(X, Y, label_features=NAMES, label_names=names)


# --- labels come and go


@pytest.mark.parametrize("names", [None, two_names()])
def test_removed_labels_are_never_found(names):
    model = tree().fit(X, Y, label_features=NAMES, label_names=names).remove_labels([3, 77])
    assert model.label_texts_.ranker is not None
    texts = vstack([NAMES[3], NAMES[77], X_TEST]).tocsr()
    assert not np.isin(model.predict_topk(texts, 100).labels, [3, 77]).any()


@pytest.mark.parametrize("names", [None, two_names(N_LABELS - 1)])
def test_added_labels_are_found_by_their_text(names):
    rest = Y[:, [N_LABELS - 1]].toarray().ravel() == 0
    model = tree().fit(X[rest], Y[rest, :-1], label_features=NAMES[:-1], label_names=names)
    assert model.label_texts_.ranker is not None
    new = NAMES[[N_LABELS - 1]]
    assert model.predict_topk(new, 5).labels.max() < N_LABELS - 1
    own = csr_matrix(vstack([new, X[rest][:100]]))
    model.add_labels(own, [[0], *[[]] * 100], label_features=new)
    assert model.predict_topk(new, 1).labels.tolist() == [[N_LABELS - 1]]
    assert model.explain(new, N_LABELS - 1).covered == pytest.approx(1)


# --- what does not decide


def chosen(Y, split, features=NAMES, samples=X):
    """What is chosen where the tree finds nothing but the first labels."""
    texts = LabelTexts.of(features, np.bincount(Y.indices, minlength=Y.shape[1]))
    n = int(split.sum())
    best = np.tile(np.arange(5, dtype=np.int32), (n, 1)), np.tile(np.float32(0.5), (n, 5))
    return choose(texts, samples, Y, split, best, 5, 1).texts


def test_labels_that_only_the_split_has_do_not_decide():
    """Label texts would find them all, and be of no use otherwise."""
    split = np.arange(300) % 2 == 0
    labels = np.where(split, 50 + np.arange(300) % 100, np.arange(300) % 5)
    Y_few = csr_matrix((np.ones(300), labels, np.arange(301)), shape=(300, N_LABELS))
    samples = csr_matrix(NAMES[labels] + 0.5 * X[:300])
    assert not chosen(Y_few, split, samples=samples).is_used
    elsewhere = csr_matrix(vstack([Y_few, Y_few[split]]))
    twice = csr_matrix(vstack([samples, samples[split]]))
    more = np.r_[split, np.zeros(150, bool)]
    assert chosen(elsewhere, more, samples=twice).is_used


def test_samples_that_repeat_their_label_do_not_decide():
    labels = np.arange(300) % N_LABELS
    Y_few = csr_matrix((np.ones(300), labels, np.arange(301)), shape=(300, N_LABELS))
    split = np.arange(300) < 150
    assert not chosen(Y_few, split, samples=NAMES[labels]).is_used
    assert chosen(Y_few, split, samples=csr_matrix(NAMES[labels] + 0.5 * X[:300])).is_used


@pytest.mark.parametrize("weight", ["auto", 0.5], ids=["ranker", "weight"])
def test_same_bits_in_other_processes(ranked, weight, monkeypatch):
    """Names take most of the time of a prediction, so a cluster has to look for them."""
    monkeypatch.setattr("umpteen.sharding._WORTH_SENDING", 0)
    monkeypatch.setattr("umpteen.linear.label_texts._BLOCK", 90)

    def answers():
        model = tree(recipe__label_text_weight=weight).fit(X, Y, label_features=NAMES)
        top = model.predict_topk(X_TEST, 5)
        return top.labels.tobytes() + top.scores.tobytes()

    expected, engine = answers(), OtherProcesses()
    try:
        with parallel.engine(engine):
            assert answers() == expected
        before = engine.n_tasks
        with parallel.engine(engine):
            ranked.label_texts_.nearest(X_TEST, None)
        assert engine.n_tasks == before + 6
    finally:
        engine.close()
