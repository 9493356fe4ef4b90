"""Type-ahead finds what a person means, however it is spelled, in the order that they expect."""

import re
from unicodedata import combining, normalize

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import umpteen as um
from umpteen.data.label_vocabulary import Concept, LabelVocabulary
from umpteen.serve.labels import LabelSearch, fold

letters = st.text("abcdeé E.-Ø1", min_size=1, max_size=6)
NAMES = st.lists(letters.map(str.strip).filter(bool), min_size=1, max_size=20, unique=True)


class Labels:
    """What a search needs of a tagger."""

    def __init__(self, names, counts):
        self.label_names_ = um.tagger.label_names.LabelNames(names)
        self.label_counts_ = np.array(counts)
        self.vocabulary_ = None


def slow_fold(text):
    spelled = normalize("NFKD", text.casefold()).replace("ø", "o")
    return " ".join("".join(c for c in spelled if not combining(c)).split(" "))


def expected(names, counts, query):
    """Prefixes, then beginnings of words, then all else; frequent ones first, then in order."""
    wanted, found = slow_fold(query).strip(), []
    for number, name in enumerate(names):
        own = re.sub("  +", " ", slow_fold(name))
        places = [at for at in range(len(own)) if own.startswith(wanted, at)]
        if not wanted or 0 in places:
            rank = 0
        elif len(wanted.encode()) < 2 or not places:
            continue
        else:
            rank = 1 if any(not own[at - 1].isalnum() for at in places) else 2
        found.append((rank, -counts[number], number))
    return [number for *_, number in sorted(found)]


@settings(max_examples=300)
@given(names=NAMES, query=st.text("abcdeéE Ø1.", max_size=4), data=st.data())
def test_every_match_is_found_in_order(names, query, data):
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(names), max_size=len(names)))
    found = LabelSearch.of(Labels(names, counts)).find(query, 1000)
    wanted = expected(names, counts, re.sub("  +", " ", query))
    assert found.labels == wanted
    assert found.n_matches == len(wanted)


def test_many_names_are_searched_to_the_last(monkeypatch):
    names = [f"name {i} of {i % 97}" for i in range(50_000)] + ["the very last one, Ægir"]
    search = LabelSearch.of(Labels(names, np.arange(len(names))))
    assert search.find("AEGIR", 5) == ([50_000], 1)
    assert search.find("49999 of", 5) == ([49_999], 1)
    found = search.find("of 13", 3)
    matching = [i for i in range(50_000) if i % 97 == 13]
    assert found.n_matches == len(matching)
    assert found.labels == matching[:-4:-1]  # the most frequent first


def test_names_of_the_vocabulary_find_a_label(tmp_path):
    vocabulary = LabelVocabulary.of(
        [Concept("c1", "heart attack", ("myocardial infarction",)), Concept("c2", "heart")]
    )
    texts, labels = ["heart", "attack"] * 30, [["c1"], ["c2"]] * 30
    tagger = um.Tagger(calibrate=False).fit(texts, labels, vocabulary=vocabulary)
    search = LabelSearch.of(tagger)
    assert [tagger.labels[i] for i in search.find("infarct", 5).labels] == ["c1"]
    assert sorted(tagger.labels[i] for i in search.find("heart", 5).labels) == ["c1", "c2"]


@pytest.mark.parametrize("spelled", ["CREME", "crème brul", "Brûlée", "rème"])
def test_people_need_no_accents(client, spelled):
    found = client.get("/v1/kitchen/labels", params={"q": spelled}).json()
    assert [one["label"] for one in found["labels"]] == ["crème brûlée"]


def test_without_a_query_the_most_frequent_come(client, tagger):
    found = client.get("/v1/kitchen/labels", params={"limit": 3}).json()
    counts = [one["count"] for one in found["labels"]]
    assert counts == sorted(tagger.label_counts_.tolist(), reverse=True)[:3]
    assert found["n_matches"] == 8


def test_a_query_has_no_line_of_its_own():
    assert fold("a\n") == "a\n"
    search = LabelSearch.of(Labels(["a", "b"], [1, 1]))
    assert search.find("a\nb", 5).labels == []
