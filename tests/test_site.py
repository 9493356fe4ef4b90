"""The site has every page and every public name, and its checks find what they are for."""

import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import umpteen as um

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = DOCS / "reference"


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docstrings, check_site = script("docstrings"), script("check_site")


def in_contents(page):
    trees = re.findall(r"^:::\{toctree\}\n(.*?)^:::$", page.read_text("utf-8"), re.S | re.M)
    lines = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    return {(page.parent / f"{line}.md").resolve() for line in lines}


@pytest.mark.parametrize("folder", [DOCS, REFERENCE, DOCS / "tutorials"], ids=lambda f: f.name)
def test_every_page_is_in_the_contents(folder):
    pages = {page.resolve() for page in folder.glob("*.md")} - {(folder / "index.md").resolve()}
    missing = pages - in_contents(folder / "index.md")
    assert not missing, f"no toctree of {folder.name}/index.md has {sorted(missing)}"
    assert all(page.exists() for page in in_contents(folder / "index.md"))


def test_every_public_subpackage_has_a_reference():
    documented = re.findall(
        r"^\.\. (?:auto)?module:: (umpteen\.[\w.]+)$",
        "\n".join(page.read_text("utf-8") for page in REFERENCE.glob("*.md")),
        re.M,
    )
    homes = {*um._HOME.values(), *(f"umpteen.{name}" for name in um._SUBPACKAGES)}
    assert homes <= {*documented}, "add a page to docs/reference"


def test_every_public_name_is_in_the_table():
    table = (REFERENCE / "index.md").read_text("utf-8")
    missing = [name for name, home in um._HOME.items() if f"`~{home}.{name}`" not in table]
    assert not missing, f"docs/reference/index.md says nothing about {missing}"


def public_classes():
    for name in sorted({*um._HOME.values(), *(f"umpteen.{each}" for each in um._SUBPACKAGES)}):
        try:
            module = importlib.import_module(name)
            members = [getattr(module, each) for each in getattr(module, "__all__", [])]
        except um.errors.MissingExtraError:
            continue
        yield from (each for each in members if inspect.isclass(each))


def estimators():
    found = {kind for kind in public_classes() if hasattr(kind, "_parameter_constraints")}
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_every_parameter_is_described(kind):
    """A user sees what each parameter is for, not only its name and type."""
    lines = docstrings.with_fields(inspect.getdoc(kind).splitlines())
    lines += docstrings.common_fields(kind, lines)
    described = set(re.findall(r":param (\w+): .", "\n".join(lines)))
    names = set(inspect.signature(kind).parameters)
    assert names - described == set()
    assert described - names == set(), "there is no such parameter"


def test_parameters_become_fields():
    lines = ["A model.", "", "Parameters", "----------", "cost, weight : penalty", "    of errors."]
    assert docstrings.with_fields([*lines, "", ">>> 1", "1"]) == [
        "A model.", "", ":param cost: see `weight`.", ":param weight: penalty of errors.", "",
        ">>> 1", "1",
    ]  # fmt: skip


def page(folder, name, body):
    (folder / name).write_text(f"<html><body>{body}</body></html>", "utf-8")


def test_the_check_finds_what_is_broken(tmp_path):
    page(tmp_path, "index.html", '<a href="other.html#there">x</a><a href="https://a.b">y</a>')
    page(tmp_path, "other.html", '<p id="there"></p><img src="index.html">')
    assert check_site.faults(tmp_path) == []
    page(
        tmp_path,
        "index.html",
        '<a href="gone.html">x</a><a href="other.html#gone">y</a>'
        '<script src="https://a.b/c.js"></script>',
    )
    (tmp_path / "x.css").write_text("@font-face {src: url(https://a.b/c.woff)}")
    assert len(check_site.faults(tmp_path)) == 4
