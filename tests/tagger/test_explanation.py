"""A reason that is not the reason is worse than none."""

import itertools
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import umpteen as um
from umpteen.errors import LabelsError, ParameterError, TextsError
from umpteen.tagger import TagExplanation, Tagger, explanation
from umpteen.tagger.explanation import Neighbour, PathStep
from umpteen.text import Vectorizer

from .made_up import make_up, name_of, words_of

TEXTS, LABELS = make_up(400)
TEST, _ = make_up(30, seed=1)


def small_tree(**parameters):
    return um.LabelTree(**{"max_leaf": 6, "branching": 4, **parameters})


def fitted(classifier=None, **parameters):
    return Tagger(classifier or small_tree(), **parameters).fit(TEXTS, LABELS)


VECTORIZERS = [None, Vectorizer(hashing=2**18), Vectorizer(ngrams=1), TfidfVectorizer()]


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=str)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_words_add_up_to_the_decision(vectorizer, n_trees):
    tagger = fitted(small_tree(n_trees=n_trees), vectorizer=vectorizer)
    for text in TEST:
        for label in (None, name_of(0), name_of(23)):
            why = tagger.explain(text, label)
            assert why.exact
            assert why.margin == pytest.approx(why.bias + sum(part for _, part in why.words))
            sizes = [abs(part) for _, part in why.words]
            assert sizes == sorted(sizes, reverse=True)


def test_parts_are_weights_times_features():
    """Read straight from the classifier, for the label's own decision."""
    tagger = fitted(vectorizer=TfidfVectorizer())
    names = tagger.vectorizer_.get_feature_names_out()
    tree = tagger.classifier_.trees_[0]
    for text in TEST[:5]:
        x = tagger.vectorizer_.transform([text]).toarray().ravel()
        number = tree.hierarchy.path(tagger.label_names_.id_of(name_of(2)))[-1]
        features, weights = tree.classifier(number)
        expected = {
            names[feature]: x[feature] * weight
            for feature, weight in zip(features, weights, strict=True)
            if x[feature] * weight
        }
        why = tagger.explain(text, name_of(2))
        assert dict(why.words) == pytest.approx(expected, rel=1e-5)
        assert why.bias == tree.bias[number - 1]


def test_the_words_are_those_of_the_text():
    tagger = fitted()
    for text in TEST:
        why = tagger.explain(text)
        words = text.split()
        runs = {*words, *(f"{a} {b}" for a, b in itertools.pairwise(words))}
        assert {word for word, _ in why.words} <= runs
        assert (why.label, why.probability) == pytest.approx(_best(tagger, text), abs=1e-6)


def _best(tagger, text):
    top = tagger.predict_topk([text], 1)
    return tagger.label_names_.names[top.labels[0, 0]], float(top.scores[0, 0])


@pytest.mark.parametrize("classifier", [small_tree(), um.NearestCentroid()], ids=["tree", "c"])
def test_the_telling_word_comes_first(classifier):
    tagger = fitted(classifier, vectorizer=Vectorizer(ngrams=1))
    why = tagger.explain("word5a common1 common2 common3", name_of(5))
    assert why.words[0][0] == "word5a"
    assert why.words[0][1] > 0


def test_the_way_leads_to_the_label():
    tagger = fitted()
    why = tagger.explain(TEST[0])
    assert len(why.path) == len(tagger.classifier_.trees_[0].hierarchy.layers()) - 1 > 0
    sizes = [step.n_labels for step in why.path]
    assert sizes == sorted(sizes, reverse=True)
    for step in why.path:
        assert len(step.labels) == min(3, step.n_labels)
        assert len(step.words) <= 3
    first = why.path[0].labels  # those that suit the text, the best first
    best = tagger.predict_topk([TEST[0]], k=20).labels[0]
    ranked = [tagger.label_names_.names[label] for label in best]
    assert [ranked.index(name) for name in first] == sorted(ranked.index(name) for name in first)


@pytest.mark.parametrize("vectorizer", [None, TfidfVectorizer()], ids=str)
def test_other_classifiers_are_asked_without_each_word(vectorizer):
    tagger = fitted(um.NearestCentroid(), vectorizer=vectorizer)
    names = tagger.vectorizer_.get_feature_names_out()
    for text in TEST[:5]:
        why = tagger.explain(text)
        assert not why.exact
        assert (why.path, why.bias, why.margin) == ((), 0, 0)
        x = tagger._state.features([text])
        label = tagger.label_names_.id_of(why.label)
        expected = {}
        for feature in x.indices:
            without = x.toarray()
            without[0, feature] = 0
            fall = _score(tagger, x, label) - _score(tagger, without, label)
            if fall:
                expected[names[feature]] = fall
        assert dict(why.words) == pytest.approx(expected, abs=1e-6)


def _score(tagger, x, label):
    top = tagger.classifier_.predict_topk(x, k=24)
    return float(top.scores[0][top.labels[0] == label].sum()) if label in top.labels else 0.0


def test_any_label_can_be_asked_about():
    tagger = fitted()
    for name in tagger.label_names_.names:
        why = tagger.explain(TEST[0], name)
        assert why.label == name
        everything = dict(tagger.predict(TEST[0], k=24))
        assert why.probability == pytest.approx(everything.get(name, 0), abs=1e-6)


@pytest.mark.parametrize("label", ["lable05", "LABEL05", 5])
def test_an_unknown_label_is_answered_with_what_was_meant(label):
    with pytest.raises(LabelsError, match="is not among the 24 labels") as caught:
        fitted().explain(TEST[0], label)
    if label == "lable05":
        assert "did you mean 'label05'?" in str(caught.value)


def test_what_cannot_be_explained_is_refused():
    tagger = fitted()
    with pytest.raises(LabelsError, match="has no word of the vocabulary"):
        tagger.explain("unheard of")
    for text in (None, ["a"], 7):
        with pytest.raises(TextsError, match="text is "):
            tagger.explain(text)
    assert tagger.explain("unheard of", name_of(0)).words == []


def test_a_label_that_the_tree_does_not_hold_has_no_words():
    tagger = Tagger(small_tree()).fit(TEXTS, LABELS, label_texts={"7": ""})
    why = tagger.explain(TEST[0], "7")
    assert (why.words, why.path, why.probability) == ([], (), 0)


@pytest.mark.parametrize("vectorizer", [None, CountVectorizer()], ids=str)
def test_neighbours_are_the_most_similar_texts_that_were_kept(vectorizer):
    tagger = fitted(keep_texts=True, vectorizer=vectorizer)
    rows = tagger._state.features(TEXTS).toarray().astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for text in TEST[:5]:
        x = tagger._state.features([text]).toarray().ravel()
        cosines = rows @ x / np.linalg.norm(x)
        found = tagger.explain(text).neighbours
        assert [one.similarity for one in found] == pytest.approx(
            np.sort(cosines)[::-1][:3], abs=1e-5
        )
        for one in found:
            row = TEXTS.index(one.text)
            assert one.labels == sorted(LABELS[row])
            assert cosines[row] == pytest.approx(one.similarity, abs=1e-5)
    same = tagger.explain(TEXTS[3]).neighbours[0]
    assert (same.text, same.similarity) == (TEXTS[3], pytest.approx(1, abs=1e-5))


def test_texts_that_were_kept_do_not_change_with_the_list_that_was_given():
    texts = list(TEXTS)
    tagger = Tagger(small_tree(), keep_texts=True).fit(texts, LABELS)
    texts[:] = ["changed"] * len(texts)
    assert tagger.explain(TEXTS[3]).neighbours[0].text == TEXTS[3]


def test_neighbours_know_what_came_later():
    tagger = fitted(keep_texts=True).add_labels("new", examples=[["word3a word3b common39"]])
    tagger.remove_labels(name_of(3))
    nearest = tagger.explain("word3a word3b common39").neighbours
    assert nearest[0].labels == ["new"]
    assert name_of(3) not in {name for one in nearest for name in one.labels}
    assert fitted().explain(TEST[0]).neighbours == ()


def test_keywords_are_the_words_of_a_label():
    tagger = fitted(vectorizer=Vectorizer(ngrams=1))
    found = tagger.label_keywords(name_of(2), k=4)
    assert {word for word, _ in found} <= set(words_of(2))
    with pytest.raises(ParameterError, match="NearestCentroid has no keywords"):
        fitted(um.NearestCentroid()).label_keywords(name_of(0))
    with pytest.raises(LabelsError, match="did you mean"):
        tagger.label_keywords("label0")
    hashed = fitted(vectorizer=Vectorizer(hashing=2**16)).label_keywords(name_of(2), k=3)
    assert all(word.startswith("#") for word, _ in hashed)


@pytest.mark.parametrize("classifier", [small_tree(), um.NearestCentroid()], ids=["tree", "c"])
def test_an_explanation_is_ready_for_json(classifier):
    why = fitted(classifier, keep_texts=True).explain(TEST[0])
    again = json.loads(json.dumps(why.to_dict()))
    assert again["label"] == why.label
    assert [tuple(pair) for pair in again["words"]] == why.words
    assert again["neighbours"][0]["text"] == why.neighbours[0].text


def test_an_explanation_can_be_read():
    why = TagExplanation(
        label="fruit [red]",
        probability=0.91234,
        words=[("apple", 1.5), ("[bold]iron", -0.75)],
        path=(PathStep(["fruit", "pie"], 7, [("apple", 2.0), ("ore", -1.0)], 0.5),),
        neighbours=(Neighbour("an apple", ["fruit"], 0.875),),
    )
    lines = str(why).splitlines()
    assert lines[0].strip() == "fruit [red]  0.912"
    assert lines[1].split() == ["apple", "+1.500", "█" * 20]
    assert lines[2].split() == ["[bold]iron", "-0.750", "█" * 10]
    assert lines[3].strip() == "via fruit, pie and 5 more: apple"
    assert lines[4].strip() == "like 'an apple' (fruit; 0.88)"


def test_no_words_can_be_read_too():
    assert str(TagExplanation("fruit", 0.0, [])) == "fruit  0.000"


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_words_are_left_out_one_at_a_time_in_blocks(block, monkeypatch):
    """A book has thousands of words, and as many copies of it do not fit the memory."""
    tagger = Tagger(um.NearestCentroid()).fit(TEXTS, LABELS)
    x, label = (
        tagger._state.features([TEXTS[0]]),
        int(tagger.predict_topk([TEXTS[0]], 1).labels[0, 0]),
    )
    monkeypatch.setattr(explanation, "_BLOCK", block)
    found = dict(explanation._by_leaving_out(tagger.classifier_, x, label, {}))

    def score(row):
        top = tagger.classifier_.predict_topk(row, tagger.classifier_.n_labels_)
        return float(top.scores[top.labels == label].sum())

    for feature in x.indices:
        less = x.copy()
        less.data[x.indices == feature] = 0
        less.eliminate_zeros()
        assert found.get(f"#{feature}", 0.0) == pytest.approx(score(x) - score(less), abs=1e-6)
    assert explanation._by_leaving_out(tagger.classifier_, x[:0], label, {}) == []
