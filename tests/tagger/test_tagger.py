"""Tagger as people meet it: texts in, names out, and advice where something is wrong."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

import umpteen as um
from umpteen.errors import (
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    NotFittedError,
    NotStorableError,
    ParameterError,
    TextsError,
)
from umpteen.tagger import Tagger
from umpteen.text import Vectorizer

from .made_up import about, make_up, name_of, words_of

TEXTS, LABELS = make_up(400)
TEST, RELEVANT = make_up(100, seed=1)
FRUIT = ["red apple", "green apple", "iron ore", "copper ore"]


def small_tree(**parameters):
    return um.LabelTree(max_leaf=6, branching=4).set_params(**parameters)


@pytest.fixture(scope="module")
def tagger():
    return Tagger(small_tree()).fit(TEXTS, LABELS)


CLASSIFIERS = {
    "default": lambda: None,
    "small tree": small_tree,
    "three trees": lambda: small_tree(n_trees=3),
    "logistic": lambda: small_tree(recipe__loss="logistic", cost=4.0),
    "centroid": um.NearestCentroid,
}
VECTORIZERS = {
    "default": lambda: None,
    "hashing": lambda: Vectorizer(hashing=2**14),
    "scikit-learn": TfidfVectorizer,
}


# --- what goes in and comes out


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("vectorizer", VECTORIZERS)
def test_names_in_names_out(classifier, vectorizer):
    tagger = Tagger(CLASSIFIERS[classifier](), vectorizer=VECTORIZERS[vectorizer]())
    assert tagger.fit(TEXTS, LABELS) is tagger
    assert tagger.score(TEST, RELEVANT) > 0.85
    for tags in tagger.predict(TEST, k=3):
        assert len(tags) == 3
        probabilities = [p for _, p in tags]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(0 <= p <= 1 for p in probabilities)
        assert all(type(name) is str for name, _ in tags)


def test_one_text_and_many_are_answered_alike(tagger):
    assert [tagger.predict(text) for text in TEST[:20]] == tagger.predict(TEST[:20])
    assert tagger.predict([]) == []
    assert tagger.predict(np.array(TEST[:3])) == tagger.predict(tuple(TEST[:3]))


def test_names_are_those_of_the_ids(tagger):
    top = tagger.predict_topk(TEST[:5], k=2)
    names = tagger.label_names_.names
    assert [{name for name, _ in tags} for tags in tagger.predict(TEST[:5], k=2)] == [
        {names[label] for label in row} for row in top.labels
    ]
    assert names == sorted({name for own in LABELS for name in own})


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([["a"], ["a", "b"], ["b"], []], ["a", "b"]),
        (["a", "a", "b", "b"], ["a", "b"]),
        ([1, 1, 20, 20], ["1", "20"]),
        ([("a", "b"), {"a"}, {"b"}, frozenset()], ["a", "b"]),
        ([["a", "a", "a"], ["a"], [], []], ["a"]),
        (np.array(["a", "a", "b", "b"]), ["a", "b"]),
        (np.array([[1], [1], [2], [2]]), ["1", "2"]),
        ((name for name in "aabb"), ["a", "b"]),
        ([[1.5, None.__class__], [], [], []], ["1.5", "<class 'NoneType'>"]),
        ([[], [], [], "only one"], ["only one"]),
    ],
)
def test_labels_in_the_forms_that_people_have(labels, names):
    tagger = Tagger().fit(FRUIT, labels)
    assert tagger.label_names_.names == names
    assert {name for tags in tagger.predict(FRUIT) for name, _ in tags} <= set(names)


def test_repetitions_count_once():
    twice = Tagger().fit(FRUIT, [["a", "a"], ["a"], ["b", "b", "b"], ["b"]])
    assert twice.label_counts_.tolist() == [2, 2]


@pytest.mark.parametrize("text", ["", "   ", "!?", "quite unheard of"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_text_without_known_words_gets_no_label(text, classifier):
    """A guess from nothing is worse than none."""
    tagger = Tagger(CLASSIFIERS[classifier]()).fit(TEXTS, LABELS)
    assert tagger.predict(text) == []
    assert tagger.predict([text, TEST[0]], threshold=0.0)[0] == []
    assert tagger.predict([text, TEST[0]])[1] == tagger.predict(TEST[0])
    assert (tagger.predict_topk([text]).labels == -1).all()


def test_empty_texts_may_be_learned_from():
    tagger = Tagger().fit([*FRUIT, ""], [["fruit"], ["fruit"], ["ore"], ["ore"], ["empty"]])
    assert tagger.predict("apple", k=1)[0][0] == "fruit"


def test_the_smallest_taggers():
    assert Tagger().fit(["a", "b"], ["x", "y"]).predict("b", k=1)[0][0] == "y"
    assert Tagger().fit(["a"], [["x"]]).predict("a")[0][0] == "x"
    one = Tagger().fit(FRUIT * 20, [["fruit"], ["fruit"], [], []] * 20)
    assert one.predict("apple")[0][1] > one.predict("ore")[0][1]


def test_more_labels_are_asked_for_than_there_are(tagger):
    few = Tagger().fit(FRUIT, ["fruit", "fruit", "ore", "ore"])
    assert len(few.predict("apple", k=50)) == 2
    assert len(tagger.predict(TEST[0], k=50)) == len(tagger.label_names_)


# --- probabilities and thresholds


def test_probabilities_mean_what_they_say():
    texts, labels = make_up(1500, seed=5)
    report = Tagger(small_tree()).fit(texts, labels).evaluate(*make_up(500, seed=6))
    assert report.reliability.expected_calibration_error < 0.02


def test_without_calibration_scores_are_the_classifiers_own():
    tagger = Tagger(small_tree(), calibrate=False).fit(TEXTS, LABELS)
    X = tagger.vectorizer_.transform(TEST)
    assert tagger.predict_topk(TEST, 4) == tagger.classifier_.predict_topk(X, 4)
    with pytest.raises(ParameterError, match="without a validation split"):
        tagger.tune_thresholds()
    tagger.tune_thresholds("micro_f1", TEST, RELEVANT)
    assert tagger.predict(TEST[0], threshold="tuned")


def test_probabilities_keep_the_order_of_the_scores(tagger):
    X = tagger.vectorizer_.transform(TEST)
    scored = tagger.classifier_.predict_topk(X, 20)
    np.testing.assert_array_equal(tagger.predict_topk(TEST, 20).labels, scored.labels)


def test_k_does_not_change_probabilities(tagger):
    most = tagger.predict_topk(TEST, 24)
    for k in (1, 5, 20, 23):
        assert tagger.predict_topk(TEST, k) == most.first(k)


@pytest.mark.parametrize("calibrate", [True, False])
def test_probabilities_that_look_equal_stand_by_label_id(calibrate):
    """The same numbers come in the same order, whatever digits are not shown."""
    n_equal = 0
    tagger = Tagger(small_tree(), calibrate=calibrate).fit(TEXTS, LABELS)
    for one in (tagger.predict(TEST, k=12), tagger.predict(TEST, k=20, threshold=0.0)):
        for tags in one:
            shown = [(-score, tagger.label_names_.ids[name]) for name, score in tags]
            assert shown == sorted(shown)
            n_equal += len(tags) - len({score for _, score in tags})
    assert n_equal > 10 or not calibrate


def test_a_threshold_cuts_where_it_says(tagger):
    for least in (0.0, 0.4995, 0.9, 1, np.float32(0.5)):
        for tags, all_tags in zip(
            tagger.predict(TEST, threshold=least), tagger.predict(TEST, k=20), strict=True
        ):
            assert tags == [(name, p) for name, p in all_tags if p >= least]


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1", "precision@0.9", "recall@0.8"])
def test_tuned_thresholds_are_used(tagger, metric):
    tuned = clone(tagger).fit(TEXTS, LABELS)
    found = tuned.tune_thresholds(metric)
    assert tuned.predict(TEST, threshold="tuned") == tagger.predict(TEST, threshold=metric)
    cut = found.apply(tagger.predict_topk(TEST, 20)).names(tagger.label_names_.names)
    assert tuned.predict(TEST, threshold="tuned") == cut
    assert found.reached > 0.7


def test_a_tagger_that_is_fitted_again_forgets_its_thresholds(tagger):
    tuned = clone(tagger).fit(TEXTS, LABELS)
    tuned.tune_thresholds()
    tuned.fit(TEXTS, LABELS)
    with pytest.raises(ParameterError, match="tune_thresholds"):
        tuned.predict(TEST[0], threshold="tuned")


# --- texts of labels


def test_texts_of_labels_find_labels_that_no_text_has():
    texts = {name_of(label): " ".join(words_of(label)) for label in range(24)}
    known = [[name for name in own if name != name_of(3)] for own in LABELS]
    tagger = Tagger(small_tree(recipe__label_text_weight=0.5)).fit(TEXTS, known, label_texts=texts)
    assert tagger.predict(" ".join(words_of(3)), k=1)[0][0] == name_of(3)
    assert tagger.label_counts_[tagger.label_names_.id_of(name_of(3))] == 0


def test_texts_of_labels_go_by_the_names_of_labels():
    numbers = ["1", 1, "2", 2]
    tagger = Tagger().fit(FRUIT, numbers, label_texts={1: "apple", 3: "pear"})
    assert tagger.label_names_.names == ["1", "2", "3"]


def test_a_classifier_that_cannot_use_texts_of_labels_says_so():
    with pytest.raises(ParameterError, match=r"NearestCentroid does not learn.*LabelTree"):
        Tagger(um.NearestCentroid()).fit(TEXTS, LABELS, label_texts={"label00": "zero"})


# --- errors


@pytest.mark.parametrize(
    ("texts", "labels", "error", "match"),
    [
        ("one text", ["a"], TextsError, r"single text 'one text'.*\[text\]"),
        (None, [], TextsError, "NoneType"),
        ({"a": 1}, ["a"], TextsError, "dict"),
        (b"ab", [["a"], ["b"]], TextsError, "single text b'ab'"),
        (["a", None], ["x", "y"], TextsError, r"texts\[1\] is None"),
        (["a", 3], ["x", "y"], TextsError, r"texts\[1\] is 3, a int"),
        (["a", "b"], ["x"], LabelsShapeError, "2 texts but 1 lists of labels"),
        (["a"], [["x"], ["y"]], LabelsShapeError, "1 texts but 2 lists of labels"),
        (["a", "b"], "xy", LabelsError, "'xy', a str"),
        (["a", "b"], {"x": 1, "y": 2}, LabelsError, "a dict"),
        (["a", "b"], None, LabelsError, "NoneType"),
        (["a", "b"], [["x"], None], LabelsError, r"labels\[1\] has None"),
        (["a", "b"], [["x"], [None]], LabelsError, r"labels\[1\] has None"),
        (["a", "b"], [["x"], float("nan")], LabelsError, r"labels\[1\] has nan"),
        (["a", "b"], [["x"], [np.float32("nan")]], LabelsError, "empty list"),
        (["a", "b"], [["x"], [["y"]]], LabelsError, r"has \['y'\]"),
        (["a", "b"], [["x"], b"y"], LabelsError, "b'y'"),
        (["a", "b"], [[], []], LabelsError, "no text has a label"),
        ([], [], FeaturesError, "no texts"),
        (["", "?"], ["x", "y"], FeaturesError, "no word"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(texts, labels, error, match):
    with pytest.raises(error, match=match):
        Tagger().fit(texts, labels)


@pytest.mark.parametrize(
    ("label_texts", "match"),
    [(["a"], "list; expected a dictionary"), ({"a": None}, "None"), ({None: "a"}, "None")],
)
def test_bad_texts_of_labels_are_refused(label_texts, match):
    with pytest.raises((TextsError, LabelsError), match=match):
        Tagger().fit(FRUIT, ["a", "a", "b", "b"], label_texts=label_texts)


@pytest.mark.parametrize(
    ("threshold", "match"),
    [
        (1.5, "between 0 and 1"),
        (-0.1, "between 0 and 1"),
        (float("nan"), "between 0 and 1"),
        (True, "between 0 and 1"),
        ([0.5], "between 0 and 1"),
        ("tuned", "tune_thresholds"),
        ("best", "micro_f1, macro_f1"),
        ("precision@1.2", "micro_f1, macro_f1"),
    ],
)
def test_impossible_thresholds_are_refused(tagger, threshold, match):
    with pytest.raises(ParameterError, match=match):
        tagger.predict("common1", threshold=threshold)


@pytest.mark.parametrize(
    ("k", "match"),
    [(0, "^k=0 .*k=1 or"), (-1, "^k=-1 .*k=1 or"), (2.5, "whole number"), ("5", "whole number")],
)
def test_impossible_k_is_refused(tagger, k, match):
    with pytest.raises(ParameterError, match=match):
        tagger.predict("common1", k=k)


def test_a_goal_without_a_validation_split_says_how_to_reach_it():
    """`predict` takes no labels, so texts to tune on must go to `tune_thresholds`."""
    tagger = Tagger(small_tree(), calibrate=False).fit(FRUIT, ["a", "a", "b", "b"])
    with pytest.raises(ParameterError, match=r"tune_thresholds\('micro_f1', texts, labels\)"):
        tagger.predict("apple", threshold="micro_f1")
    with pytest.raises(ParameterError, match=r"threshold='best'.*micro_f1, macro_f1"):
        tagger.predict("apple", threshold="best")


@pytest.mark.parametrize(("texts", "labels"), [(["unheard of"], [["label00"]]), ([], [])])
def test_texts_that_thresholds_cannot_be_tuned_on(tagger, texts, labels):
    with pytest.raises(ParameterError, match="tune on"):
        tagger.tune_thresholds("micro_f1", texts, labels)


@pytest.mark.parametrize(
    "parameters",
    [
        {"classifier": "tree"},
        {"classifier": TfidfVectorizer()},
        {"vectorizer": "tfidf"},
        {"calibrate": "yes"},
        {"replay": -1},
        {"replay": 1.5},
        {"random_state": None},
    ],
)
def test_impossible_parameters_are_refused(parameters):
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        Tagger(**parameters).fit(FRUIT, ["a", "a", "b", "b"])


@pytest.mark.parametrize("name", ["vectorizer__ngrams", "classifier__n_trees"])
def test_parts_that_fit_chooses_have_no_parameters_to_search_over(name):
    part = name.partition("__")[0]
    with pytest.raises(ParameterError, match=rf"{name} is not possible.*Tagger\({part}="):
        Tagger().set_params(**{name: 2})
    given = Tagger().set_params(vectorizer=Vectorizer(), classifier=um.LabelTree(), **{name: 2})
    assert given.get_params()[name] == 2


def test_a_class_in_place_of_an_object_is_named():
    with pytest.raises(ParameterError, match=r"LabelTree of Tagger is a class.*LabelTree\(\)"):
        Tagger(um.LabelTree).fit(FRUIT, ["a", "a", "b", "b"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda tagger: tagger.predict("a"),
        lambda tagger: tagger.predict_topk(["a"]),
        lambda tagger: tagger.score(["a"], ["x"]),
        lambda tagger: tagger.evaluate(["a"], ["x"]),
        lambda tagger: tagger.tune_thresholds(),
        lambda tagger: tagger.add_labels("x", examples=[["a"]]),
        lambda tagger: tagger.remove_labels("x"),
        lambda tagger: tagger.explain("a"),
        lambda tagger: tagger.label_keywords("x"),
        lambda tagger: tagger.rebuild_due,
        lambda tagger: tagger.save("nowhere"),
    ],
)
def test_an_unfitted_tagger_says_so(ask):
    with pytest.raises(NotFittedError, match="call fit"):
        ask(Tagger())


# --- the same again


def test_clones_and_parameters():
    tagger = Tagger(small_tree(max_leaf=7), vectorizer=Vectorizer(ngrams=1), replay=10)
    copy = clone(tagger)
    assert copy.get_params()["classifier__max_leaf"] == 7
    assert copy.set_params(vectorizer__ngrams=3).vectorizer.ngrams == 3
    assert tagger.vectorizer.ngrams == 1
    tagger.fit(TEXTS, LABELS)
    assert not hasattr(tagger.classifier, "trees_"), "what was given is not fitted itself"
    assert not hasattr(clone(tagger), "classifier_")


@pytest.mark.parametrize("n_trees", [1, 2])
def test_threads_do_not_change_a_bit(n_trees):
    alone, together = (
        Tagger(small_tree(n_jobs=n, n_trees=n_trees), vectorizer=Vectorizer(n_jobs=n))
        .fit(TEXTS, LABELS)
        .add_labels("new", examples=[[*about(30), "common1 common2"]])
        .partial_fit(TEST[:9], RELEVANT[:9])
        for n in (1, 2)
    )
    assert alone.predict_topk(TEST, 20) == together.predict_topk(TEST, 20)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_saved_tagger_answers_with_the_same_bits(classifier, tmp_path):
    tagger = Tagger(CLASSIFIERS[classifier](), keep_texts=True).fit(TEXTS, LABELS)
    tagger.tune_thresholds("macro_f1")
    tagger.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    for new in ("new", "newer"):
        assert again.predict_topk(TEST, 24) == tagger.predict_topk(TEST, 24)
        assert again.predict(TEST, threshold="tuned") == tagger.predict(TEST, threshold="tuned")
        assert again.explain(TEST[0]) == tagger.explain(TEST[0])
        assert again.evaluate(TEST, RELEVANT).to_dict() == (
            tagger.evaluate(TEST, RELEVANT).to_dict()
        )
        for one in (tagger, again):  # whose arrays are mapped from files now
            one.add_labels(new, examples=[["common1 common2", "common1 common3"]])
            one.partial_fit(TEST[:5], RELEVANT[:5]).remove_labels(new)
    again.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict_topk(TEST) == tagger.predict_topk(TEST)


def test_saving_after_adding_and_removing(tmp_path):
    tagger = Tagger(small_tree()).fit(TEXTS, LABELS)
    tagger.add_labels("new", examples=[["common1 common2"]]).remove_labels(["new", "label02"])
    tagger.save(tmp_path / "model")
    again = um.load(tmp_path / "model")
    assert again.label_names_.ids == tagger.label_names_.ids
    assert again.predict_topk(TEST, 24) == tagger.predict_topk(TEST, 24)


def test_somebody_elses_vectorizer_cannot_be_saved(tmp_path):
    """It would take a pickle, which runs whatever it contains."""
    tagger = Tagger(small_tree(), vectorizer=TfidfVectorizer()).fit(TEXTS, LABELS)
    with pytest.raises(NotStorableError, match="TfidfVectorizer"):
        tagger.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_vectorizer_without_names_has_numbers_for_words():
    tagger = Tagger(small_tree(), vectorizer=HashingVectorizer(n_features=2**12))
    tagger.fit(TEXTS, LABELS)
    assert tagger.label_keywords(name_of(0), k=1)[0][0].startswith("#")
    assert tagger.explain(TEST[0]).words[0][0].startswith("#")


def test_estimates_are_those_of_the_classifier(tagger):
    assert tagger.estimate(TEXTS, LABELS).memory > 0
    with pytest.raises(ParameterError, match="cannot estimate"):
        Tagger(um.NearestCentroid()).estimate(TEXTS, LABELS)


def test_the_best_labels_are_given_whatever_their_probability_if_asked():
    tagger = Tagger(small_tree()).fit(TEXTS, LABELS)
    found = tagger.predict(TEST, threshold=1.0, min_labels=2)
    assert [len(tags) for tags in found] == [2] * len(TEST)
    assert found == tagger.predict(TEST, k=2)
    assert tagger.predict("unheard of", threshold=0.5, min_labels=1) == []


def test_words_that_only_texts_of_labels_have_are_known():
    tagger = Tagger(um.LabelTree(recipe=um.linear.TreeRecipe(label_text_weight=0.3)))
    tagger.fit(TEXTS, LABELS, label_texts={"quokkas": "quokka and wombat"})
    assert tagger.predict("a quokka", k=1)[0][0] == "quokkas"
    assert tagger.explain("a quokka", "quokkas").text_similarity > 0.3


def test_what_a_tagger_says_about_itself():
    tagger = Tagger(small_tree()).fit(TEXTS, LABELS)
    assert tagger.labels == tagger.label_names_.names
    assert tagger.calibrated
    assert not Tagger(small_tree()).fit(TEXTS[:20], LABELS[:20]).calibrated
    assert (
        tagger.n_features == tagger.vectorizer_.n_features_used < tagger.classifier_.n_features_in_
    )


# --- questions beyond what there is


def test_a_billion_labels_are_all_that_there_are(tagger):
    """It took all memory."""
    every = tagger.predict(TEST[0], k=10**9)
    assert every == tagger.predict(TEST[0], k=len(tagger.labels))
    assert sorted(name for name, _ in every) == tagger.labels
    assert tagger.predict(TEST[:3], k=10**9, threshold=0.5) == (
        tagger.predict(TEST[:3], k=24, threshold=0.5)
    )
    assert tagger.predict_topk(TEST[:2], k=10**9) == tagger.predict_topk(TEST[:2], k=24)


@pytest.mark.parametrize("calibrate", [True, False])
def test_there_are_no_more_answers_than_labels_and_metrics_take_them(calibrate):
    """Precision at 60 has a meaning where there are 24 labels."""
    tagger = Tagger(small_tree(), calibrate=calibrate).fit(TEXTS, LABELS)
    all_, wider = tagger.predict_topk(TEST, 24), tagger.predict_topk(TEST, 60)
    assert wider == all_
    assert wider.k == 24
    report = tagger.evaluate(TEST, LABELS[: len(TEST)], ks=(1, 60))
    hits = report.metrics["recall@60"] * sum(map(len, LABELS[: len(TEST)]))
    assert report.metrics["precision@60"] == pytest.approx(hits / 60 / len(TEST))


@pytest.mark.parametrize("min_labels", ["a", -1, 2.5, True, None, np.float64(1)])
def test_impossible_min_labels_are_refused(tagger, min_labels):
    with pytest.raises(ParameterError, match="min_labels="):
        tagger.predict(TEST[0], threshold=0.5, min_labels=min_labels)


def test_more_labels_at_least_than_at_most_are_refused(tagger):
    with pytest.raises(ParameterError, match=r"min_labels=4.*k=3"):
        tagger.predict(TEST[0], k=3, threshold=0.5, min_labels=4)
    assert len(tagger.predict(TEST[0], threshold=1.0, min_labels=np.int64(22))) == 22


# --- the vocabulary


def test_texts_of_labels_leave_the_spare_columns_free():
    texts = {f"animal{i}": f"quokka{i} wombat{i}" for i in range(20)}
    tagger = Tagger(small_tree(recipe__label_text_weight=0.3), vectorizer=Vectorizer(spare=3))
    tagger.fit(TEXTS, LABELS, label_texts=texts)
    assert tagger.classifier_.n_features_in_ >= tagger.n_features + 3
    assert tagger.predict("quokka7", k=1)[0][0] == "animal7"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.add_labels("new", examples=[["zyzzyva quux", "zyzzyva frobnicator"]])
    assert tagger.predict("a zyzzyva", k=1)[0][0] == "new"


def test_texts_of_labels_do_not_change_the_features_of_samples():
    """Their words would count for how rare words are, and for the length of a row."""
    texts = {name_of(label): f"{words_of(label)[1]} quokka{label}" for label in range(24)}
    plain, told = (Tagger(small_tree()).fit(TEXTS, LABELS, label_texts=t) for t in (None, texts))
    n = plain.vectorizer_.n_first_
    ours, theirs = (one.replay_.X[:, :n] for one in (plain, told))
    assert ours.data.tobytes() == theirs.data.tobytes()
    assert ours.indices.tolist() == theirs.indices.tolist()


def test_words_of_labels_speak_for_these_labels_only():
    tagger = Tagger(um.LabelTree(recipe=um.linear.TreeRecipe(label_text_weight=0.3)))
    tagger.fit(TEXTS, LABELS, label_texts={"quokkas": "quokka and wombat"})
    assert [name for name, _ in tagger.predict("a quokka", k=24)] == ["quokkas"]


@pytest.mark.parametrize("vectorizer", VECTORIZERS)
def test_texts_of_labels_with_any_vectorizer(vectorizer):
    texts = {name_of(label): " ".join(words_of(label)) for label in range(23)}
    tagger = Tagger(small_tree(recipe__label_text_weight=0.5), vectorizer=VECTORIZERS[vectorizer]())
    tagger.fit(TEXTS, LABELS, label_texts=texts)
    assert tagger.score(TEST, RELEVANT) > 0.85
    assert tagger.replay_.X.shape[0] == len(TEXTS)


def test_features_are_named_without_naming_all_of_them(monkeypatch, tagger):
    expected = tagger.label_keywords(name_of(0), 30)
    names = tagger.vectorizer_.get_feature_names_out()
    number = tagger.label_names_.id_of(name_of(0))
    found = tagger.classifier_.label_keywords(number, 30)
    assert [word for word, _ in expected] == [names[feature] for feature, _ in found]
    monkeypatch.delattr(Vectorizer, "get_feature_names_out")
    assert tagger.label_keywords(name_of(0), 30) == expected


def test_somebody_elses_features_are_named_once(monkeypatch):
    tagger = Tagger(small_tree(), vectorizer=TfidfVectorizer()).fit(TEXTS, LABELS)
    expected = tagger.label_keywords(name_of(0)), tagger.explain(TEST[0]).words
    monkeypatch.delattr(CountVectorizer, "get_feature_names_out")
    assert (tagger.label_keywords(name_of(0)), tagger.explain(TEST[0]).words) == expected
