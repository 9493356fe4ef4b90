"""If these fail, sentence encoders are asked for what they do not have, or download something."""

import json
import sys

import numpy as np
import pytest

import umpteen as um
from umpteen.errors import MissingExtraError, NotFittedError, ParameterError, TextsError
from umpteen.storage.folder import _checksum
from umpteen.text import SentenceVectors

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters:
    """A stand-in for `SentenceTransformer`: how often a text has each letter."""

    def __init__(self, name, *, device, local_files_only, trust_remote_code, model_kwargs):
        assert device == "cpu"
        assert not trust_remote_code
        assert model_kwargs == {"use_safetensors": True}
        if not local_files_only or name not in ("here", "short"):
            raise OSError("no network")
        self.n_letters = 3 if name == "short" else len(LETTERS)

    def get_embedding_dimension(self):
        return self.n_letters

    def encode(self, texts, *, batch_size, show_progress_bar):
        assert batch_size > 0
        assert not show_progress_bar
        return np.array([[text.count(letter) for letter in LETTERS] for text in texts], float)


@pytest.fixture
def library(monkeypatch):
    module = type(sys)("sentence_transformers")
    module.SentenceTransformer, module.__version__ = Letters, "6.2.0"
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
    loaded = um.load(tmp_path / "model")
    with pytest.raises(NotFittedError, match=r"encoder \(here\).*vectorizer_\.open\("):
        loaded.predict("zyz", k=1)
    with pytest.raises(ParameterError, match=r"gives 3 numbers.*trained with one that gives 26"):
        loaded.vectorizer_.open("short")
    loaded.vectorizer_.open("here")
    assert loaded.predict("zyz", k=1) == tagger.predict("zyz", k=1)


@pytest.mark.usefixtures("library")
def test_a_model_cannot_say_which_files_are_opened(tmp_path):
    """A stranger's model could otherwise name a folder whose Python runs."""
    tagger = um.Tagger(um.LabelTree(), vectorizer=SentenceVectors("here"), calibrate=False)
    tagger.fit(["aab", "yyz"] * 5, [["first"], ["last"]] * 5).save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for place in ("parameters", "state"):
        vectorizer = manifest["model"]["object"][place].get("vectorizer")
        vectorizer = vectorizer or manifest["model"]["object"][place]["vectorizer_"]
        assert "here" not in vectorizer["object"]["parameters"].values()
        vectorizer["object"]["parameters"]["model"] = "here"
    manifest["checksum"] = _checksum(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    loaded = um.load(tmp_path)
    with pytest.raises(NotFittedError, match="not saved with it"):
        loaded.predict("zyz")
    with pytest.raises(ParameterError, match="names no sentence encoder"):
        loaded.fit(["aab", "yyz"], [["first"], ["last"]])


@pytest.mark.usefixtures("library")
def test_versions_that_run_code_of_a_folder_are_refused(monkeypatch):
    monkeypatch.setattr(sys.modules["sentence_transformers"], "__version__", "5.7.0")
    with pytest.raises(MissingExtraError, match=r"5\.7\.0 runs whatever Python"):
        SentenceVectors("here").fit([])


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
