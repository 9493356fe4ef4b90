"""scikit-learn's own tools and checks, on every classifier."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from .cases import CASES, checkerboard, kinds, noise

# scikit-learn's checks that cannot apply, and why.
SPARSE_MULTI_LABEL = {
    "check_n_features_in_after_fitting": "calls score(y=...), where ours is score(X, Y); the "
    "number of features itself is checked in test_bad_inputs",
    "check_dtype_object": "object arrays are refused with advice: they hide texts and None",
    "check_classifiers_classes": "labels are ids; Tagger takes names",
    "check_classifiers_multilabel_representation_invariance": "a list of lists holds label ids, "
    "since an indicator of a million columns is not written as lists",
    "check_classifiers_multilabel_output_format_predict": "predict is sparse: a dense indicator "
    "of a million labels does not fit memory",
    "check_supervised_y_2d": "a column of ids is refused with advice: it would be read as an "
    "indicator of one label",
}

DRIVEN_BY_SCIKIT_LEARN = {name: case for name, case in CASES.items() if case.fits_on_labels_alone}


def _failed_checks(model):
    return SPARSE_MULTI_LABEL | CASES[type(model).__name__].failed_checks


@parametrize_with_checks(
    [case.build() for case in DRIVEN_BY_SCIKIT_LEARN.values() if case.is_available],
    expected_failed_checks=_failed_checks,
)
def test_scikit_learn_checks(estimator, check):
    """Where these fail, some tool of scikit-learn's world does not work with the classifier."""
    check(estimator)


@pytest.fixture(params=DRIVEN_BY_SCIKIT_LEARN)
def model(request):
    case = CASES[request.param]
    pytest.importorskip(case.needs)
    return case.build()


@pytest.mark.parametrize("step", [TfidfTransformer(), Normalizer()])
def test_pipeline(model, step):
    X, Y = checkerboard()
    pipeline = make_pipeline(step, model).fit(X, Y)
    assert pipeline.score(X, Y) == 1.0
    assert pipeline.predict(X).shape == Y.shape


@pytest.mark.parametrize("labels", ["sparse", "dense", "single"])
def test_grid_search(model, labels):
    X, Y = checkerboard()
    Y = {"sparse": Y, "dense": Y.toarray(), "single": kinds()}[labels]
    search = GridSearchCV(model, {"n_jobs": [1, 2]}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_score_ == 1.0
    assert search.score(X, Y) == 1.0


@pytest.mark.parametrize("labels", ["dense", "single"])
def test_cross_val_score(model, labels):
    """Its `y` must be an array, by its own rule; sparse labels go through GridSearchCV above."""
    X, Y = checkerboard()
    scores = cross_val_score(
        model, X, Y.toarray() if labels == "dense" else kinds(), cv=3, error_score="raise"
    )
    np.testing.assert_array_equal(scores, 1.0)


def test_cross_validation_may_meet_a_label_for_the_first_time(model):
    """The rarest labels fall into one fold: that costs score, it is no error."""
    X, _ = noise(60)
    ids = np.arange(60) // 2
    scores = cross_val_score(model, X, ids, cv=_InOrder(), error_score="raise")
    np.testing.assert_array_equal(scores, 0.0)


class _InOrder:
    """Train on the first half, test on the second."""

    def split(self, X, y=None, groups=None):
        half = X.shape[0] // 2
        yield np.arange(half), np.arange(half, X.shape[0])

    def get_n_splits(self, X=None, y=None, groups=None):
        return 1
