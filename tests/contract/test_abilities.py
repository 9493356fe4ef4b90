"""What some classifiers can do beyond the contract is declared, and is called in one way."""

from inspect import signature

import numpy as np
import pytest

import umpteen.base as base
from umpteen.base import ExtremeClassifier, is_able
from umpteen.errors import ParameterError

from .cases import N_SAMPLES, checkerboard, classifiers, kinds

ABILITIES = {
    base.AddsLabels: "add_labels",
    base.Estimates: "estimate",
    base.Explains: "explain",
    base.ExplainsByWeights: "label_keywords",
    base.KnowsFeatures: "labels_with",
    base.LearnsFromLabelFeatures: "fit",
    base.LearnsRoughly: "roughly",
    base.RefitsLabels: "refit_labels",
    base.RemovesLabels: "remove_labels",
}


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.__name__)
def test_an_ability_has_one_signature(ability):
    """Whoever asks for an ability must not have to know which classifier it is."""
    method = ABILITIES[ability]
    expected = list(signature(getattr(ability, method)).parameters.values())
    found = [cls for cls in classifiers().values() if issubclass(cls, ability)]
    assert found
    for cls in found:
        ours = list(signature(getattr(cls, method)).parameters.values())[: len(expected)]
        assert [p.name for p in ours] == [p.name for p in expected], cls
        assert [p.default for p in ours] == [p.default for p in expected], cls
        assert [p.kind for p in ours] == [p.kind for p in expected], cls


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.__name__)
def test_what_a_classifier_can_do_is_declared(ability):
    """A method that nobody declared is not found by a tagger."""
    method = ABILITIES[ability]
    for cls in classifiers().values():
        if method == "fit":
            has = "label_features" in signature(cls.fit).parameters
        else:
            has = hasattr(cls, method)
        assert has == issubclass(cls, ability), cls


def test_what_starts_from_token_vectors_is_declared():
    for cls in classifiers().values():
        takes_them = "token_vectors" in signature(cls.fit).parameters
        assert takes_them == issubclass(cls, base.StartsFromTokenVectors), cls


def test_an_ensemble_can_do_what_all_members_can(case):
    import umpteen as um

    model = case.build()
    both = um.Ensemble([um.LabelTree(), model])
    for ability in (base.AddsLabels, base.RemovesLabels):
        assert is_able(both, ability) == is_able(model, ability)
    assert is_able(both, base.LearnsFromLabelFeatures)


def test_answers_to_the_validation_split_come_from_a_model_without_it(case):
    """Its labels are wrong on purpose: whoever learned from them would answer them."""
    X, Y = checkerboard()
    split = np.arange(N_SAMPLES) >= N_SAMPLES - 8
    wrong = Y.tolil()
    for row in np.flatnonzero(split):
        wrong[row] = Y[(row + 1) % N_SAMPLES].toarray()
    model = case.build()
    answers = model.fit_validated(X, wrong.tocsr(), split, k=1)
    assert len(answers) == 8
    right = Y[np.flatnonzero(split), answers.labels[:, 0]]
    assert np.asarray(right).ravel().sum() >= 7
    assert model.n_labels_ == Y.shape[1]


def test_there_are_no_more_validated_answers_than_labels(case):
    X, Y = checkerboard()
    answers = case.build().fit_validated(X, Y, np.arange(N_SAMPLES) % 5 == 0, k=10**6)
    assert answers.labels.shape == (N_SAMPLES // 5, Y.shape[1])


def test_a_validated_fit_is_a_fit(case):
    X, Y = checkerboard()
    model = case.build()
    model.fit_validated(X, Y, np.arange(N_SAMPLES) % 5 == 0, k=2)
    best_two = np.sort(model.predict_topk(X, k=2).labels, axis=1)
    np.testing.assert_array_equal(best_two.ravel(), Y.indices)


def test_single_labels_may_be_validated(case):
    X, _ = checkerboard()
    model = case.build()
    model.fit_validated(X, kinds(), np.arange(N_SAMPLES) % 5 == 0, k=1)
    np.testing.assert_array_equal(model.predict(X), kinds())


@pytest.mark.parametrize(
    "split", [np.zeros(N_SAMPLES, bool), np.ones(N_SAMPLES, bool), [True], np.arange(N_SAMPLES)]
)
def test_impossible_splits_are_refused(case, split):
    X, Y = checkerboard()
    with pytest.raises(ParameterError, match="validation"):
        case.build().fit_validated(X, Y, split)


def test_rough_copies_are_unfitted_and_keep_what_was_set():
    import umpteen as um

    tree = um.LabelTree(max_leaf=7, cost=2.0)
    rough = tree.roughly()
    assert rough is not tree
    assert rough.max_leaf == 7
    assert rough.cost < tree.cost == 2.0


def test_who_combines_classifiers_says_so():
    for cls in classifiers().values():
        assert ("members" in signature(cls).parameters) == issubclass(cls, base.Combines), cls


def test_every_ability_is_checked():
    declared = {found for found in vars(base).values() if isinstance(found, type)}
    others = {ExtremeClassifier, base.TopK, base.Recipe, base.HasRecipe, base.Combines}
    # Kinds of LearnsFromLabelFeatures
    others |= {base.WeighsLabelFeatures, base.MatchesLabelNames, base.StartsFromTokenVectors}
    assert declared - others == set(ABILITIES)
