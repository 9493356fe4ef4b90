"""An explanation points at words of the text as it was sent, and its parts add up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

import umpteen as um
from tests.serve.conftest import WORDS, made_up
from umpteen.serve.explaining import explain, share_out
from umpteen.serve.labels import LabelSearch
from umpteen.serve.snapshot import Snapshot
from umpteen.text.placing import placed_words

words = st.sampled_from(sorted({word for some in WORDS.values() for word in some.split()}))
sentences = st.lists(words | st.sampled_from(["a,", "Ünd", "ﬁ", "é", "--", "DOUGH"]), max_size=12)


def snapshot_of(tagger):
    return Snapshot("kitchen", "v", "today", tagger, LabelSearch.of(tagger))


@settings(max_examples=50)
@given(sentences.map(" ".join), st.sampled_from(sorted(WORDS)))
def test_shares_add_up_to_the_margin(tagger, text, label):
    found = tagger.explain(text, label)
    shares, other = share_out(found, placed_words(text))
    total = sum(one["contribution"] for one in (*shares, *other))
    assert total == pytest.approx(found.margin, abs=1e-4)


def test_words_are_where_they_stand(client, tagger):
    text = "Knead  the DOUGH; then, dough again: flour!"
    asked = {"text": text, "label": "bread"}
    found = client.post("/v1/kitchen/explain", json=asked).json()
    assert [text[one["start"] : one["end"]].lower() for one in found["words"]] == [
        one["word"] for one in found["words"]
    ]
    by_word = {}
    for one in found["words"]:
        by_word.setdefault(one["word"], []).append(one)
    assert len(by_word["dough"]) == 2
    assert by_word["dough"][0]["total"] == pytest.approx(
        sum(one["contribution"] for one in by_word["dough"]), abs=1e-5
    )
    assert found["label"] == "bread"
    assert found["exact"] is True
    assert [near["text"] for near in found["nearest"]] == [
        near.text for near in tagger.explain(text, "bread").neighbours
    ]


def test_the_best_label_is_explained_by_default(client, tagger):
    found = client.post("/v1/kitchen/explain", json={"text": "oolong leaves"}).json()
    assert (found["label"], found["probability"]) == tagger.predict("oolong leaves", k=1)[0]


@pytest.mark.parametrize(
    "tagger",
    [
        um.Tagger(um.NearestCentroid()),
        um.Tagger(vectorizer=um.text.Vectorizer(language="en", forms="both")),
        um.Tagger(vectorizer=um.text.Vectorizer(language="en", forms="characters")),
        um.Tagger(vectorizer=um.text.Vectorizer(hashing=2**16)),
        um.Tagger(vectorizer=um.text.Vectorizer(stop_words=["the"])),
        um.Tagger(vectorizer=TfidfVectorizer(ngram_range=(1, 2))),
    ],
    ids=["other classifier", "stems too", "characters", "hashing", "stop words", "foreign"],
)
def test_any_tagger_can_be_explained(tagger):
    snapshot = snapshot_of(tagger.fit(*made_up(60)))
    text = "the dough loaf"
    found = explain(snapshot, text, "bread")
    placed = {text[one["start"] : one["end"]]: one["contribution"] for one in found["words"]}
    assert placed["dough"] > 0
