"""A Ray cluster: the same bits as one machine, whatever dies meanwhile."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import umpteen as um
from tests.cluster.models import fitted, small_tasks, texts  # noqa: F401
from tests.cluster.tasks import dies_once, kernels, largest, nested, pid, refuse, sleeps, totals
from tests.engines import OtherProcesses
from umpteen import parallel
from umpteen.cli import main
from umpteen.cluster.blocks import size_of
from umpteen.errors import ClusterMemoryError
from umpteen.sharding import OnRows, Sharded

ray = pytest.importorskip("ray", reason="needs the extra `cluster`")

NAMES = ["LabelTree", "Tagger", "Eagle", "NearestCentroid", "Ensemble"]
expected = cache(fitted)


@pytest.fixture(scope="module")
def other_processes():
    engine = OtherProcesses()
    yield engine
    engine.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("small_tasks")
def test_same_bits_on_threads_and_processes(name, other_processes):
    for threads in (1, 2, 4):
        with parallel.at_most(threads):
            assert fitted(name) == expected(name)
    with parallel.engine(other_processes):
        assert fitted(name) == expected(name)


def divide(monkeypatch, rows):
    """Have matrices stay in blocks of rows that would be small enough to be sent whole."""
    monkeypatch.setattr("umpteen.cluster.engine._WHOLE", 0)
    monkeypatch.setattr("umpteen.cluster.engine._LARGEST_BLOCK", 1e-4)
    monkeypatch.setattr("umpteen.cluster.engine._ROWS", rows)


@pytest.mark.parametrize(
    ("n_nodes", "name", "is_divided"),
    [
        (1, "Tagger", False),
        (1, "LabelTree", True),
        *((2, name, False) for name in NAMES),
        (2, "LabelTree", True),
        (4, "Tagger", False),
        (4, "Eagle", False),
        (4, "LabelTree", True),
    ],
)
@pytest.mark.usefixtures("small_tasks")
def test_same_bits_on_nodes(n_nodes, name, is_divided, nodes, monkeypatch):
    """A model that depends on the cluster it was trained on cannot be trained again."""
    nodes.grow_to(n_nodes)
    if is_divided:
        divide(monkeypatch, 0.0625)
    with um.cluster.ray() as engine:
        assert engine.width == n_nodes
        assert fitted(name) == expected(name)
        assert (engine.n_sent > 0) == (name != "NearestCentroid")  # it has no tasks worth the way
        assert (engine.n_rows > 0) == is_divided


@pytest.fixture(params=[0.0625, 0], ids=["slices", "blocks one by one"])
def in_blocks(request, monkeypatch):
    divide(monkeypatch, request.param)


def test_short_steps_use_all_nodes(nodes):
    """Ray may keep a whole step on one node if the step before was short."""
    nodes.grow_to(2)
    with um.cluster.ray() as engine:
        for _ in range(3):
            workers = parallel.map(pid, range(8 * engine.width))
    assert len(set(workers)) >= engine.width
    assert max(map(workers.count, workers)) <= 12


@pytest.mark.parametrize("name", ["LabelTree", "Tagger"])
@pytest.mark.usefixtures("small_tasks", "in_blocks")
def test_same_bits_if_tasks_get_their_rows_only(name, nodes):
    nodes.grow_to(2)
    with um.cluster.ray() as engine:
        assert fitted(name) == expected(name)
        assert engine.n_rows > 0


@pytest.mark.usefixtures("small_tasks", "in_blocks")
def test_same_bits_if_a_node_with_blocks_dies(nodes):
    nodes.grow_to(3)
    with um.cluster.ray() as engine:
        disturbed = Disturbed(engine, 15, lambda _: nodes.kill_one())
        with parallel.engine(disturbed):
            assert fitted("LabelTree") == expected("LabelTree")
        assert disturbed._left <= 0


def test_matrices_larger_than_the_store_of_a_node(nodes):
    """The nodes that only compute need room for their share of the rows."""
    nodes.grow_to(2)
    n_rows, per_row = 30_000, 500
    random = np.random.default_rng(0)
    values = random.integers(100, size=n_rows * per_row).astype(np.float32)
    columns = np.tile(np.arange(per_row, dtype=np.int32), n_rows)
    X = csr_matrix((values, columns, np.arange(n_rows + 1, dtype=np.int32) * per_row))
    orders = random.permutation(n_rows).astype(np.int32).reshape(150, -1)
    items = [OnRows(np.sort(rows)) for rows in orders]
    items += [OnRows(range(n_rows)), OnRows(range(5, 2000))]
    smallest = min(
        node["Resources"]["object_store_memory"] for node in ray.nodes() if node["Alive"]
    )
    assert size_of(X) > 1.1 * smallest
    with um.cluster.ray() as engine:
        found = parallel.map(totals, items, (Sharded(X),))
        assert size_of(X) < engine.n_sent < 1.1 * size_of(X)
        parallel.map(totals, items[:4], (Sharded(X),))
        assert engine.n_sent < 1.1 * size_of(X)  # it was there already
    assert found == [totals(item, Sharded(X)) for item in items]


@pytest.mark.usefixtures("small_tasks")
def test_workers_compile_nothing_that_threads_have_compiled(nodes):
    """Otherwise each fit on a fresh cluster would start with half a minute of compilation."""
    for name in ("Tagger", "Eagle"):
        expected(name)
    with um.cluster.ray() as engine:
        for name in ("Tagger", "Eagle"):
            fitted(name)
        found = parallel.map(kernels, range(4 * engine.width))
    assert max(worker["loaded"] for worker in found) >= 5
    assert {name for worker in found for name in worker["compiled"]} == set()


class Disturbed:
    """An engine that something happens to after some results."""

    def __init__(self, engine, after, disturb):
        self._engine, self._left, self._disturb = engine, after, disturb

    @property
    def width(self):
        return self._engine.width

    def map(self, function, items, shared):
        for result in self._engine.map(function, items, shared):
            self._left -= 1
            if self._left == 0:
                self._disturb(result)
            yield result


def test_tasks_of_a_dead_worker_run_again(nodes, tmp_path):
    large = np.arange(100_000.0)
    with um.cluster.ray():
        assert parallel.map(dies_once, range(24), (tmp_path, large)) == large[:24].tolist()
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize("after", [5, 15])
@pytest.mark.usefixtures("small_tasks")
def test_same_bits_when_a_worker_dies(after, nodes):
    with um.cluster.ray() as engine:
        workers = sorted(set(parallel.map(pid, range(8 * engine.width))))
        disturbed = Disturbed(engine, after, lambda _: os.kill(workers[0], signal.SIGKILL))
        with parallel.engine(disturbed):
            assert fitted("LabelTree") == expected("LabelTree")
        assert disturbed._left <= 0


@pytest.mark.parametrize("after", [2, 15])
@pytest.mark.usefixtures("small_tasks")
def test_same_bits_when_a_node_dies(after, nodes):
    nodes.grow_to(4 - (after > 2))
    with um.cluster.ray() as engine:
        disturbed = Disturbed(engine, after, lambda _: nodes.kill_one())
        with parallel.engine(disturbed):
            assert fitted("LabelTree") == expected("LabelTree")
        assert disturbed._left <= 0


@pytest.mark.usefixtures("small_tasks")
def test_the_command_line_makes_the_same_model(nodes, tmp_path, capsys):
    lines = [json.dumps({"text": text, "labels": own}) for text, own in zip(*texts(), strict=True)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    there = ["--cluster", "auto", "--checkpoint", f"{tmp_path}/finished"]
    clusters = {"here": [], "there": there, "read there": [*there, "--stream"]}
    for name, options in clusters.items():
        with pytest.raises(SystemExit) as ended:
            main(["fit", f"{tmp_path}/train.jsonl", "-o", f"{tmp_path}/{name}", *options])
        assert ended.value.code == 0, capsys.readouterr().err
    here, *others = (um.load(tmp_path / name) for name in clusters)
    for other in others:
        assert here.predict_topk(texts()[0]) == other.predict_topk(texts()[0])


def test_errors_of_tasks_are_raised_as_they_are(nodes):
    with um.cluster.ray(), pytest.raises(LookupError, match="item 0") as caught:
        parallel.map(refuse, range(4))
    assert "refuse" in caught.value.__notes__[0]


def test_what_does_not_fit_a_node_is_refused(nodes):
    nodes.grow_to(2)
    with um.cluster.ray(), pytest.raises(ClusterMemoryError, match="object-store-memory"):
        parallel.map(len, [(), ()], (np.zeros(110_000_000, np.uint8),))


def test_tasks_have_one_thread_and_start_no_tasks_elsewhere(nodes):
    """Workers that waited for tasks of their own would wait for each other."""
    with um.cluster.ray():
        assert parallel.map(nested, [2, 3]) == [(1, [0, 1]), (1, [0, 1, 4])]


def test_what_nobody_waits_for_is_cancelled(nodes):
    """Otherwise the next fit would wait for tasks of one that was given up."""
    with um.cluster.ray() as engine:
        stream = parallel.stream(sleeps, [0, *[600] * (3 * engine.width)])
        assert next(stream) == 0
        stream.close()
        assert parallel.map(sleeps, [0, 0.1]) == [0, 0.1]


def test_arrays_of_the_step_before_are_not_sent_again(nodes):
    """Features are most of what moves, and every step of a fit needs them."""
    large = np.arange(1_000_000.0)
    with um.cluster.ray() as engine:
        for _ in range(3):
            assert parallel.map(largest, [2, 3], (large,)) == [999_998, 999_997]
    assert large.nbytes < engine.n_sent < 1.1 * large.nbytes


INTERRUPTED = """
import os, sys, time
from pathlib import Path
import umpteen as um
from umpteen import parallel

def task(item, folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

try:
    with um.cluster.ray(sys.argv[1]):
        parallel.map(task, range(100), (sys.argv[2],))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent in another way on Windows")
@pytest.mark.usefixtures("on_ctrl_c")
def test_ctrl_c_ends_remote_tasks(nodes, tmp_path):
    """A cluster that goes on computing costs money, and the next fit waits for it."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, nodes.address, str(tmp_path)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: list(tmp_path.iterdir()))
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "interrupted\n"
    for worker in tmp_path.iterdir():
        wait_until(lambda pid=int(worker.name): not is_alive(pid))


def wait_until(is_so, seconds=90):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
