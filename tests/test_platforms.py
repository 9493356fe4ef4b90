"""What Windows and macOS lack or do otherwise, simulated: locks, signals, encodings, file names.

These tests show that the code takes those ways, not that it was run on such a machine.
"""

import ast
import errno
import os
import re
import signal
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from umpteen import storage, writing
from umpteen.errors import NotWritableError
from umpteen.storage import folder as model_folder
from umpteen.storage import storable

PACKAGE = Path(__file__).parents[1] / "src" / "umpteen"
GOLDEN = Path(__file__).parent / "storage" / "golden"
POSIX_ONLY = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "uvloop"}
RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{i}" for port in ("com", "lpt") for i in range(10)),
}


@cache
def modules():
    """The package as (name, syntax tree)."""
    return [
        (path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text("utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def imports(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(node):
    names = [name.name.partition(".")[0] for name in node.names]
    return {*names, getattr(node, "module", None)}


@storable
@dataclass
class Weights:
    """A model of one array."""

    values: np.ndarray


class Windows:
    """`os` as Windows has it: another name, and folders that cannot be opened."""

    name = "nt"

    def __getattr__(self, name):
        if name in ("fork", "getuid", "chown", "nice", "O_NOCTTY"):
            raise AttributeError(name)
        return getattr(os, name)

    def open(self, path, *arguments):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return os.open(path, *arguments)


@pytest.fixture
def on_windows(monkeypatch):
    monkeypatch.setattr(model_folder, "fcntl", None)
    monkeypatch.setattr(model_folder, "os", Windows())
    monkeypatch.setattr(writing, "os", Windows())


def test_models_are_saved_loaded_and_edited_without_locks(on_windows, tmp_path):
    storage.save(Weights(np.arange(3.0)), tmp_path / "model")
    with storage.edit(tmp_path / "model") as model:
        model.values = model.values + 1
    assert storage.load(tmp_path / "model").values.tolist() == [1, 2, 3]


def test_a_model_is_replaced_while_its_old_arrays_are_open(on_windows, tmp_path, monkeypatch):
    """Windows refuses to remove files that are mapped into memory; the next save does it."""
    storage.save(Weights(np.zeros(3)), tmp_path)
    before = {path.name for path in tmp_path.glob("*.npy")}

    def refuse(path, missing_ok=False):
        raise PermissionError(errno.EACCES, "in use", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        storage.save(Weights(np.ones(3)), tmp_path)
    assert storage.load(tmp_path).values.tolist() == [1, 1, 1]
    assert before <= {path.name for path in tmp_path.glob("*.npy")}
    storage.save(Weights(np.full(3, 2.0)), tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 1


def test_files_are_written_without_owners_and_terminals(on_windows, tmp_path):
    target = tmp_path / "answers.jsonl"
    for content in (b"first", b"second"):
        with writing.open_to_write(target) as file:
            file.write(content)
    assert target.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_another_program_has_open_stays_as_it_was(tmp_path, monkeypatch):
    """A spreadsheet program on Windows locks its file, so that it cannot be replaced."""
    target = tmp_path / "answers.csv"
    target.write_bytes(b"old")

    def refuse(source, destination):
        raise PermissionError(errno.EACCES, "in use by another program", str(destination))

    monkeypatch.setattr(os, "replace", refuse)
    with (
        pytest.raises(NotWritableError, match=r"answers\.csv"),
        writing.open_to_write(target) as file,
    ):
        file.write(b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_no_process_is_forked():
    """macOS and Windows start processes afresh, without what the parent had in memory."""
    for name, tree in modules():
        used = set().union(*(imported(node) for node in imports(tree)))
        called = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "multiprocessing" not in used, name
        assert "os.fork" not in called, name


def test_no_signal_is_taken_for_granted():
    """Windows has no SIGHUP, for one."""
    for name, tree in modules():
        code = ast.unparse(tree)
        for found in set(re.findall(r"signal\.(SIG[A-Z]+)\b", code)) - {"SIGINT", "SIGTERM"}:
            assert f"hasattr(signal, '{found}')" in code, f"{name}: Windows has no {found}"


def test_modules_of_posix_are_optional():
    for name, tree in modules():
        outer = [node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.With)]
        guarded = {node for each in outer for node in imports(each)}
        for node in imports(tree):
            is_optional = node in guarded or not POSIX_ONLY & imported(node)
            assert is_optional, f"{name}: {ast.unparse(node)} fails on Windows"


def text_opened(tree):
    """The calls that open a file as text without saying how its letters are written."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        keywords = {keyword.arg for keyword in node.keywords}
        words = [each.value for each in node.args if isinstance(each, ast.Constant)]
        is_named = "encoding" in keywords or {"utf-8", "ascii"} & set(words)
        if name in ("read_text", "write_text") and not is_named:
            yield ast.unparse(node)
        if isinstance(node.func, ast.Name) and name == "open" and not is_named:
            binary = any(isinstance(word, str) and "b" in word for word in words[-1:])
            if not binary and "devnull" not in ast.unparse(node):
                yield ast.unparse(node)


def test_no_file_is_read_by_the_machines_own_encoding():
    """Windows reads files as cp1252 unless told otherwise."""
    assert {name: found for name, tree in modules() if (found := list(text_opened(tree)))} == {}


def test_the_check_of_encodings_finds_what_it_is_for():
    code = (
        "open('a'); open('a', 'rb'); p.read_text(); p.read_text('utf-8'); open('a', encoding='x')"
    )
    assert list(text_opened(ast.parse(code))) == ["open('a')", "p.read_text()"]


def test_files_of_a_model_have_names_that_every_system_allows():
    for path in GOLDEN.rglob("*.*"):
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", path.name)
        assert path.name.partition(".")[0].lower() not in RESERVED
        assert not path.name.endswith(".")


def test_files_of_a_model_differ_not_only_in_case():
    """macOS and Windows keep `A.npy` and `a.npy` in one file."""
    for folder in {path.parent for path in GOLDEN.rglob("*.npy")}:
        names = os.listdir(folder)
        assert len({name.casefold() for name in names}) == len(names)


def test_the_server_starts_where_there_is_no_sighup(monkeypatch):
    pytest.importorskip("uvicorn", reason="needs umpteen[serve]")
    import asyncio

    from umpteen.serve import running

    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    asked = []

    async def serve(sockets):
        asked.append(sockets)

    asyncio.run(running._serve(SimpleNamespace(serve=serve), {}, "listener"))
    assert asked == [["listener"]]


def test_the_server_starts_where_open_files_have_no_limit(monkeypatch):
    pytest.importorskip("uvicorn", reason="needs umpteen[serve]")
    from umpteen.serve import running

    monkeypatch.setitem(sys.modules, "resource", None)  # as an import that fails
    running._allow_many_files()
