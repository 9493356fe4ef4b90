"""scikit-learn's model selection with sparse labels, with our metrics, and a list of estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import umpteen as um
from umpteen.base import AddsLabels, ExtremeClassifier
from umpteen.errors import ParameterError
from umpteen.metrics import f1_at_k, ndcg_at_k, precision_at_k, recall_at_k

TEXTS = ["dough flour", "kettle leaves", "dough oven", "leaves cup", "flour oven", "cup kettle"] * 6
NAMES = [["bread"], ["tea"], ["bread", "oven"], ["tea"], ["bread", "oven"], ["tea"]] * 6
Y = um.data.Dataset.from_samples(um.data.Samples(texts=TEXTS, labels=NAMES)).train.Y
X = CountVectorizer().fit_transform(TEXTS).astype(np.float32)
LITERAL = {
    "precision": precision_at_k, "recall": recall_at_k, "nDCG": ndcg_at_k, "F1": f1_at_k,
}  # fmt: skip


@pytest.mark.parametrize("metric", LITERAL)
@pytest.mark.parametrize("k", [1, 2])
def test_a_scorer_is_the_metric_of_the_answers(metric, k):
    model = um.NearestCentroid().fit(X[:9], Y[:9])
    expected = LITERAL[metric](Y[9:], model.predict_topk(X[9:], k), k)
    score = um.scorer(f"{metric}@{k}")
    assert score(model, X[9:], Y[9:]) == pytest.approx(expected)
    pipeline = make_pipeline(CountVectorizer(), um.NearestCentroid()).fit(TEXTS[:9], Y[:9])
    assert score(pipeline, TEXTS[9:], Y[9:]) == pytest.approx(expected)
    assert str(score) == f"{metric}@{k}"


def test_a_scorer_takes_names_and_misses_unknown_ones():
    tagger = um.Tagger(um.NearestCentroid(), language=None, calibrate=False).fit(TEXTS, NAMES)
    score = um.scorer("precision@1")
    assert score(tagger, TEXTS, NAMES) == tagger.score(TEXTS, NAMES)
    assert score(tagger, ["dough"], [["never seen"]]) == 0.0


@pytest.mark.parametrize("name", ["", "P@1", "precision", "precision@0", "ndcg@5", "nDCG@x", None])
def test_what_is_no_metric_is_refused(name):
    with pytest.raises(ParameterError, match="such as 'nDCG@5'"):
        um.scorer(name)


def test_a_search_takes_sparse_labels_through_a_pipeline():
    pipeline = make_pipeline(CountVectorizer(), um.NearestCentroid())
    grid = {"countvectorizer__binary": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring=um.scorer("nDCG@2"), error_score="raise")
    search.fit(TEXTS, Y)
    folds = KFold(3).split(TEXTS)
    for fold, (train, test) in enumerate(folds):
        model = clone(pipeline).set_params(**search.best_params_)
        model.fit([TEXTS[i] for i in train], Y[train])
        expected = um.scorer("nDCG@2")(model, [TEXTS[i] for i in test], Y[test])
        found = search.cv_results_[f"split{fold}_test_score"][search.best_index_]
        assert found == pytest.approx(expected)


def test_cross_validation_of_a_tagger():
    tagger = um.Tagger(um.NearestCentroid(), language=None, calibrate=False)
    labels = np.array(NAMES, dtype=object)
    scores = cross_val_score(
        tagger, TEXTS, labels, cv=KFold(3), scoring=um.scorer("recall@2"), error_score="raise"
    )
    assert (scores > 0.9).all()


def test_a_search_over_nothing_is_cross_validation_with_sparse_labels():
    search = GridSearchCV(
        um.NearestCentroid(), {}, cv=KFold(3), scoring=um.scorer("precision@1"), error_score="raise"
    ).fit(X, Y)
    scores = [search.cv_results_[f"split{fold}_test_score"][0] for fold in range(3)]
    ids = np.array([0 if "bread" in names else 2 for names in NAMES])
    assert len(ids) == len(TEXTS)
    assert np.mean(scores) == pytest.approx(search.best_score_)
    assert search.best_score_ > 0.9


def test_all_estimators_are_listed():
    found = dict(um.all_estimators())
    assert {"LabelTree", "NearestCentroid", "Tagger", "Vectorizer", "Ensemble"} <= set(found)
    assert "ExtremeClassifier" not in found
    assert list(found) == sorted(found)
    for one in found.values():
        clone(one([um.NearestCentroid()]) if one is um.Ensemble else _built(one))


def _built(one):
    try:
        return one()
    except TypeError:  # it takes a classifier
        return one(um.NearestCentroid())


def test_estimators_may_be_listed_by_what_they_can():
    able = dict(um.all_estimators(AddsLabels))
    assert "LabelTree" in able
    assert all(issubclass(one, AddsLabels) for one in able.values())
    assert "Tagger" not in dict(um.all_estimators(ExtremeClassifier))
