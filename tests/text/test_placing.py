"""Words are found where they stand in the text that a person sent, whatever was normalised."""

from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpteen.text import Vectorizer
from umpteen.text.placing import FeaturePlaces, placed_words

odd = st.text(
    "aé\u0301ﬁ½Ⅷ한\u1112\u1161\u11ab İΣς北京 ,'Ω.ไทย\u200dA\u0345\u09c7\u09be", max_size=20
)


@settings(max_examples=300)
@given(st.text(max_size=40) | odd)
def test_words_are_those_of_the_vectorizer(text):
    assert [one.word for one in placed_words(text)] == Vectorizer().words(text)


@settings(max_examples=300)
@given(st.text(max_size=40) | odd)
def test_places_are_in_order_and_hold_their_words(text):
    end = 0
    for one in placed_words(text):
        assert 0 <= one.start < one.end <= len(text)
        assert one.end >= end
        end = one.end
        piece = normalize("NFKC", text[one.start : one.end]).lower()
        assert one.word in piece or len(one.word) == len(piece)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Re\u0301sume\u0301 now", ["Re\u0301sume\u0301", "now"]),
        ("ﬁsh½", ["ﬁsh½", "½"]),  # one half is a 1 and a 2
        ("\u1112\u1161\u11ab글 x", ["\u1112\u1161\u11ab글", "x"]),
        ("北京", ["北", "京"]),
        ("don't", ["don", "t"]),
    ],
)
def test_pieces_are_cut_as_people_read(text, pieces):
    found = [text[one.start : one.end] for one in placed_words(text)]
    assert found == pieces


def test_accents_without_end_take_no_time():
    assert placed_words("a" + "\u0301" * 200_000)[0].start == 0


def test_small_sigma_depends_on_the_text_around_the_word():
    text = "ΩΣ'Ω"
    assert [one.word for one in placed_words(text)] == Vectorizer().words(text)


def test_characters_are_found_by_time_of_the_text():
    words = [f"word{i}" for i in range(3_000)]
    vectorizer = Vectorizer(language="en", forms="characters").fit(words)
    places = FeaturePlaces(words)
    names = vectorizer.named_features(" ".join(words)).values()
    assert all(map(places.of, names))
    assert places.of("*d299*") == [[299], *([i] for i in range(2_990, 3_000))]
