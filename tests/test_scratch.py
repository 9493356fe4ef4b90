"""Features in files of a scratch folder: the same bits, and nothing is left behind."""

import contextvars
import errno
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_matrix, vstack

import umpteen as um
from tests.cluster.models import texts
from tests.contract.cases import CASES, noise
from umpteen import parallel, scratch
from umpteen.cluster.engine import _opened
from umpteen.errors import ClusterError, NotWritableError

BLOCKS = st.lists(
    arrays.arrays(np.float32, st.tuples(st.integers(0, 4), st.just(5)), elements=st.integers(0, 2)),
    min_size=1,
    max_size=4,
)


def parts(matrix):
    return matrix.indptr, matrix.indices, matrix.data


@given(BLOCKS, st.booleans())
def test_rows_in_files_are_those_in_memory(tmp_path_factory, blocks, are_long):
    blocks = [csr_matrix(block) for block in blocks]
    expected = vstack(blocks, format="csr")
    with pytest.MonkeyPatch.context() as patch, um.data.scratch(tmp_path_factory.mktemp("s")):
        if are_long:
            patch.setattr("umpteen.validation.arrays._MOST_SHORT", 0)
        mapped = scratch.gathered_rows(map(parts, blocks), 5)
        assert mapped.shape == expected.shape
        assert mapped.indices.dtype == mapped.indptr.dtype
        assert (mapped.indices.dtype == np.int64) == (are_long and sum(mapped.shape[:1]) > 0)
        np.testing.assert_array_equal(mapped.toarray(), expected.toarray())
        assert mapped.has_canonical_format
        assert um.validation.check_features(mapped) is mapped  # nothing copies it


def test_what_is_in_a_file_is_found_there(tmp_path):
    """Otherwise it would be written again for each step of a fit on a cluster."""
    numbers = np.arange(100, dtype=np.int32)
    with um.data.scratch(tmp_path):
        folder = scratch.current()
        mapped = folder.write([numbers[:30], numbers[30:]], np.int32)
        np.testing.assert_array_equal(mapped, numbers)
        part = mapped[10:20].view(np.uint8)
        place = pickle.loads(pickle.dumps(folder.place_of(part)))
        np.testing.assert_array_equal(place.opened().view(np.int32), numbers[10:20])
        assert folder.place_of(numbers.view(np.uint8)) is None


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_tagger_is_the_same_to_the_bit(tmp_path, n_jobs):
    def fitted():
        return um.Tagger(um.LabelTree(max_leaf=8, branching=4, n_jobs=n_jobs)).fit(*texts())

    in_memory = fitted()
    with um.data.scratch(tmp_path / "new folder"):
        on_disk = fitted()
        assert list(tmp_path.glob("new folder/*/*"))
    assert not list(tmp_path.glob("new folder/*"))
    one, other = (each.predict_topk(texts()[0], k=3) for each in (in_memory, on_disk))
    assert one.labels.tobytes() == other.labels.tobytes()
    assert one.scores.tobytes() == other.scores.tobytes()
    on_disk.save(tmp_path / "model")  # after the block, too
    assert um.load(tmp_path / "model").predict_topk(texts()[0], k=3).scores.tobytes() == (
        one.scores.tobytes()
    )


@pytest.mark.parametrize("name", ["Eagle", "Ensemble", "NearestCentroid", "NeuralClassifier"])
def test_methods_are_the_same_to_the_bit(tmp_path, monkeypatch, name):
    pytest.importorskip(CASES[name].needs)
    X, Y = noise(1000)
    expected = CASES[name].fitted(X, Y).predict_topk(X)
    written, write = [], scratch.Scratch.write
    monkeypatch.setattr(scratch.Scratch, "write", lambda *args: written.append(1) or write(*args))
    with um.data.scratch(tmp_path):
        mapped = scratch.gathered_rows([parts(X)], X.shape[1])
        written.clear()
        found = CASES[name].fitted(mapped, Y).predict_topk(mapped)
        assert written  # what was made of it is there, too
    assert found.labels.tobytes() == expected.labels.tobytes()
    assert found.scores.tobytes() == expected.scores.tobytes()


@given(BLOCKS, st.integers(0, 2**32))
def test_unit_rows_and_some_rows_are_those_in_memory(tmp_path_factory, blocks, seed):
    whole = csr_matrix(vstack(list(map(csr_matrix, blocks)), format="csr"))
    some = np.random.default_rng(seed).random(whole.shape[0]) < 0.5
    with pytest.MonkeyPatch.context() as patch, um.data.scratch(tmp_path_factory.mktemp("s")):
        patch.setattr("umpteen.scratch._ROWS", 2)
        mapped = scratch.gathered_rows([parts(whole)], 5)
        units = scratch.unit_rows(mapped)
        assert units.data.tobytes() == um.validation.unit_rows(whole).data.tobytes()
        assert units.indices is mapped.indices
        for rows in (some, np.flatnonzero(some)):
            found = scratch.rows_at(mapped, rows)
            np.testing.assert_array_equal(found.toarray(), whole[rows].toarray())
            assert um.validation.check_features(found) is found
        if whole.nnz:
            assert scratch.current().place_of(units.data)


LIVING = """
import os, signal, sys
import numpy as np
from umpteen import scratch

with scratch.scratch(sys.argv[1]):
    kept = scratch.current().write([np.ones(3)], np.float32)
    print("ready", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_the_folder_of_a_killed_process_is_removed_by_the_next(tmp_path):
    """Disks would fill up with features of fits that are long gone."""
    (tmp_path / "umpteen-notes").mkdir()  # by somebody else
    command = [sys.executable, "-c", LIVING, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"ready\n"
        with um.data.scratch(tmp_path):  # both live, and neither takes the other's away
            assert len(list(tmp_path.glob("umpteen-*/*.bin"))) == 1
        assert len(list(tmp_path.glob("umpteen-*/*.bin"))) == 1
        process.communicate(b"die\n")
    assert process.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("umpteen-*/*.bin"))) == 1
    with um.data.scratch(tmp_path):
        assert not list(tmp_path.glob("umpteen-*/*.bin"))
    assert [path.name for path in tmp_path.iterdir()] == ["umpteen-notes"]


FORKED = """
import os, sys
import numpy as np
from umpteen import scratch

with scratch.scratch(sys.argv[1]):
    mapped = scratch.current().write([np.ones(3)], np.float32)
    place = scratch.current().place_of(mapped)
    child = os.fork()
    if child == 0:
        del mapped
        os._exit(0)
    os.waitpid(child, 0)
    print(place.opened().view(np.float32).sum())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_leaves_the_files_there(tmp_path):
    """Workers of a cluster read them, whatever a process does that knows no more of them."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "3.0\n"


def test_a_folder_of_another_machine_stays(tmp_path):
    """Locks of network drives are not always seen by other machines."""
    (tmp_path / "umpteen-1").mkdir()
    (tmp_path / "umpteen-1.lock").write_text("a machine elsewhere")
    with um.data.scratch(tmp_path):
        pass
    assert len(list(tmp_path.iterdir())) == 2


def test_files_are_removed_after_an_error(tmp_path):
    def interrupted():
        yield np.ones(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), um.data.scratch(tmp_path):
        scratch.current().write(interrupted(), np.float32)
    assert not list(tmp_path.iterdir())
    assert scratch.current() is None


def test_features_that_nobody_uses_any_more_leave_the_disk(tmp_path):
    """A model that answers in the block would run out of open files after 300 questions."""
    vectorizer = um.text.Vectorizer().fit(["a cat", "a dog"])
    with um.data.scratch(tmp_path):
        rows = [vectorizer.transform(["a cat"])[:, [1]] for _ in range(5)]
        assert not list(tmp_path.glob("*/*"))
        matrix = vectorizer.transform(["a cat"])
        part = matrix.data[:1].view(np.uint8)
        del matrix
        assert len(list(tmp_path.glob("*/*"))) == 1
        assert scratch.current().place_of(part) is not None
        del part
        assert not list(tmp_path.glob("*/*"))
        kept = vectorizer.transform(["a cat"])
    assert rows[0].sum() == kept[:, [1]].sum() > 0  # after the block, too


def test_an_array_without_values_is_opened_without_a_file(tmp_path):
    assert scratch.Place(str(tmp_path / "1.bin"), 0, 0).opened().size == 0


def test_blocks_on_several_threads_write_into_files_of_their_own(tmp_path):
    def fitted(_):
        return um.text.Vectorizer(n_jobs=1).fit_transform(["a cat", "a dog"] * 50).toarray()

    with um.data.scratch(tmp_path), ThreadPoolExecutor(4) as threads:
        expected = fitted(0)
        waiting = [threads.submit(contextvars.copy_context().run, fitted, i) for i in range(20)]
        for each in waiting:
            np.testing.assert_array_equal(each.result(), expected)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_a_name_that_no_folder_can_have(name, tmp_path):
    with pytest.raises(NotWritableError, match="scratch folder"):
        um.data.scratch(f"{tmp_path}/{name}").__enter__()


def test_a_folder_that_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(NotWritableError, match=r"scratch folder .* is a file.*give a folder"):
            um.data.scratch(path).__enter__()


def test_a_full_disk(tmp_path, monkeypatch):
    """The fit ends with advice, and its files are gone, so that the disk is not full any more."""

    class Full:
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            pass

    vectorizer = um.text.Vectorizer().fit(["a cat", "a dog"])
    with um.data.scratch(tmp_path):
        monkeypatch.setattr(Path, "open", lambda *_: Full())
        with pytest.raises(NotWritableError, match=r"No space left.*enough room"):
            vectorizer.transform(["a cat"])
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


def test_a_machine_that_does_not_see_the_folder(tmp_path):
    missing = scratch.Place(str(tmp_path / "1.bin"), 0, 8)
    with pytest.raises(ClusterError, match="scratch folder that all machines"):
        _opened(missing)
    (tmp_path / "1.bin").write_bytes(b"1234")
    with pytest.raises(ClusterError, match="scratch folder that all machines"):
        _opened(missing)


def test_tasks_on_threads_write_nothing(tmp_path):
    with um.data.scratch(tmp_path):
        assert parallel.run(lambda _: scratch.current(), range(4), n_jobs=2) == [None] * 4
