"""What a notebook shows: complete, well-formed, and nothing of a name becomes markup."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import umpteen as um
from umpteen.ensemble import EnsembleExplanation, MemberContribution
from umpteen.linear.explanation import Explanation, Path, Step
from umpteen.markup import contributions
from umpteen.report import Example
from umpteen.tagger import TagExplanation
from umpteen.tagger.explanation import Neighbour, PathStep

HOSTILE = [
    '<script>alert("x")</script>',
    '"><img src=x onerror=alert(1)>',
    "</table></div><style>*{display:none}</style>",
    "&lt;b&gt; $\\href{javascript:alert(1)}{x}$",
    "\ud800 half a character \x00",
]
ALLOWED = {
    "div": {"class", "style", "aria-hidden"}, "table": set(), "caption": set(), "thead": set(),
    "tbody": set(), "tr": set(), "th": {"scope"}, "td": set(), "p": set(), "b": set(),
    "small": set(), "ul": set(), "li": set(),
}  # fmt: skip

each_name = pytest.mark.parametrize("name", HOSTILE)


class Shown(HTMLParser):
    """The text that a person sees; every element is one of ours, and closed in turn."""

    def __init__(self, shown):
        super().__init__()
        self.open, self.text, self.styles = [], "", []
        self.feed(shown._repr_html_())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert set(dict(attributes)) <= ALLOWED[tag]
        if not self.open:
            assert dict(attributes)["class"] == "umpteen tex2jax_ignore mathjax_ignore"
        self.open.append(tag)
        self.styles += [value for key, value in attributes if key == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def seen(name):
    return name.encode("utf-8", "replace").decode()


def why(name):
    return TagExplanation(
        label=name,
        probability=0.75,
        words=[(name, 1.0), ("plain", -0.5)],
        path=(PathStep([name], 3, [(name, 0.2)], 0.1),),
        neighbours=(Neighbour(name, [name], 0.5),),
        text_similarity=0.4,
        ranked=True,
    )


@each_name
def test_explanations_show_names_as_they_are(name):
    shown = Shown(why(name))
    assert seen(name) in shown.text
    assert "0.750" in shown.text
    assert "+1.000" in shown.text
    assert "-0.500" in shown.text
    assert "via" in shown.text
    assert "own text: 0.40" in shown.text


def test_bars_are_as_long_as_contributions():
    widths = [float(style.split()[1].removesuffix("em;")) for style in Shown(why("x")).styles]
    assert widths == [12.0, 6.0]


def test_an_explanation_without_words_is_shown():
    assert "x  0.750" in Shown(TagExplanation("x", 0.75, [])).text


@each_name
def test_ensembles_show_their_members(name):
    members = [
        MemberContribution(name, 0.5, 1, 1.5),
        MemberContribution("other", 0.0, None, -0.25),
    ]
    shown = Shown(EnsembleExplanation(7, 0.9, members))
    assert seen(name) in shown.text
    assert "label 7: 0.900" in shown.text
    assert "-0.250" in shown.text


def test_trees_show_their_features():
    step = Step(3, np.array([4]), np.array([8, 9]), np.array([0.5, -2.0]), 0.1, -1.4, -1.0)
    shown = Shown(Explanation(4, 0.25, [Path([step], 0.0, 0.25)], 0.0, 0.0))
    assert "label 4: 0.250" in shown.text
    assert shown.text.index("-2.000") < shown.text.index("+0.500")


def test_answers_are_a_table():
    top = um.TopK(labels=[[3, 1], [2, -1]], scores=[[0.5, 0.25], [0.125, -np.inf]])
    shown = Shown(top)
    assert "2 samples, 2 labels each" in shown.text
    assert "0.125" in shown.text
    assert "-1" not in shown.text
    assert "inf" not in shown.text


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0), (200, 50)])
def test_answers_of_any_size_are_shown(shape):
    top = um.TopK(np.full(shape, 7), np.full(shape, 0.5))
    shown = Shown(top)
    assert f"{shape[0]} samples" in shown.text
    assert len(shown.text) < 2_000


@each_name
def test_reports_show_names_as_they_are(name):
    truth, top = [[0], [1], [1]], um.TopK([[1], [1], [0]], [[0.5], [0.5], [0.25]])
    report = um.evaluate(top, truth, truth, label_names=[name, "other"], probabilities=True, ks=[1])
    report = replace(report, title=name, examples=[Example(name, [name], [(name, 1.0)])])
    shown = Shown(report)
    assert seen(name) in shown.text
    assert "33.33" in shown.text  # precision@1
    assert "calibration error" in shown.text


def test_nothing_to_draw_has_no_width():
    assert "width: 0.00em" in contributions("", ["word", "contribution"], [("a", 0.0)])
