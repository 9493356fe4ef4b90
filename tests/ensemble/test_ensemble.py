"""An ensemble is worth its members, and says who did what."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack

import umpteen as um
from umpteen.base import ExtremeClassifier, TopK
from umpteen.errors import ParameterError
from umpteen.kernels.topk import dense_topk
from umpteen.linear import NameFeatures
from umpteen.metrics import ndcg_at_k

N, N_LABELS = 1_500, 30


def two_views(seed=0, n=N, wrong=0.0):
    """Half of the samples are told apart by the first features, the others by the last.

    Some labels may be `wrong`: nobody can know them, but they can be learned by heart.
    """
    random = np.random.default_rng(seed)
    y = random.integers(0, N_LABELS, n)
    views = np.zeros((2, n, N_LABELS), np.float32)
    views[random.integers(0, 2, n), np.arange(n), y] = 1
    views += 0.4 * (random.random(views.shape) < 0.05)
    y = np.where(random.random(n) < wrong, random.integers(0, N_LABELS, n), y)
    return csr_matrix(np.hstack(views)), csr_matrix(np.eye(N_LABELS, dtype=np.float32)[y])


class OneView(ExtremeClassifier):
    """Looks at half of the features only; `knows=None` is a guess."""

    n_seen_: int

    def __init__(self, view=0, knows=True):
        self.view, self.knows = view, knows

    def fit(self, X, Y):
        X, Y = self._check_fit(X, Y)
        self.n_seen_ = X.shape[0]
        return self

    def _topk(self, X, k):
        X = csr_matrix(X).toarray()
        scores = X[:, self.view * N_LABELS : (self.view + 1) * N_LABELS]
        if not self.knows:
            scores = np.random.default_rng(0).random(scores.shape).astype(np.float32)
        return TopK(*dense_topk(np.ascontiguousarray(scores, np.float32), k))


class Parrot(ExtremeClassifier):
    """Knows all training samples by heart, and nothing else."""

    X_: csr_matrix
    Y_: csr_matrix

    def fit(self, X, Y):
        self.X_, self.Y_ = self._check_fit(X, Y)
        return self

    def _topk(self, X, k):
        same = (csr_matrix(X) @ self.X_.T).toarray()
        lengths = np.asarray(self.X_.multiply(self.X_).sum(axis=1)).ravel()
        exact = np.isclose(same, lengths) & np.isclose(same.max(axis=1)[:, None], lengths)
        return TopK(*dense_topk(np.asarray(exact @ self.Y_, np.float32), k))


def test_members_that_know_different_things_are_better_together():
    X, Y = two_views()
    test_X, test_Y = two_views(seed=1)
    members = [OneView(0), OneView(1)]
    model = um.Ensemble(members).fit(X, Y)
    alone = [m.fit(X, Y).score(test_X, test_Y) for m in members]
    assert max(alone) < 0.7
    assert model.score(test_X, test_Y) > 0.85
    assert model.combination_.only == -1
    assert set(model.validation_scores_) >= {"boosted trees", "OneView 1 alone", "OneView 2 alone"}


def test_a_member_that_guesses_does_no_harm():
    X, Y = two_views()
    test_X, test_Y = two_views(seed=1)
    best = OneView(0).fit(X, Y).score(test_X, test_Y)
    model = um.Ensemble([OneView(0), OneView(0, knows=False)]).fit(X, Y)
    assert model.score(test_X, test_Y) >= best - 0.01


def test_a_member_that_is_clearly_better_alone_is_kept_alone(monkeypatch):
    """Whatever went wrong with the weights, nobody gets worse answers than the best member's."""
    from umpteen.ensemble import combining

    monkeypatch.setattr(
        combining.BoostedTrees, "log_odds", lambda self, rows: -rows[..., 0] - rows[..., 3]
    )
    monkeypatch.setattr(combining, "_is_share", lambda scores: False)
    X, Y = two_views()
    model = um.Ensemble([OneView(0), OneView(1)]).fit(X, Y)
    assert model.combination_.only in (0, 1)
    member = model.members_[model.combination_.only]
    assert model.predict_topk(X, 3) == member.predict_topk(X, 3)
    other = next(
        label for label in range(N_LABELS) if label not in model.predict_topk(X[0], 5).labels
    )
    assert np.isfinite(model.explain(X[0], other).score)
    assert "alone" in max(model.validation_scores_, key=model.validation_scores_.get)


def test_who_knows_the_samples_by_heart_gets_no_credit_for_it():
    """Weights that are learned from training answers would trust the parrot with everything."""
    X, Y = two_views()
    test_X, test_Y = two_views(seed=1)
    model = um.Ensemble([Parrot(), um.LabelTree()]).fit(X, Y)
    tree = um.LabelTree().fit(X, Y)
    assert model.score(test_X, test_Y) >= tree.score(test_X, test_Y) - 0.02


def test_answers_to_the_validation_split_are_as_good_as_those_to_new_samples():
    X, Y = two_views(wrong=0.3)
    test_X, test_Y = two_views(seed=1, wrong=0.3)
    split = np.arange(N) % 4 == 0
    model = um.Ensemble([Parrot(), um.LabelTree(), OneView(1)])
    answers = model.fit_validated(X, Y, split, k=5)
    assert answers.labels.shape == (split.sum(), 5)
    validated = ndcg_at_k(Y[split], answers, 5)
    assert abs(validated - ndcg_at_k(test_Y, model.predict_topk(test_X, 5), 5)) < 0.05
    assert abs(validated - ndcg_at_k(Y, model.predict_topk(X, 5), 5)) > 0.05, "this one is unfair"


@pytest.mark.parametrize("k", [1, 7, N_LABELS])
def test_k_does_not_change_scores(k):
    X, Y = two_views()
    model = um.Ensemble([um.LabelTree(), um.NearestCentroid()], n_candidates=5).fit(X, Y)
    found, all_of_them = model.predict_topk(X[:50], k), model.predict_topk(X[:50], N_LABELS)
    assert found == all_of_them.first(k)
    assert (all_of_them.labels >= 0).sum(axis=1).max() <= 10, "five of each member"


def test_one_sample_is_answered_like_many():
    X, Y = two_views()
    model = um.Ensemble([um.LabelTree(), um.NearestCentroid()]).fit(X, Y)
    together = model.predict_topk(X[:9], 3)
    for row in range(9):
        assert model.predict_topk(X[row], 3) == together[[row]]


@pytest.mark.parametrize("member", ["tree", um.LabelTree])
def test_what_is_no_classifier_is_named(member):
    X, Y = two_views(n=20)
    with pytest.raises(ParameterError, match=rf"such as \[LabelTree\(\).*got .*{member!r}"):
        um.Ensemble([um.LabelTree(), member]).fit(X, Y)


def test_few_samples_are_weighed_equally():
    X, Y = two_views(n=45)
    model = um.Ensemble([OneView(0), OneView(1)], n_candidates=3).fit(X, Y)
    top = model.predict_topk(X, 1)
    answers = [member.predict_topk(X, 3) for member in model.members_]
    for row in range(45):
        totals = {}
        for answer in answers:
            for rank, label in enumerate(answer.labels[row].tolist()):
                if label >= 0:
                    totals[label] = totals.get(label, 0) + 60 / (60 + rank) / 2
        best = max(totals.values())
        assert top.scores[row, 0] == pytest.approx(best)
        assert top.labels[row, 0] == min(
            label for label, total in totals.items() if total > best - 1e-9
        )


def test_an_explanation_names_each_members_part():
    X, Y = two_views()
    model = um.Ensemble([OneView(0), OneView(1)]).fit(X, Y)
    first = np.flatnonzero(X[:, :N_LABELS].toarray().max(axis=1) == 1)[0]
    label = int(Y[first].indices[0])
    why = model.explain(X[first], label)
    assert [each.member for each in why.members] == ["OneView 1", "OneView 2"]
    assert why.members[0].rank == 1
    assert why.members[0].contribution > 0
    assert why.members[0].contribution > why.members[1].contribution
    top = model.predict_topk(X[first], 1)
    assert why.score == pytest.approx(float(top.scores[0, 0]))
    assert "OneView 1: score" in str(why)


def test_a_label_that_nobody_offers_is_explained_by_nobody():
    X, Y = two_views()
    model = um.Ensemble([um.LabelTree(), um.NearestCentroid()], n_candidates=2).fit(X, Y)
    offered = model.predict_topk(X[0], 4).labels[0]
    other = next(label for label in range(N_LABELS) if label not in offered)
    assert [each.rank for each in model.explain(X[0], other).members] == [None, None]


def test_labels_come_and_go_where_all_members_allow_it():
    X, Y = two_views()
    trees = um.Ensemble([um.LabelTree(), um.LabelTree(n_trees=2)]).fit(X[:, :-1], Y)
    new = csr_matrix((np.arange(N) % 50 == 0).astype(np.float32)[:, None])
    wide = csr_matrix(hstack([X[:, :-2], 3 * new]))
    trees = um.Ensemble([um.LabelTree(), um.LabelTree(n_trees=2)]).fit(wide, Y)
    trees.add_labels(wide, new)
    assert trees.n_labels_ == N_LABELS + 1
    assert N_LABELS in trees.predict_topk(wide[0], 3).labels
    trees.remove_labels([N_LABELS])
    assert N_LABELS not in trees.predict_topk(wide, N_LABELS + 1).labels
    both = um.Ensemble([um.LabelTree(), um.NearestCentroid()]).fit(X, Y)
    with pytest.raises(ParameterError, match="NearestCentroid cannot add labels"):
        both.add_labels(X, new)


def test_features_of_labels_reach_the_members_that_learn_from_them():
    X, Y = two_views()
    model = um.Ensemble([um.LabelTree(), um.NearestCentroid()])
    model.fit(X, Y, label_features=csr_matrix(np.eye(N_LABELS, X.shape[1], dtype=np.float32)))
    assert model.members_[0].label_texts_ is not None


def test_a_tagger_makes_probabilities_of_an_ensemble():
    texts = [f"word{i % 7} other{i % 3} common" for i in range(600)]
    labels = [[f"label{i % 7}"] for i in range(600)]
    tagger = um.Tagger(um.Ensemble([um.LabelTree.for_texts(), um.NearestCentroid()]))
    tagger.fit(texts, labels)
    assert tagger.calibrated
    ((name, chance),) = tagger.predict("word3", k=1)
    assert name == "label3"
    assert 0.5 < chance <= 1


def test_tail_divides_by_the_propensity():
    X, Y = two_views()
    model = um.Ensemble([OneView(0), OneView(1)]).fit(X, Y)
    plain = model.predict_topk(X[:50], k=N_LABELS).to_csr(N_LABELS).toarray()
    scored = model.set_params(tail=1.0).predict_topk(X[:50], k=N_LABELS).to_csr(N_LABELS).toarray()
    np.testing.assert_allclose(scored, plain / um.metrics.propensity(Y), rtol=1e-4)


def test_labels_that_only_the_split_has_tell_nothing():
    """All others are offered with a frequency: no frequency would mean relevant."""
    from umpteen.ensemble.combining import Candidates

    labels = np.array([[3, 1, -1], [0, 2, 3]], np.int32)
    found = Candidates(labels, np.zeros((2, 3, 4), np.float32)).without(np.arange(4) == 3)
    assert found.labels.tolist() == [[-1, 1, -1], [0, 2, -1]]
    random = np.random.default_rng(0)
    n = 2_000  # every label has one sample: whatever is right on the split has gone from the rest
    X = csr_matrix(random.random((n, 20)).astype(np.float32))
    model = um.Ensemble([um.NearestCentroid(), um.LabelTree()])
    model.fit(X, np.arange(n), label_features=X)
    assert model.validation_scores_ == {}


def test_a_member_that_looks_for_names_gets_each_name():
    """Joined to one text per label, a name that the sample has is lost among the others."""
    random = np.random.default_rng(0)
    X, Y = two_views()
    features = csr_matrix(random.random((N_LABELS, X.shape[1])) < 0.1, dtype=np.float32)
    names = NameFeatures(features[np.repeat(np.arange(N_LABELS), 2)], np.arange(N_LABELS + 1) * 2)
    split = np.arange(N) % 4 == 0
    model = um.Ensemble([um.LabelTree(), um.NearestCentroid()])
    model.fit_validated(X, Y, split, 5, features, names)
    alone = um.LabelTree()
    alone.fit_validated(X, Y, split, 5, features, names)
    assert model.members_[0].label_texts_.names is not None
    assert model.members_[0].predict_topk(X, 5) == alone.predict_topk(X, 5)
