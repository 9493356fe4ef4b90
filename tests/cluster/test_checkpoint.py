"""A fit whose process was killed goes on from its finished tasks, and ends with the same bits."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from tests.cluster.models import fitted, small_tasks  # noqa: F401
from umpteen import parallel
from umpteen.cluster.checkpoint import checkpointed
from umpteen.cluster.journal import Journal
from umpteen.errors import NotWritableError
from umpteen.linear.chunks import Chunk


class Counting:
    """An engine in this process that counts its tasks, and may stop for good after some."""

    width = 2

    def __init__(self, after=None):
        self.n_tasks, self._after = 0, after

    def map(self, function, items, shared):
        for item in items:
            if self.n_tasks == self._after:
                signal.raise_signal(signal.SIGKILL)
            self.n_tasks += 1
            yield function(item, *shared)


KILLED = """
import sys
from importlib import import_module
from umpteen import parallel
from umpteen.cluster.checkpoint import checkpointed
from tests.cluster.models import SMALL_TASKS, fitted
from tests.cluster.test_checkpoint import Counting

for place, value in SMALL_TASKS.items():
    module, constant = place.rsplit(".", 1)
    setattr(import_module(module), constant, value)
name, folder, after = sys.argv[1:]
with checkpointed(Counting(int(after)), folder) as engine, parallel.engine(engine):
    fitted(name)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    ("name", "after"), [("LabelTree", 15), ("Tagger", 30), ("Eagle", 2), ("SiameseXML", 25)]
)
@pytest.mark.usefixtures("small_tasks")
def test_a_killed_fit_goes_on(name, after, tmp_path):
    if name == "SiameseXML":
        pytest.importorskip("torch", reason="needs umpteen[neural]")
    folder = tmp_path / "finished"
    command = [sys.executable, "-c", KILLED, name, str(folder), str(after)]
    killed = subprocess.run(command, cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -signal.SIGKILL
    whole, rest = Counting(), Counting()
    with parallel.engine(whole):
        expected = fitted(name)
    with checkpointed(rest, folder) as engine, parallel.engine(engine):
        assert fitted(name) == expected
    assert rest.n_tasks == whole.n_tasks - after
    assert not folder.exists()


def squared(item, factor):
    return np.array([item * item * factor])


def run(folder, items, factor):
    """The results and how many of them were computed; what was is kept, as after an error."""
    engine = Counting()
    with parallel.engine(checkpointed(engine, folder).__enter__()):
        found = [int(each[0]) for each in parallel.map(squared, items, (factor,))]
    return found, engine.n_tasks


def test_only_tasks_that_are_not_done_run(tmp_path):
    assert run(tmp_path, [1, 2, 3], 2) == ([2, 8, 18], 3)
    assert run(tmp_path, [5, 3, 1, 4], 2) == ([50, 18, 2, 32], 2)


def test_tasks_of_other_data_run_again(tmp_path):
    """Results of other data would make a model of both, without an error."""
    run(tmp_path, [1, 2, 3], 2)
    assert run(tmp_path, [1, 2, 3], 5) == ([5, 20, 45], 3)


def test_a_record_that_was_cut_short_is_written_again(tmp_path):
    run(tmp_path, [1, 2, 3], 2)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert run(tmp_path, [1, 2, 3], 2) == ([2, 8, 18], 1)
    assert run(tmp_path, [1, 2, 3], 2) == ([2, 8, 18], 0)


def test_a_record_that_was_changed_is_not_believed(tmp_path):
    run(tmp_path, [1, 2, 3], 2)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert run(tmp_path, [1, 2, 3], 2) == ([2, 8, 18], 1)


def test_files_of_others_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with checkpointed(Counting(), tmp_path) as engine, parallel.engine(engine):
        parallel.map(squared, [1, 2], (3,))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotWritableError, match="checkpoint="):
        checkpointed(Counting(), tmp_path / "file").__enter__()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.sampled_from([np.float32(0.1), np.arange(6, dtype="<i2").reshape(2, 3), np.zeros(0)]),
    lambda each: st.lists(each) | st.lists(each).map(tuple),
)  # fmt: skip


@given(VALUES)
def test_results_come_back_as_they_were(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("journal") / "a.tasks"
    with Journal(path) as journal:
        journal.append("key", value)
    with Journal(path) as journal:
        assert repr(journal.read("key")) == repr(value)


def test_matrices_and_named_tuples_come_back_as_they_were(tmp_path):
    matrix = csr_matrix(np.eye(3, dtype=np.float32))
    chunk = Chunk(*(np.arange(3, dtype=np.int32) for _ in Chunk._fields))
    with Journal(tmp_path / "a") as journal:
        journal.append("key", (matrix, chunk))
    with Journal(tmp_path / "a") as journal:
        found, other = journal.read("key")
    assert (found != matrix).nnz == 0
    assert found.indices.dtype == matrix.indices.dtype
    assert type(other) is Chunk
    np.testing.assert_array_equal(other, chunk)


@dataclass
class Foreign:
    value: int


def test_what_cannot_be_kept_runs_again(tmp_path):
    with Journal(tmp_path / "a") as journal:
        journal.append("key", Foreign(3))
    with Journal(tmp_path / "a") as journal:
        assert "key" not in journal
