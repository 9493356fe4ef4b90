"""If these fail, the built-in data set differs between runs, leaks answers, or does harm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from umpteen.data.loading import load
from umpteen.data.pydocs import collecting, storing
from umpteen.data.pydocs.assemble import Collection, assemble
from umpteen.data.pydocs.docstrings import read_docstring
from umpteen.data.samples import Samples

FORBIDDEN = ("antigravity", "idlelib", "this", "tkinter", "turtle", "torch", "matplotlib")
PROGRAM = f"""
import json, sys

def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "urllib", "webbrowser")):
        raise RuntimeError(f"{{event}} {{arguments}}")

sys.addaudithook(refuse)
from umpteen.data.loading import load
dataset = load("pydocs")
print(json.dumps([name for name in {FORBIDDEN!r} if name in sys.modules]))
"""


def build(cache: Path, **environment: str) -> tuple[bytes, list[str]]:
    """Build in a process of its own; the bytes it cached and the bad imports it made."""
    variables = os.environ | {"XDG_CACHE_HOME": str(cache)} | environment
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    (file,) = (cache / "umpteen").iterdir()
    return file.read_bytes(), json.loads(run.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return cache, *build(cache, PYTHONHASHSEED="1")


@pytest.fixture(scope="module")
def pydocs(built):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(built[0]))
        patch.setattr("umpteen.data.pydocs.collect", pytest.fail)  # the cache must do
        return load("pydocs")


def test_same_data_with_other_hashes_and_without_docstrings(built, tmp_path):
    again, _ = build(tmp_path, PYTHONHASHSEED="2", PYTHONOPTIMIZE="2")
    assert again == built[1]


def test_nothing_with_side_effects_is_imported(built):
    assert built[2] == []


def test_is_large_and_every_label_can_be_learned(pydocs):
    assert pydocs.n_labels >= 5000
    assert len(pydocs.train) >= 15_000
    assert len(pydocs.dev) >= 500
    assert sum(name.startswith("see-also/") for name in pydocs.test.ids) >= 500
    figures = pydocs.describe().to_dict()["parts"]
    assert figures["train"]["n_labels"] == pydocs.n_labels
    assert figures["train"]["labels_per_sample_max"] <= 10
    assert all(pydocs.label_texts)


def test_parts_share_no_text(pydocs):
    plain = [
        {"".join(filter(str.isalnum, text.lower())) for text in part.texts}
        for part in pydocs.parts.values()
    ]
    assert all(a.isdisjoint(b) for a in plain for b in plain if a is not b)
    assert [len(texts) for texts in plain] == [len(part) for part in pydocs.parts.values()]


def test_names_are_the_ones_people_type(pydocs):
    names = set(pydocs.label_names)
    expected = (
        "asyncio.gather collections.abc.Mapping.get len math.sqrt numpy.absolute "
        "numpy.linalg.lstsq numpy.ndarray.reshape os.listdir os.path.exists os.path.join "
        "pathlib.Path.exists scipy.optimize.least_squares scipy.stats.norm sklearn.linear_model"
        ".Ridge sklearn.linear_model.Ridge.fit str.join unittest.TestCase.assertEqual"
    )
    assert set(expected.split()) <= names
    assert not [name for name in names if "._" in name or name.startswith("_")]


def test_texts_are_prose(pydocs):
    marked = [
        text for text in pydocs.train.texts if ">>>" in text or "``" in text or ":func:" in text
    ]
    assert len(marked) < 0.002 * len(pydocs.train)


COLLECTION = Collection(
    {part: Samples(texts=["a"], labels=[["x"]], ids=["0"]) for part in ("train", "dev", "test")},
    {"x": "an x"},
)


@pytest.mark.parametrize("damage", [b"", b"not gzip", storing.encode(COLLECTION)[:-9]])
def test_damaged_cache_is_made_again(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    storing.cached(lambda: COLLECTION)
    storing.cache_path().write_bytes(damage)
    assert storing.cached(lambda: COLLECTION).label_texts == {"x": "an x"}
    assert storing.cached(pytest.fail).label_texts == {"x": "an x"}
    assert [path.name for path in (tmp_path / "umpteen").iterdir()] == [storing.cache_path().name]


def test_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert storing.cached(lambda: COLLECTION) is COLLECTION


def test_without_a_second_python_what_is_here_is_collected(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    monkeypatch.setattr(collecting, "collect_here", lambda: COLLECTION)
    assert collecting._collect_there() == COLLECTION._replace(is_complete=False)


def test_incomplete_collection_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    storing.cached(lambda: COLLECTION._replace(is_complete=False))
    assert not storing.cache_path().exists()


DOCSTRING = """solve(a, b,
      check=True)

Solve ``a x = b`` for x, e.g. by LU.

Uses :func:`~linalg.lu` inside. It is stable for most matrices [1]_.

.. versionadded:: 1.2
   Not said again.

.. note:: Singular matrices raise an error.

Parameters
----------
a : array
    Not a sentence here.

See Also
--------
lstsq, linalg.pinv : for matrices that are not square
inv :
    the inverse
    of a matrix

Notes
-----
Costs grow with the cube::

    >>> solve(a, b)

- One item of the list.
- Another item of it.
"""


def test_docstring_is_read_as_a_person_reads_it():
    document = read_docstring(DOCSTRING)
    assert document.summary == "Solve a x = b for x, e.g. by LU."
    assert document.sentences == [
        "Uses linalg.lu inside.",
        "It is stable for most matrices.",
        "Singular matrices raise an error.",
        "Costs grow with the cube:",
        "One item of the list.",
        "Another item of it.",
    ]
    assert document.see_also == [
        (["lstsq", "linalg.pinv"], "for matrices that are not square"),
        (["inv"], "the inverse of a matrix"),
    ]


def test_shared_sentences_are_one_sample_and_boilerplate_none():
    docstrings = {f"m.f{i}": f"Function number {i}.\n\nReturns itself, always." for i in range(11)}
    docstrings |= {"m.g": "Does a thing.\n\nTwo say this.", "m.h": "Does it too.\n\nTwo say this."}
    train = assemble(docstrings, {}).parts["train"]
    assert "Returns itself, always." not in train.texts
    both = [labels for text, labels in zip(train.texts, train.labels, strict=True) if "Two" in text]
    assert both in ([["m.g", "m.h"]], [])


def test_see_also_lines_that_repeat_a_summary_are_left_out():
    see = "\n\nSee Also\n--------\nm.other : "
    docstrings = {
        "m.other": "Sort an array.",
        "m.one": f"The first thing.{see}sort an  array",
        "m.two": f"The second thing.{see}Puts things in order.",
    }
    test = assemble(docstrings, {}).parts["test"]
    assert (test.texts, test.labels) == (["Puts things in order."], [["m.other"]])
