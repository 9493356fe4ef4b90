"""What the pages promise must be there: links, headings, commands, options, settings."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

import umpteen as um
from umpteen.cli.app import app
from umpteen.text import Vectorizer

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md",
    ROOT / "papers" / "README.md", *sorted((ROOT / "papers").glob("*/README.md")),
    *DOCS, *TUTORIALS,
]  # fmt: skip

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SHELL = re.compile(r"(?:^|[|] *)umpteen (?!:)([^|>]*)")

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix()
)


def blocks(page, language):
    return [text for found, text in _FENCED.findall(page.read_text("utf-8")) if found == language]


def prose(page):
    return _FENCED.sub("", page.read_text("utf-8"))


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page):
    """The umpteen commands of a page's console blocks, as lists of words."""
    lines = [line[2:] for text in blocks(page, "console") for line in text.splitlines()
             if line.startswith("$ ")]  # fmt: skip
    return [shlex.split(found) for line in lines for found in _SHELL.findall(line)]


@each_page
def test_links_lead_somewhere(page):
    for link in _LINK.findall(prose(page)):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}: no such heading"


def test_every_page_is_found_from_the_readme():
    """By a link, or by links of the pages that it links to."""
    found, waiting = set(), [PAGES[0]]
    while waiting:
        page = waiting.pop()
        links = (link.partition("#")[0] for link in _LINK.findall(prose(page)))
        pages = {(page.parent / link).resolve() for link in links if link.endswith(".md")}
        waiting += sorted(pages - found)
        found |= pages
    missing = {page.name for page in DOCS} - {page.name for page in found}
    assert not missing, f"no link leads from README.md to {sorted(missing)}"


def test_package_indexes_get_links_that_work():
    """A relative link leads nowhere there."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    text = PAGES[0].read_text("utf-8")
    assert not _LINK.findall(hook.description(text))
    links = _LINK.findall(hook.description(text, "https://example.org/blob/main/"))
    assert len(links) == len(_LINK.findall(text)) > 30
    assert all(link.startswith("https://example.org/blob/main/") for link in links)


@each_page
def test_python_blocks_are_run(page):
    for text in blocks(page, "python"):
        assert text.startswith(">>> "), f"{page.name}: not a doctest:\n{text}"
        assert text.endswith("\n\n"), f"{page.name}: no empty line after the output of\n{text}"


@each_page
def test_commands_and_options_exist(page):
    known = get_command(app).commands
    for command, *words in commands(page):
        assert command in known, f"{page.name}: there is no command umpteen {command}"
        options = {name for option in known[command].params for name in option.opts}
        for word in words:
            if re.match(r"--?[a-z]", word):
                assert word in options, f"{page.name}: umpteen {command} has no option {word}"


def test_the_pages_have_commands_to_check():
    assert sum(len(commands(page)) for page in PAGES) > 20


@pytest.mark.parametrize("part", [um.Tagger, Vectorizer], ids=lambda part: part.__name__)
def test_every_setting_is_explained(part):
    text = (ROOT / "docs" / "tag-texts.md").read_text("utf-8")
    missing = [name for name in part().get_params(deep=False) if name not in text]
    assert not missing, f"docs/tag-texts.md says nothing about {missing} of {part.__name__}"
