"""If these fail, hours of measuring are lost, or the page cannot be opened, read or trusted."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from papers import PAPERS, Reproduction, Section, Table, Value, prepare
from papers.__main__ import main
from papers.drawing import lines
from umpteen.errors import ParameterError

ROOT = Path(__file__).parents[2]
NASTY = '<script>alert("x")</script>'
VOID = {"meta", "img"}


class Page(HTMLParser):
    """The elements with their attributes, and the text; every tag is closed in turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def measure():
    yield Table(
        "Some numbers",
        ["method", "P@1", "groups"],
        [
            ["ours", Value(80.12, 0.25, 80.87), 12],
            [NASTY, Value(np.float32(0.5), digits=1), None],
        ],
    )
    yield lines("Fig", ["1", "2"], {"a": [1.0, None], "b": [2.0, 3.0]}, x_label="x", y_label="y",
                spreads={"b": [0.1, 0.1]})  # fmt: skip
    yield f"A remark, {NASTY}."


def stopped():
    raise KeyboardInterrupt
    yield


def section(title, how=measure):
    return Section(title, f"bigger is better {NASTY}.", "Synthetic.", how)


def made(*sections):
    return Reproduction("paper", "A paper & more", "Somebody 2020", False, list(sections))


@pytest.fixture
def page(tmp_path):
    reproduction = made(section("First, of 2"), section("Second"))
    steps = list(reproduction.run(tmp_path))
    assert steps[::2] == reproduction.sections
    assert steps[1::2] == reproduction.measured
    return tmp_path / "paper.html"


def test_the_page_has_everything_and_needs_nothing(page):
    html = page.read_text("utf-8")
    found = Page(html)
    assert "80.12 ± 0.25" in found.text
    assert "paper 80.87" in found.text
    assert "2 of 2 sections" in found.text
    assert found.all("script") == []
    assert found.text.count(NASTY) == 2 * 3
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in found.all("img"))
    assert all("b: 2, 3" in image["alt"] for image in found.all("img"))
    assert not re.search(r"https?:|@import|<link", html)
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in html
    links = [link["href"] for link in found.all("a")]
    assert links == [f"#{heading['id']}" for heading in found.all("h2")]
    assert len(found.all("caption")) == len(found.all("table")) == 2


def test_all_numbers_are_in_the_file_beside_it(page):
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert numbers["finished"]
    first = numbers["sections"][0]
    assert first["tables"][0]["rows"][0][1] == {
        "ours": 80.12, "spread": 0.25, "paper": 80.87, "digits": 2,
    }  # fmt: skip
    assert first["figures"][0]["numbers"]["curves"] == {"a": [1.0, None], "b": [2.0, 3.0]}
    assert "svg" not in first["figures"][0]
    assert first["notes"] == [f"A remark, {NASTY}."]


def test_whoever_stops_keeps_what_is_done(tmp_path):
    reproduction = made(section("First"), section("Second", stopped), section("Third"))
    with pytest.raises(KeyboardInterrupt):
        list(reproduction.run(tmp_path))
    assert "1 of 3 sections" in Page((tmp_path / "paper.html").read_text()).text
    numbers = json.loads((tmp_path / "paper.json").read_text())
    assert [done["title"] for done in numbers["sections"]] == ["First"]
    assert not numbers["finished"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["paper.html", "paper.json"]


def test_no_such_paper_or_section_lists_those_there_are():
    with pytest.raises(ParameterError, match=r"no paper 'condor'.*eagle"):
        prepare("condor")
    with pytest.raises(ParameterError, match=r"no section of eagle has 'Table 99'.*Table 5"):
        prepare("eagle", only="Table 99")


def test_chosen_sections_are_those_with_the_text_in_their_title_in_any_case():
    titles = [section.title for section in prepare("eagle", only="TABLE 5").sections]
    everything = [section.title for section in prepare("eagle").sections]
    assert titles == [title for title in everything if "Table 5" in title]
    assert 0 < len(titles) < len(everything)


NEURAL = ("collapse", "multihead", "siamese")


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_has_sections_that_say_what_they_measure(name):
    if name in NEURAL:
        pytest.importorskip("torch", reason="needs umpteen[neural]")
    sections = prepare(name, quick=True).sections
    titles = [section.title for section in sections]
    assert len(set(titles)) == len(titles) > 0
    for section_ in sections:
        assert section_.claim.endswith(".")
        assert section_.data.endswith(".")


def test_without_pytorch_the_command_says_what_to_install(tmp_path):
    code = f"""if True:
        import sys
        from papers.__main__ import main

        class Without:
            @staticmethod
            def find_spec(name, *_):
                if name == "torch":
                    raise ModuleNotFoundError("No module named 'torch'")

        sys.meta_path.insert(0, Without)
        sys.exit(main(["multihead", "--quick", "-o", {str(tmp_path)!r}]))
    """
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "pip install 'umpteen[neural" in done.stderr


def test_eagles_theory_by_the_command(capsys, tmp_path, monkeypatch):
    """The sections that need no data set, as a person would run them."""
    from papers import eagle

    monkeypatch.setattr(eagle, "_CHAPTERS", (eagle.figures, eagle.theorems))
    assert main(["eagle", "--quick", "-o", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "Error relative to the oracle" in out
    assert "1 of 4: Figure 3" in err
    assert json.loads((tmp_path / "eagle.json").read_text())["finished"]
    found = Page((tmp_path / "eagle.html").read_text())
    assert len(found.all("img")) == 3
    assert "4 of 4 sections" in found.text
    assert main(["eagle", "--only", "Table 99", "-o", str(tmp_path)]) == 1
    assert "papers: error: no section of eagle" in capsys.readouterr().err
