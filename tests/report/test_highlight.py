"""If these fail, the page names other reasons than the model had."""

import re

import pytest

from umpteen.report.highlight import highlight, shorten


def marked(html):
    return re.findall(r'<mark class="(\w+)">([^<]*)</mark>', html)


def test_a_phrase_is_found_across_signs_and_single_letters():
    html = highlight(
        "Solve a least-squares problem", [("least squares", 2.0), ("solve least", 2.0)]
    )
    assert marked(html) == [("for2", "Solve"), ("for3", "least"), ("for2", "squares")]


def test_parts_of_a_word_add_up():
    html = highlight("linear model", [("linear", 1.0), ("linear model", -2.0)])
    assert marked(html) == [("against3", "model")]


def test_only_whole_words_count():
    assert marked(highlight("sorted sort resort", [("sort", 1.0)])) == [("for3", "sort")]


def test_text_is_escaped_around_and_inside():
    html = highlight("<b>x</b> & sort", [("sort", 1.0), ("b", 0.5)])
    assert re.sub(r"</?mark[^>]*>", "", html) == "&lt;b&gt;x&lt;/b&gt; &amp; sort"


@pytest.mark.parametrize("words", [[], [("absent", 1.0)], [("sort", 0.0)], [("+", 1.0)], [("", 1)]])
def test_nothing_to_mark(words):
    assert highlight("to sort", words) == "to sort"


def test_short_texts_stay_and_long_ones_end_in_a_word():
    assert shorten("a\n b") == "a b"
    text = shorten("word " * 100, limit=20)
    assert text == "word word word …"
    assert len(shorten("x" * 100, limit=20)) <= 21


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("it flies to fly", [("flies | fly", 1.0)], ["flies", "fly"]),
        ("it flies", [("flies*", 1.0)], ["flies"]),
        ("das Türschloss", [("*schlo*", 1.0)], ["Türschloss"]),
        ("我在北京", [("北 京", 1.0)], ["北", "京"]),
        ("cafe\u0301 noir", [("café", 1.0)], ["cafe\u0301"]),
        ("यह हिन्दी है", [("हिन्दी", 1.0)], ["हिन्दी"]),
    ],
)
def test_features_of_any_language_are_marked_where_they_stand(text, words, expected):
    assert [piece for _, piece in marked(highlight(text, words))] == expected
