# ruff: noqa: RUF001 letters of other scripts look like Latin ones
"""What a word is, in every language: a wrong cut here is a word that no model can learn."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpteen.kernels.tokens import ALONE, KIND_SHIFT, LETTER, MARK, SEPARATOR
from umpteen.text import Vectorizer
from umpteen.text.letters import letters

from . import literal

TRICKY = (
    "aAbZ09_ .'-\0\n\u00a0äÄßẞéΣσςİıIǅﬁ½²ⅫＡΆ\u0301\u0307\u0316\u093c\u200c\u200d\ufe0f\ud800\udfff"
)
SCRIPTS = "кЖ北京々〇ひらがなデータベースーㄅ한글กำาิ์ລາວខ្មែរမြန်नमस्तेதமிழ்مرحباעברית👩💻❤𝔸𐐀𠀀"
texts = st.text(st.one_of(st.sampled_from(TRICKY + SCRIPTS), st.characters(exclude_categories=())))

LANGUAGES = {
    "Plain, old-fashioned English; e.g. don't!": "plain old fashioned english e g don t",
    "The C language and vitamin C": "the c language and vitamin c",
    "snake_case x86_64 3.14": "snake_case x86_64 3 14",
    "Straße ÄRGER Über": "straße ärger über",
    "Cafe\u0301 = Café": "café café",
    "ΟΔΥΣΣΕΥΣ, ΣΑΣ": "οδυσσευς σας",
    "İstanbul ISPARTA": "i\u0307stanbul isparta",
    "हिन्दी में लिखा हुआ": "हिन्दी में लिखा हुआ",
    "தமிழ் மொழி": "தமிழ் மொழி",
    "می\u200cخواهم مُدَرِّس": "می\u200cخواهم مُدَرِّس",
    "לָמָּה": "לָמָּה",
    "北京大学 1898": "北 京 大 学 1898",
    "Python入門": "python 入 門",
    "東京タワーへ行く": "東 京 タワー へ 行 く",
    "한국어 단어": "한국어 단어",
    "ที่นี่": "ที่ นี่",
    "ខ្មែរ": "ខ្ មែ រ",
    "ＦＵＬＬ　ｗｉｄｔｈ ﬁne x²": "full width fine x2",
    "I \u2764\ufe0f \U0001f469\u200d\U0001f4bb code": "i code",
    "𝔸𝔹 𐐀𐐁 𠀀𠀁": "ab 𐐨𐐩 𠀀 𠀁",
    "a\0b\ud800c": "a b c",
    "\u0301 \u0301a a\u0301\u0301": "a á\u0301",
    "": "",
}


@pytest.mark.parametrize("text", LANGUAGES)
def test_words_of_languages(text):
    assert Vectorizer().words(text) == LANGUAGES[text].split()


@given(texts)
def test_words_are_those_of_the_literal_version(text):
    assert Vectorizer().words(text) == literal.words(text)


@given(st.lists(texts, max_size=3), st.sampled_from([" ", "中", "a"]))
def test_long_texts_are_normalised_in_pieces_without_a_trace(parts, filler):
    text = (filler * 997).join(["", *parts, ""])
    assert Vectorizer().words(text) == literal.words(text)


def test_every_character_is_of_its_kind_and_case():
    table = letters()
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        lower = character.lower() if code != 0x130 else "i"
        kind = SEPARATOR
        if literal.is_mark(lower):
            kind = MARK
        elif literal.is_letter(lower):
            kind = ALONE if literal.stands_alone(lower) else LETTER
        if unicodedata.category(character) not in ("Cn", "Co") and code != 0x3A3:
            assert table[code] & 0xFFFFFF == ord(lower)
        assert table[code] >> KIND_SHIFT == kind, hex(code)


def test_only_the_known_letters_need_more_than_the_table_for_lower_case():
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    assert [c for c in every if len(c.lower()) > 1] == ["İ"]
    assert [c for c in every if f"a{c} ".lower()[1] != c.lower()[0]] == ["Σ"]


def test_a_megabyte_of_accents_does_not_hang():
    text = "a" + "\u0316\u0301" * 500_000
    assert len(Vectorizer().words(text)) == 1


def test_a_word_of_a_megabyte():
    text = f"{'x' * 2**20} {'Ü' * 2**20}"
    assert Vectorizer().words(text) == text.lower().split()


def test_stop_words_are_words_of_any_case_and_in_parts():
    words = Vectorizer(stop_words=["THE", "don't", "北"]).words("The don says: don't! 北京 theme")
    assert words == ["says", "京", "theme"]
