"""Single samples on the page: the text with its telling words, and what was answered."""

from typing import TYPE_CHECKING

from umpteen.markup import Html, join, name, tag
from umpteen.report.highlight import highlight, shorten

if TYPE_CHECKING:
    from umpteen.report.report import Example, Report

_OPEN, _WORDS_MARKED, _WORDS_LISTED = 12, 40, 8


def examples(report: "Report") -> Html:
    """Return the first samples open, the others behind a click."""
    if not report.examples:
        return Html()
    shown = [_example(example) for example in report.examples]
    legend = (
        "✓ right, ✗ wrong, ○ missed. Marked words support the first answer, and stronger marks "
        "mean more support; dotted words count against it."
    )
    more = (
        tag("details", tag("summary", f"{len(shown) - _OPEN} more"), _grid(shown[_OPEN:]))
        if len(shown) > _OPEN
        else ""
    )
    return join(tag("p", legend), _grid(shown[:_OPEN]), more)


def _grid(shown: list[Html]) -> Html:
    return tag("div", *shown, class_="halves")


def _example(example: "Example") -> Html:
    answered = [label for label, _ in example.answered]
    rows = [
        _answer("✓", "right", label, score)
        if label in example.expected
        else _answer("✗", "wrong", label, score)
        for label, score in example.answered
    ]
    rows += [_answer("○", "missed", label) for label in example.expected if label not in answered]
    words = sorted(example.words, key=lambda word: -abs(word[1]))[:_WORDS_MARKED]
    text = highlight(shorten(example.text), words)
    reasons = _reasons(answered[0], words[:_WORDS_LISTED]) if words and answered else ""
    return tag("article", tag("blockquote", text), tag("ul", *rows, class_="answers"), reasons)


def _answer(mark: str, verdict: str, label: str, score: float | None = None) -> Html:
    sign = join(
        tag("span", mark, aria_hidden="true", class_="sign"),
        tag("span", f"{verdict}: ", class_="spoken"),
    )
    number = "" if score is None else tag("span", _score(score), class_="score")
    return tag("li", sign, tag("span", name(label)), number, class_=verdict)


def _score(score: float) -> str:
    return "< 0.01" if 0 < score < 0.01 else f"{score:.2f}"


def _reasons(label: str, words: list[tuple[str, float]]) -> Html:
    listed = [tag("span", word, " ", tag("b", f"{part:+.2f}")) for word, part in words]
    return tag("p", "Why ", name(label), "? ", *listed, class_="words")
