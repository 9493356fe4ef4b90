"""Nonsense at the API ends in an error of ours, also after fit."""

from fractions import Fraction

import numpy as np
import pytest

import umpteen as um
from tests.storage.golden import _label_texts, samples
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError, UmpteenError
from umpteen.linear import TreeRecipe
from umpteen.softmax import SoftmaxRecipe

X, Y = samples()
HUGE = 10**400


@pytest.mark.parametrize(
    "recipe", [{"loss": "logistic"}, TreeRecipe, SoftmaxRecipe(), "x", 7, np.ones(2)],
    ids=["dict", "class", "other", "text", "number", "array"],
)  # fmt: skip
def test_set_params_on_another_recipe(recipe):
    with pytest.raises(ParameterError):
        um.LabelTree(recipe=recipe).set_params(recipe__tolerance=0.5)
    with pytest.raises(ParameterError):
        um.LabelTree().set_params(recipe=recipe, recipe__tolerance=0.5)


@pytest.mark.parametrize("name", ["path_weight", "tolerance"])
def test_huge_numbers_in_a_recipe(name):
    with pytest.raises(ParameterError, match="exceeds 64 bits"):
        um.LabelTree(recipe=TreeRecipe(**{name: HUGE})).fit(X, Y)


def test_huge_numbers():
    for parameters in ({"cost": HUGE}, {"beam_width": 10**30}):
        with pytest.raises(ParameterError, match="exceeds 64 bits"):
            um.LabelTree(**parameters).fit(X, Y)


def test_fractions():
    with pytest.raises(ParameterError, match="use a float"):
        TreeRecipe(path_weight=Fraction(1, 2))


@pytest.mark.parametrize(
    "change",
    [{"tail": "x"}, {"tail": None}, {"tail": [0.5]}, {"tail": HUGE}, {"tail": float("nan")},
     {"tail": -0.5}, {"tail": 2.0}, {"n_candidates": -1}, {"n_candidates": "x"}],
    ids=str,
)  # fmt: skip
def test_an_ensemble_changed_after_fit(change):
    """`tail` "may be changed after fit"; NaN even gives answers of NaN."""
    model = um.Ensemble([um.LabelTree(), um.NearestCentroid()]).fit(X, Y)
    with pytest.raises(ParameterError):
        model.set_params(**change).predict_topk(X)


@pytest.mark.parametrize(
    "change",
    [{"beam_width": "x"}, {"beam_width": None}, {"beam_width": 10**30}, {"recipe": {"a": 1}},
     {"recipe": SoftmaxRecipe()}, {"n_jobs": "x"}, {"n_jobs": 1.5}],
    ids=str,
)  # fmt: skip
def test_a_tree_changed_after_fit(change):
    model = um.LabelTree().fit(X, Y)
    with pytest.raises(ParameterError):
        model.set_params(**change).predict_topk(X)


def test_ragged_validation():
    with pytest.raises(ParameterError):
        um.NearestCentroid().fit_validated(X, Y, [[1], [1, 2]])


def test_label_features_of_a_method_that_takes_none():
    mask = np.arange(X.shape[0]) % 5 == 0
    with pytest.raises(ParameterError, match="does not learn from label features"):
        um.NearestCentroid().fit_validated(X, Y, mask, 5, _label_texts())


@pytest.mark.parametrize(
    "model",
    [um.LabelTree(), um.Ensemble([um.LabelTree(), um.NearestCentroid()])],
    ids=lambda model: type(model).__name__,
)
def test_explain_no_sample(model):
    with pytest.raises(UmpteenError):
        model.fit(X, Y).explain(X[:0], 0)


@pytest.mark.parametrize("features", ["x", np.ones((3, 2)), np.full((18, 24), np.nan)], ids=type)
def test_label_features_that_no_member_takes_are_checked_too(features):
    with pytest.raises(UmpteenError):
        um.Ensemble([um.NearestCentroid()]).fit(X, Y, label_features=features)


def test_fit_on_a_class():
    """Forgotten brackets: the first argument is in the place of the object."""
    with pytest.raises(ParameterError, match=r"a list is in the place .* Tagger\(\).fit"):
        um.Tagger.fit(["a text"], [["label"]])


def test_transposed_features():
    with pytest.raises(LabelsShapeError, match=r"X looks transposed: pass X.T"):
        um.LabelTree().fit(X.T, Y)


def test_a_model_in_place_of_answers():
    model = um.LabelTree().fit(X, Y)
    with pytest.raises(LabelsError, match=r"a LabelTree; .* evaluate\(model.predict_topk"):
        um.evaluate(model, X, Y)


def test_a_model_in_place_of_its_folder(tmp_path):
    with pytest.raises(ParameterError, match=r"a LabelTree; .*: model.save\(folder\)"):
        um.cluster.predict(um.LabelTree(), "*.jsonl", tmp_path)


def test_the_name_of_a_language_in_place_of_its_code():
    with pytest.raises(ParameterError, match="did you mean 'en'"):
        um.Tagger(language="English").fit(["a text"], [["label"]])


def test_seconds_of_an_estimate_are_a_plain_number():
    assert type(um.LabelTree().estimate(X, Y).seconds) is float
