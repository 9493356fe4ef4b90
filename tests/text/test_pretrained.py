"""If these fail, a model starts from vectors of other words, or does not say what is missing."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import umpteen as um
from umpteen.errors import MissingExtraError, ModelNotFoundError, ParameterError
from umpteen.tagger.vectorizing import vectors_of_features
from umpteen.text import pretrained

TEXTS = ["red apple pie", "green apple", "iron ore", "copper ore mine"] * 15
LABELS = [["fruit"], ["fruit"], ["metal"], ["metal"]] * 15
DESCRIBED = {"fruit": "apple pear fruit", "metal": "iron copper ore"}


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    pretrained._read.cache_clear()
    monkeypatch.setattr(pretrained, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"umpteen\[words\]"):
        um.text.pretrained_vectors(["apple"])
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(pretrained, "find_spec", lambda _: spec)
    with pytest.raises(ModelNotFoundError, match="is not there"):
        um.text.pretrained_vectors(["apple"])


def test_words_of_like_meaning_are_near():
    pytest.importorskip("wordllama", reason="needs umpteen[words]")
    words = ["kitten", "cat", "database", "sql", "", "sql database"]
    vectors = um.text.pretrained_vectors(words)
    assert vectors.shape == (6, 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 1, 0, 1], atol=1e-5)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.3 > cosines[0, 2]
    assert cosines[5, 2] > 0.5 > cosines[5, 0]


def test_each_word_gets_the_mean_of_its_pieces():
    pytest.importorskip("wordllama", reason="needs umpteen[words]")
    tokenizer, table = pretrained._read()
    for word in ("apple", "reproducibility", "naïve bayes"):
        pieces = tokenizer.encode(word, add_special_tokens=False).ids
        mean = np.mean([table[piece] for piece in pieces], axis=0)
        found = um.text.pretrained_vectors([word])[0]
        np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=1e-5)


def test_through_the_tagger_a_model_starts_from_them():
    """Untrained, features have exactly these vectors; columns that stand for nothing are random."""
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    recipe = um.siamese.SiameseRecipe(modules=())
    asked = []

    def vectors(words):
        asked.extend(words)
        return np.array([[len(word), 1.0, 2.0] if word else [0.0] * 3 for word in words])

    tagger = um.Tagger(um.SiameseXML(dim=3, recipe=recipe), calibrate=False)
    tagger.fit(TEXTS, LABELS, DESCRIBED, word_vectors=vectors)
    table = tagger.classifier_.towers_[0].encoder.table
    names = tagger.vectorizer_.get_feature_names_out().tolist()
    assert asked == names
    assert "copper ore" in names
    np.testing.assert_array_equal(table[names.index("copper ore")], [10, 1, 2])
    np.testing.assert_array_equal(table[names.index("apple")], [5, 1, 2])
    spare = [place for place, name in enumerate(names) if not name]
    assert np.abs(table[spare]).max() <= 0.1
    assert (table[spare] != 0).all()


@pytest.mark.parametrize("forms", ["both", "characters"])
def test_vectors_are_those_of_letters_without_marks(forms):
    """`pretrained_vectors` would take the asterisk of "apple*" or "*_appl*" for a word piece."""
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    vectorizer = um.text.Vectorizer(language="en", forms=forms).fit(TEXTS)
    asked = []

    def vectors(words):
        asked.extend(words)
        return np.zeros((len(words), 256))

    vectors_of_features(vectorizer, um.SiameseXML(), vectors)
    names = vectorizer.get_feature_names_out().tolist()
    marked = {"both": "apple*", "characters": "*_appl*"}[forms]
    assert asked[names.index(marked)] == marked.strip("*_")
    assert not any(set("*_") & set(word) for word in asked)
    assert "copper ore" in asked


def test_names_of_other_vectorizers_stay_as_they_are():
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    other = TfidfVectorizer(token_pattern=r"\S+").fit(["c* a*b"])
    asked = []
    vectors_of_features(other, um.SiameseXML(), lambda words: asked.extend(words) or [[0.0]] * 2)
    assert asked == ["a*b", "c*"]


def test_an_ensemble_gives_them_to_the_members_that_start_from_them():
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    siamese = um.SiameseXML(dim=3, recipe=um.siamese.SiameseRecipe(modules=()))
    both = um.Ensemble([siamese, um.LabelTree()])

    def vectors(words):
        return np.array([[len(word), 1.0, 2.0] if word else [0.0] * 3 for word in words])

    for calibrate in (True, False):
        tagger = um.Tagger(both, calibrate=calibrate)
        tagger.fit(TEXTS, LABELS, DESCRIBED, word_vectors=vectors)
        table = tagger.classifier_.members_[0].towers_[0].encoder.table
        names = tagger.vectorizer_.get_feature_names_out().tolist()
        np.testing.assert_array_equal(table[names.index("copper ore")], [10, 1, 2])
    X, Y = np.eye(3, dtype=np.float32), [[0], [1], [0]]
    with pytest.raises(ParameterError, match="token_vectors has no effect on these members"):
        um.Ensemble([um.LabelTree()]).fit(X, Y, token_vectors=np.ones((3, 3)))
    with pytest.raises(ParameterError, match="Ensemble, which does not start"):
        um.Tagger(um.Ensemble([um.LabelTree()])).fit(TEXTS, LABELS, word_vectors=len)


def test_classifiers_and_vectorizers_that_know_no_words_refuse_them():
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    with pytest.raises(ParameterError, match="LabelTree, which does not start"):
        um.Tagger(um.LabelTree()).fit(TEXTS, LABELS, word_vectors=len)
    with pytest.raises(ParameterError, match="word_vectors is a dict; expected a function"):
        um.Tagger(um.SiameseXML()).fit(TEXTS, LABELS, word_vectors={"apple": [1.0]})
    hashing = um.text.Vectorizer(hashing=2**10)
    with pytest.raises(um.errors.FeaturesError, match="no names"):
        um.Tagger(um.SiameseXML(), vectorizer=hashing).fit(TEXTS, LABELS, word_vectors=len)


@pytest.mark.parametrize("vector", [[], "red", [1.0, "red"], [np.nan] * 4, None])
def test_a_function_that_returns_no_table_of_numbers_is_named(vector):
    pytest.importorskip("torch", reason="needs umpteen[neural]")

    def vectors(words):
        return [[1.0] * 4] * (len(words) - 1) + [vector]

    with pytest.raises(um.errors.FeaturesError, match=r"word_vectors\(words\)"):
        um.Tagger(um.SiameseXML(dim=4)).fit(TEXTS, LABELS, word_vectors=vectors)
