"""If these fail, the page lies, breaks, calls home, runs someone's script, or cannot be read."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

import umpteen as um
from umpteen.report import Example

NASTY = '<script>alert("x")</script>'
VOID = {"meta", "wbr"}
TRAIN = [[0], [0], [0, 1], [1, 2], [2], [3]]
TEST = [[0], [0], [0], [0], [0, 1], [2], [3]]
TOP = um.TopK(
    labels=[[0, 1], [0, 2], [0, 1], [1, 0], [0, 2], [1, 2], [1, 0]],
    scores=[[0.9, 0.5]] * 5 + [[0.8, 0.25]] * 2,
)


class Page(HTMLParser):
    """The elements with their attributes, and the text; every tag is closed in turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def report():
    example = Example(
        text="how to sort a list",
        expected=["sort", "list"],
        answered=[("sort", 0.91), ("heap", 0.002)],
        words=[("sort", 0.8), ("how", -0.3)],
    )
    return um.evaluate(
        TOP,
        TEST,
        TRAIN,
        ks=(1, 2),
        label_names=["sort", "list", "heap", "zip"],
        probabilities=True,
        examples=[example],
        title="Functions",
        facts={"training samples": np.int64(12_345), "seconds": 1.25, "method": "LabelTree"},
    )


def test_page_says_what_the_report_says(report):
    text = Page(report.to_html()).text
    assert "12,345" in text
    assert "1.25" in text
    for value in (report.metrics["precision@1"], report.metrics["PSP@2"], report.bands[0].recall):
        assert f"{100 * value:.1f}" in text
    off = 100 * report.reliability.expected_calibration_error
    assert f"off by {off:.1f} points" in text
    pair = report.confused[0]
    assert f"{pair.given}instead of {pair.missed}" in text
    assert "✓right: sort0.91" in text
    assert "✗wrong: heap&lt; 0.01" in text.replace("<", "&lt;")
    assert "○missed: list" in text


def test_what_is_not_known_is_not_shown():
    bare = um.evaluate(TOP, TEST, ks=[1]).to_html()
    assert re.findall("<h2[^>]*>([^<]*)", bare) == ["Metrics"]
    assert "<svg" not in bare
    Page(bare)


def test_nothing_measured_is_still_a_page():
    top = um.TopK(np.full((0, 5), -1), np.full((0, 5), -np.inf))
    empty = um.evaluate(
        top, np.empty((0, 2)), np.empty((0, 2)), label_names=["a", "b"], probabilities=True
    )
    assert "No label has 5 test samples" in Page(empty.to_html()).text


def test_users_texts_are_escaped_everywhere(report):
    example = Example(NASTY, [NASTY], [(NASTY, 0.5), ("b", 0.1)], [(NASTY, 0.1), ("alert", 1.0)])
    nasty = um.evaluate(
        TOP, TEST, TRAIN, ks=(1, 2), label_names=[NASTY] * 4, examples=[example] * 20
    )
    html = replace(nasty, title=NASTY, facts={NASTY: NASTY}).to_html()
    page = Page(html)
    assert page.all("script") == []
    assert all(not name.startswith("on") for _, has in page.elements for name in has)
    assert page.text.count(NASTY) > 20
    assert "<script" not in html


def test_page_needs_nothing_else(report):
    html = report.to_html()
    page = Page(html)
    assert (
        not {"script", "link", "img", "iframe", "object", "base", "form"}
        & dict(page.elements).keys()
    )
    links = [has["href"] for has in page.all("a")]
    assert set(links) == {f"#{has['id']}" for has in page.all("h2")}
    assert not re.search(r"https?:|url\(|@import|\ssrc=", html)
    assert "default-src 'none'" in html


def test_page_can_be_heard(report):
    page = Page(report.to_html())
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert all(has["role"] == "img" and len(has["aria-label"]) > 20 for has in page.all("svg"))
    assert all(has.get("scope") in ("row", "col") for has in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert "width=device-width" in str(page.all("meta"))


def test_page_is_written_as_it_is_returned(report, tmp_path):
    odd = replace(report, title="Ünïcödé 標籤 \ud800")
    html = odd.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html
    assert "標籤 ?" in html


def test_many_examples_are_folded(report):
    many = replace(report, examples=report.examples * 30)
    assert "18 more" in Page(many.to_html()).text


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read():
    """WCAG AA: 4.5 for text, 3 for the marks of a chart; by day, by night and on paper."""
    style = files("umpteen.report").joinpath("style.css").read_text("utf-8")
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", rules)) for rules in style.split(":root {")[1:]]
    assert len(themes) == 3
    for theme in themes:
        for ink in ("text", "muted", "accent", "right", "wrong"):
            assert contrast(theme[ink], theme["page"]) >= 4.5
        for ground in ("raised", "for1", "for2", "for3", "against"):
            assert contrast(theme["text"], theme[ground]) >= 4.5
        assert contrast(theme["muted"], theme["raised"]) >= 4.5
        assert contrast(theme["accent"], theme["track"]) >= 3
