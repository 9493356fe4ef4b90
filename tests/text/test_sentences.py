"""If these fail, sentence encoders are asked for what they do not have, or download something."""

import sys

import numpy as np
import pytest

import umpteen as um
from umpteen.errors import MissingExtraError, ParameterError, TextsError
from umpteen.text import SentenceVectors

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters:
    """A stand-in for `SentenceTransformer`: how often a text has each letter."""

    def __init__(self, name, *, device, local_files_only):
        assert device == "cpu"
        if not local_files_only or name != "here":
            raise OSError("no network")

    def get_sentence_embedding_dimension(self):
        return len(LETTERS)

    def encode(self, texts, *, batch_size, show_progress_bar):
        assert batch_size > 0
        assert not show_progress_bar
        return np.array([[text.count(letter) for letter in LETTERS] for text in texts], float)


@pytest.fixture
def library(monkeypatch):
    module = type(sys)("sentence_transformers")
    module.SentenceTransformer = Letters
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


@pytest.mark.usefixtures("library")
def test_texts_become_vectors_of_length_one():
    vectors = SentenceVectors("here").fit_transform(["abba", "", "cab"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1], rtol=1e-6)
    np.testing.assert_allclose(vectors[0, :2], 0.5**0.5)
    assert SentenceVectors("here").fit([]).transform([]).shape == (0, len(LETTERS))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ["SiameseXML", "LabelTree"])
def test_a_tagger_reads_by_it_and_is_saved_without_it(name, tmp_path):
    if name == "SiameseXML":
        pytest.importorskip("torch", reason="needs umpteen[neural]")
    model = getattr(um, name)(verbose=False, **({"dim": 32} if name == "SiameseXML" else {}))
    texts, labels = ["aab", "abb", "yyz", "zzy"] * 5, [["first"], ["first"], ["last"], ["last"]] * 5
    tagger = um.Tagger(model, vectorizer=SentenceVectors("here"), calibrate=False)
    tagger.fit(texts, labels, label_texts={"first": "ab", "last": "yz"})
    assert tagger.predict("zyz", k=1)[0][0] == "last"
    tagger.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict("zyz", k=1) == tagger.predict("zyz", k=1)


@pytest.mark.usefixtures("library")
def test_explanations_name_the_numbers_of_a_vector():
    tagger = um.Tagger(um.LabelTree(), vectorizer=SentenceVectors("here"), calibrate=False)
    tagger.fit(["aab", "abb", "yyz", "zzy"] * 5, [["first"], ["first"], ["last"], ["last"]] * 5)
    assert "#" in str(tagger.explain("yz"))


@pytest.mark.usefixtures("library")
def test_what_is_not_there_or_no_text_is_refused():
    with pytest.raises(FileNotFoundError, match=r"no text encoder 'elsewhere'.*download it first"):
        SentenceVectors("elsewhere").fit([])
    with pytest.raises(ParameterError, match="batch_size"):
        SentenceVectors("here", batch_size=0).fit([])
    with pytest.raises(TextsError, match="single text"):
        SentenceVectors("here").fit([]).transform("a text")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"umpteen\[encoders\]"):
        SentenceVectors("here").fit([])
