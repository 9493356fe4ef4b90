"""If these fail, the built-in data set differs between processes, leaks answers, or does harm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from umpteen.data.loading import load
from umpteen.data.pydocs import isolated, storing
from umpteen.data.pydocs.assemble import Collection, assemble
from umpteen.data.pydocs.docstrings import read_docstring
from umpteen.data.pydocs.libraries import libraries
from umpteen.data.samples import Samples
from umpteen.errors import DatasetNotFoundError

# What notebooks, debuggers, sitecustomize and impatient people do to a process.
NOTEBOOK = """
import builtins, os, sys, warnings
import numpy, scipy.stats.distributions, sklearn.experimental.enable_iterative_imputer
import umpteen as um
um.data
sys.excepthook = sys.displayhook = sys.breakpointhook = lambda *_: None
sys.ps1, sys.stdin = "In [1]: ", None
builtins.display = builtins.print = lambda *_: None
builtins.sum = lambda *items, add=sum, **start: add(*items, **start)
numpy.std = lambda *_: 1.0
numpy.mean.__doc__ = "Patched, as some do."
scipy.linalg.solve = scipy.linalg.inv
del sys.modules["sklearn.linear_model"]
os.chdir("/")
warnings.simplefilter("error")
um.data.load("pydocs")
"""
COMMAND_LINE = """
import umpteen.cli, umpteen.demo

def load_only(name, load=umpteen.demo.load):
    load(name)
    raise SystemExit(0)  # the demo itself is shown elsewhere

umpteen.demo.load = load_only
umpteen.cli.main(["demo"])
"""
HARMFUL = ("antigravity", "idlelib", "this", "tkinter", "turtle", "torch", "matplotlib")
WATCHED = f"""
import json, sys
from pathlib import Path

def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "urllib", "webbrowser")):
        raise RuntimeError(f"{{event}} {{arguments}}")

sys.addaudithook(refuse)
from umpteen.data.pydocs.collecting import collect_here
collected = collect_here()
print(json.dumps([name for name in {HARMFUL!r} if name in sys.modules]))
from umpteen.data.pydocs.storing import cache_path, encode
cache_path().parent.mkdir()
cache_path().write_bytes(encode(collected))
"""
STEERED = {
    "LC_ALL": "C",
    "PYTHONHASHSEED": "2",
    "PYTHONOPTIMIZE": "2",
    "PYTHONWARNINGS": "error::FutureWarning",
    "SCIPY_ARRAY_API": "1",
    "SKLEARN_ENABLE_METADATA_ROUTING": "1",
}


def build(program: str, cache: Path, **environment: str) -> bytes:
    """Load in a process of its own; the bytes that it cached."""
    variables = os.environ | {"XDG_CACHE_HOME": str(cache)} | environment
    command = [sys.executable, "-c", program]
    subprocess.run(command, env=variables, check=True, stdin=subprocess.DEVNULL, timeout=300)
    (file,) = (cache / "umpteen").glob("pydocs-*.json.gz")
    return file.read_bytes()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def harmful(cache):
    """What a process imports that collects by itself, and writes into the cache."""
    variables = os.environ | {"XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", WATCHED]
    watched = subprocess.run(
        command, env=variables, capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(watched.stdout)


@pytest.fixture(scope="module")
def built(cache, harmful):
    (file,) = (cache / "umpteen").iterdir()
    return file.read_bytes()


@pytest.fixture(scope="module")
def pydocs(cache, built):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr("umpteen.data.pydocs.collect", pytest.fail)  # the cache must do
        return load("pydocs")


def test_nothing_with_side_effects_is_imported(harmful):
    """Loading a data set must not open a browser, a window or a connection."""
    assert harmful == []


def test_same_data_from_a_notebook_that_changed_everything(built, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.excepthook = print\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert build(NOTEBOOK, tmp_path, **STEERED, PYTHONPATH=path) == built


@pytest.mark.parametrize("program", [NOTEBOOK, COMMAND_LINE])
def test_a_warm_cache_serves_every_process(cache, built, program):
    """Nobody waits again, and nobody writes over what others have read."""
    (file,) = (cache / "umpteen").iterdir()
    before = file.stat()
    assert build(program, cache) == built
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_is_large_and_every_label_can_be_learned(pydocs):
    assert pydocs.n_labels >= 5000
    assert len(pydocs.train) >= 15_000
    assert len(pydocs.dev) >= 150
    assert len(pydocs.test) >= 500
    assert all(name.startswith("see-also/") for name in [*pydocs.dev.ids, *pydocs.test.ids])
    figures = pydocs.describe().to_dict()["splits"]
    assert figures["train"]["n_labels"] == pydocs.n_labels
    assert figures["train"]["labels_per_sample_max"] <= 10
    assert all(pydocs.label_texts)


def test_parts_share_no_text(pydocs):
    plain = [
        {"".join(filter(str.isalnum, text.lower())) for text in part.texts}
        for part in pydocs.splits.values()
    ]
    assert all(a.isdisjoint(b) for a in plain for b in plain if a is not b)
    assert [len(texts) for texts in plain] == [len(part) for part in pydocs.splits.values()]


def test_names_are_the_ones_people_type(pydocs):
    names = set(pydocs.label_names)
    expected = (
        "asyncio.gather collections.abc.Mapping.get len math.sqrt numpy.absolute "
        "numpy.linalg.lstsq numpy.ndarray.reshape os.listdir os.path.exists os.path.join "
        "pathlib.Path.mkdir scipy.optimize.least_squares scipy.stats.norm sklearn.linear_model"
        ".Ridge sklearn.linear_model.Ridge.fit str.join sys.displayhook sys.excepthook "
        "unittest.TestCase.assertEqual"
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


STORED = storing.encode(COLLECTION)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "umpteen"


@pytest.mark.parametrize("damage", [b"", b"not gzip", STORED[:-9]])
def test_damaged_cache_is_made_again(own_cache, damage):
    storing.cached(lambda: STORED)
    storing.cache_path().write_bytes(damage)
    assert storing.cached(lambda: STORED).label_texts == {"x": "an x"}
    assert storing.cached(pytest.fail).label_texts == {"x": "an x"}
    assert [path.name for path in own_cache.iterdir()] == [storing.cache_path().name]


def test_cache_of_an_older_collector_is_not_used(own_cache):
    """It may lack what the process lacked that made it."""
    own_cache.mkdir()
    current = storing.cache_path().name
    older = current.replace(f"pydocs-{storing.COLLECTOR_VERSION}-", "pydocs-1-")
    first = older.rpartition("-")[0] + ".json.gz"  # its names had no checksum
    for name in {older, first} - {current}:
        (own_cache / name).write_bytes(STORED)
    fresh = Collection(COLLECTION.splits, {"x": "a fresh x"})
    assert storing.cached(lambda: storing.encode(fresh)).label_texts == fresh.label_texts


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("umpteen.data.pydocs.storing.COLLECTOR_VERSION", 0),
        ("sys.version", "3.11.7 (main, Jan  1 2024) [GCC 4]"),
        ("platform.python_version", lambda: "3.99.1"),
        ("sys.platform", "amiga"),
        ("sysconfig.get_path", lambda name: "/elsewhere/lib"),
    ],
)
def test_another_collector_or_python_has_its_own_cache(monkeypatch, where, what):
    before = storing.cache_path()
    monkeypatch.setattr(where, what)
    assert storing.cache_path() != before


@pytest.mark.parametrize("name", ["numpy", "scipy", "scikit-learn", "joblib"])
@pytest.mark.parametrize("change", [{"version": "0.1"}, {"home": "/elsewhere"}])
def test_other_libraries_have_their_own_cache(monkeypatch, name, change):
    before = storing.cache_path()
    changed = libraries() | {name: libraries()[name]._replace(**change)}
    monkeypatch.setattr(storing, "libraries", lambda: changed)
    assert storing.cache_path() != before


def test_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert storing.cached(lambda: STORED).label_texts == {"x": "an x"}


@pytest.mark.parametrize("module", ["numpy", "sklearn"])
def test_a_broken_library_is_named_and_nothing_is_kept(own_cache, tmp_path, monkeypatch, module):
    """Half a data set would be taken for the whole one, for ever."""
    (tmp_path / f"{module}.py").write_text("raise ImportError('its library is torn')")
    broken = {
        name: library._replace(home=str(tmp_path)) if library.module == module else library
        for name, library in libraries().items()
    }
    monkeypatch.setattr(isolated, "libraries", lambda: broken)
    with pytest.raises(DatasetNotFoundError, match="its library is torn; check that") as caught:
        storing.cached(isolated.collect)
    assert "Traceback" in caught.value.__notes__[0]
    assert not own_cache.exists()


def test_an_interpreter_of_another_version_is_not_believed(monkeypatch):
    """Python was upgraded under a running process."""
    monkeypatch.setattr(sys, "version", "3.11.0 (of yesterday)")
    with pytest.raises(DatasetNotFoundError, match="of yesterday"):
        isolated.collect()


@pytest.mark.parametrize("executable", [None, "", "/usr/sbin/httpd", "/nonexistent/python"])
def test_a_program_that_embeds_python_finds_its_interpreter(monkeypatch, executable):
    expected = Path(sys.exec_prefix, "bin", "python{}.{}".format(*sys.version_info))
    monkeypatch.setattr(sys, "executable", executable)
    assert isolated._interpreter() == str(expected)
    monkeypatch.setattr(sys, "exec_prefix", "/nonexistent")
    with pytest.raises(DatasetNotFoundError, match=r"this process has only .*folder=\.\.\."):
        isolated.collect()


def test_a_frozen_program_is_not_started_again(monkeypatch):
    """Its `sys.executable` is the program itself, which would start itself without end."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(subprocess, "run", pytest.fail)
    with pytest.raises(DatasetNotFoundError, match="needs a Python interpreter"):
        isolated.collect()


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
    train = assemble(docstrings, {}).splits["train"]
    assert "Returns itself, always." not in train.texts
    both = [labels for text, labels in zip(train.texts, train.labels, strict=True) if "Two" in text]
    assert both in ([["m.g", "m.h"]], [])


def test_see_also_lines_that_repeat_a_summary_are_left_out():
    see = "\n\nSee Also\n--------\nm.other : "
    docstrings = {
        "m.other": "Sort an array.",
        "m.one": f"The first thing.{see}sort an  array",
        "m.two": f"The second thing.{see}Put things in order.",
    }
    test = assemble(docstrings, {}).splits["test"]
    assert (test.texts, test.labels) == (["Put things in order."], [["m.other"]])
