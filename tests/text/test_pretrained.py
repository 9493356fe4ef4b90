"""If these fail, a model starts from vectors of other words, or does not say what is missing."""

import numpy as np
import pytest

import umpteen as um
from umpteen.errors import MissingExtraError, ModelNotFoundError, ParameterError
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


def test_classifiers_and_vectorizers_that_know_no_words_refuse_them():
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    with pytest.raises(ParameterError, match="LabelTree, which does not start"):
        um.Tagger(um.LabelTree()).fit(TEXTS, LABELS, word_vectors=len)
    hashing = um.text.Vectorizer(hashing=2**10)
    with pytest.raises(um.errors.FeaturesError, match="no names"):
        um.Tagger(um.SiameseXML(), vectorizer=hashing).fit(TEXTS, LABELS, word_vectors=len)
