"""Every tutorial runs from top to bottom as a notebook, and shows what its page says.

Notebooks run where `make clients` could install nbclient; elsewhere, the pages run as doctests.
"""

import doctest
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.clients.install import folder

DOCS = Path(__file__).parents[1] / "docs"
CLIENT = folder("notebook")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUN = """
import sys
import nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], as_version=4)
book.cells += [nbformat.v4.new_code_cell(name) for name in sys.argv[2:]]
NotebookClient(book, timeout=300, kernel_name="python3").execute()
nbformat.validate(book)
print(nbformat.writes(book))
"""

spec = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebooks)

each_page = pytest.mark.parametrize("page", notebooks.pages(), ids=lambda page: page.stem)


@each_page
def test_the_notebook_is_that_of_the_page(page):
    written = page.with_suffix(".ipynb").read_text("utf-8")
    assert written == notebooks.text_of(page), "run python docs/notebooks.py"


def executed(page, place, *more):
    """Run a notebook, and `more` cells, in a folder of its own; return its cells of code."""
    shutil.copy(DOCS / "tutorials" / "made_up.py", place)
    shutil.copy(page.with_suffix(".ipynb"), place / "tutorial.ipynb")
    settings = {
        name: str(place / ".jupyter")
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, "tutorial.ipynb", *more], cwd=place, capture_output=True,
        text=True, timeout=600, env={**os.environ, **settings, "PYTHONPATH": str(CLIENT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [cell for cell in json.loads(done.stdout)["cells"] if cell["cell_type"] == "code"]


def shown(cell, kind="text/plain"):
    texts = [output.get("text") or output["data"].get(kind, "") for output in cell["outputs"]]
    return "".join("".join(text) for text in texts)


@each_page
@pytest.mark.skipif(not CLIENT.exists(), reason="there is no nbclient: make clients")
def test_the_notebook_shows_what_the_page_says(page, tmp_path):
    if page.stem == "classes":
        pytest.importorskip("torch", reason="needs umpteen[neural]")
    more = ["report", "why"] if page.stem == "library" else []
    cells = executed(page, tmp_path, *more)
    said = [want for kind, _, want in notebooks.cells(page) if kind == "code"]
    for cell, want in zip(cells, said, strict=False):
        got = shown(cell)
        got = f"{got}\n" if got and not got.endswith("\n") else got
        source = "".join(cell["source"])
        assert doctest.OutputChecker().check_output(want, got, FLAGS), f"{source}\nshows {got!r}"
    for name, cell in zip(more, cells[len(said) :], strict=True):
        assert "umpteen" in shown(cell, "text/html"), f"{name} is not shown as HTML"
