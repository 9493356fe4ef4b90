"""A Ray cluster: the same bits as one machine, whatever dies meanwhile."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import umpteen as um
from benchmarks.harness.metered import Disturbed
from tests.cluster.models import fitted, small_tasks, texts  # noqa: F401
from tests.cluster.tasks import dies_once, kernels, largest, nested, pid, refuse, sleeps, totals
from tests.contract.cases import noise
from tests.engines import OtherProcesses
from umpteen import parallel, scratch
from umpteen.cli import main
from umpteen.cli.settings import on_cluster
from umpteen.cluster.blocks import size_of
from umpteen.cluster.engine import RayEngine
from umpteen.errors import ClusterError, ClusterMemoryError
from umpteen.sharding import OnRows, Sharded

ray = pytest.importorskip("ray", reason="needs the extra `cluster`")

NAMES = ["LabelTree", "Tagger", "Eagle", "NearestCentroid", "Ensemble", "SiameseXML"]
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
        *((1, name, False) for name in NAMES[:5]),
        (1, "LabelTree", True),
        *((2, name, False) for name in NAMES),
        (2, "LabelTree", True),
        *((4, name, False) for name in NAMES[:5]),
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
        assert engine.n_sent > 0
        assert (engine.n_rows > 0) == is_divided


def test_eagle_with_a_tree_predicts_on_the_cluster(nodes):
    """Its answers are those of its solver, whose searches are worth sending."""
    X, Y = noise(1000)
    nodes.grow_to(2)
    model = um.Eagle(um.LabelTree(max_leaf=8, branching=4)).fit(X, Y)
    here = model.predict_topk(X)
    with um.cluster.ray() as engine:
        there = model.predict_topk(X)
        assert engine.n_received > 0
    assert there == here
    assert there.scores.tobytes() == here.scores.tobytes()


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
        assert disturbed.left <= 0


@pytest.mark.parametrize("name", ["LabelTree", "Tagger", "SiameseXML"])
@pytest.mark.usefixtures("small_tasks")
def test_same_bits_from_a_scratch_folder(name, nodes, tmp_path, monkeypatch):
    """Features that are larger than every memory are in files, which workers read in place."""
    monkeypatch.setattr("umpteen.cluster.parcels._SMALL", 100)
    nodes.grow_to(2)
    with um.cluster.ray() as engine:
        with um.data.scratch(tmp_path):
            assert fitted(name) == expected(name)
            assert list(tmp_path.glob("*/*"))
        assert engine.most_held == engine.n_rows == 0
        sent_from_folder = engine.n_sent
        assert fitted(name) == expected(name)  # and from the store again
        assert engine.n_sent > 2 * sent_from_folder
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small_tasks")
def test_tasks_ask_for_the_memory_of_rows_that_they_copy_from_files(nodes, tmp_path, monkeypatch):
    """Two tasks of a root would take more memory than a node has, and the system would end both."""
    asked = []
    monkeypatch.setattr("umpteen.cluster.engine._ROWS", 0)
    monkeypatch.setattr("umpteen.cluster.nodes.Nodes.check_task", lambda _, n: asked.append(n))
    with um.cluster.ray(), um.data.scratch(tmp_path):
        assert fitted("LabelTree") == expected("LabelTree")
    assert max(asked) >= size_of(noise(1000)[0])  # of the root, with the labels


@pytest.mark.usefixtures("small_tasks")
def test_a_root_that_no_node_has_the_memory_for(nodes, tmp_path, monkeypatch):
    """Ray would wait for ever for a node that has it."""
    resources = {"CPU": 1, "memory": 1000, "object_store_memory": 10**8}
    node = {"NodeID": "a", "Alive": True, "Resources": resources}
    monkeypatch.setattr("umpteen.cluster.engine._ROWS", 0)
    with um.cluster.ray(), um.data.scratch(tmp_path):
        monkeypatch.setattr(ray, "nodes", lambda: [node])
        with pytest.raises(ClusterMemoryError, match="largest node has 1,000"):
            fitted("LabelTree")


def test_a_worker_that_does_not_see_the_scratch_folder(nodes, tmp_path, monkeypatch):
    """The advice must arrive from where the folder is missing, not hang or end in a traceback."""

    def write_elsewhere(folder, blocks, dtype):
        array = write(folder, blocks, dtype)
        path = folder.place_of(array).path
        os.rename(path, f"{path}.hidden")  # this process has it mapped, others do not
        return array

    write = scratch.Scratch.write
    monkeypatch.setattr(scratch.Scratch, "write", write_elsewhere)
    large = np.arange(100_000.0)
    with (
        um.cluster.ray(),
        um.data.scratch(tmp_path),
        pytest.raises(ClusterError, match="scratch folder that all machines see") as caught,
    ):
        parallel.map(largest, [2, 3], (large,))
    assert "in a task on the cluster" in caught.value.__notes__[0]


@pytest.mark.usefixtures("small_tasks")
def test_same_bits_from_a_scratch_folder_if_a_node_dies(nodes, tmp_path, monkeypatch):
    monkeypatch.setattr("umpteen.cluster.parcels._SMALL", 100)
    nodes.grow_to(3)
    with um.cluster.ray() as engine, um.data.scratch(tmp_path):
        disturbed = Disturbed(engine, 15, lambda _: nodes.kill_one())
        with parallel.engine(disturbed):
            assert fitted("LabelTree") == expected("LabelTree")
        assert disturbed.left <= 0


def test_what_a_step_does_not_need_leaves_the_scratch_folder(nodes, tmp_path):
    """Each step would need more of the disk, and keep more of the files open that may be."""
    large = np.arange(100_000.0)
    with um.cluster.ray():
        for folder in (tmp_path / "one", tmp_path / "other"):
            with um.data.scratch(folder):
                for array in (large, large, -large):
                    expected = [largest(item, array) for item in range(2)]
                    assert parallel.map(largest, range(2), (array,)) == expected
                    assert len(list(folder.glob("*/*"))) == 1


def test_a_step_that_begins_before_another_ends_leaves_it_its_files(nodes, tmp_path):
    large, items = np.arange(100_000.0), list(range(200))
    with um.cluster.ray(), um.data.scratch(tmp_path):
        arriving = parallel.stream(largest, items, (large,))
        found = [next(arriving)]
        parallel.map(largest, range(2), (-large,))
        assert [*found, *arriving] == [largest(item, large) for item in items]


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
    names = "Tagger", "Eagle", "SiameseXML"
    for name in names:
        expected(name)
    with um.cluster.ray() as engine:
        for name in names:
            fitted(name)
        found = parallel.map(kernels, range(4 * engine.width))
    assert max(worker["loaded"] for worker in found) >= 5
    assert {name for worker in found for name in worker["compiled"]} == set()


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
        assert disturbed.left <= 0


@pytest.mark.parametrize("after", [2, 15])
@pytest.mark.usefixtures("small_tasks")
def test_same_bits_when_a_node_dies(after, nodes):
    nodes.grow_to(4 - (after > 2))
    with um.cluster.ray() as engine:
        disturbed = Disturbed(engine, after, lambda _: nodes.kill_one())
        with parallel.engine(disturbed):
            assert fitted("LabelTree") == expected("LabelTree")
        assert disturbed.left <= 0


@pytest.mark.usefixtures("small_tasks")
def test_the_command_line_makes_the_same_model(nodes, tmp_path, capsys):
    lines = [json.dumps({"text": text, "labels": own}) for text, own in zip(*texts(), strict=True)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    there = ["--cluster", "auto", "--checkpoint", f"{tmp_path}/finished"]
    clusters = {
        "here": [],
        "in files": ["--scratch", f"{tmp_path}/scratch"],
        "there": there,
        "read there": [*there, "--stream"],
        "in files there": [*there, "--stream", "--scratch", f"{tmp_path}/scratch"],
    }
    for name, options in clusters.items():
        with pytest.raises(SystemExit) as ended:
            main(["fit", f"{tmp_path}/train.jsonl", "-o", f"{tmp_path}/{name}", *options])
        assert ended.value.code == 0, capsys.readouterr().err
    here, *others = (um.load(tmp_path / name) for name in clusters)
    for other in others:
        assert here.predict_topk(texts()[0]) == other.predict_topk(texts()[0])
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.usefixtures("small_tasks")
def test_the_command_line_evaluates_on_the_cluster(nodes, tmp_path, capsys, monkeypatch):
    lines = [json.dumps({"text": text, "labels": own}) for text, own in zip(*texts(), strict=True)]
    (tmp_path / "test.jsonl").write_text("\n".join(lines))
    um.Tagger(um.LabelTree(max_leaf=8)).fit(*texts()).save(tmp_path / "model")
    reports, engines = [], []
    monkeypatch.setattr(
        "umpteen.cluster.connecting.RayEngine",
        lambda library: engines.append(RayEngine(library)) or engines[-1],
    )
    for options in ([], ["--cluster", "auto"]):
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", f"{tmp_path}/model", f"{tmp_path}/test.jsonl", "--json", *options])
        found = capsys.readouterr()
        assert ended.value.code == 0, found.err
        *_, last = found.out.splitlines()  # Ray may have told of nodes that other tests killed
        reports.append(json.loads(last))
    assert reports[0] == reports[1]
    assert engines[0].n_received > 0  # features and answers were made there


def test_what_ray_prints_is_not_among_results(nodes, capsys):
    """A line about a dead node would make the JSON of `umpteen evaluate` useless."""
    with on_cluster("auto"):
        print("(raylet) The node with node id ... has died")
    found = capsys.readouterr()
    assert "node id ..." not in found.out
    assert "node id ..." in found.err


@pytest.mark.usefixtures("small_tasks")
def test_a_progress_bar_moves_while_tasks_run_elsewhere(nodes, monkeypatch):
    """Hours of work without a sign would look like a program that hangs."""
    bars = []

    @contextmanager
    def bar(description, total, verbose="auto"):
        bars.append(Recorded(description, total, []))
        yield bars[-1]

    monkeypatch.setattr("umpteen.linear.label_tree.progress_bar", bar)
    nodes.grow_to(2)
    with um.cluster.ray() as engine:
        Recorded.engine = engine
        fitted("LabelTree")
    (training,) = (each for each in bars if each.description == "Training")
    assert len(training.received) == training.total > 2
    assert training.received[0] < training.received[-1]  # not all at the end


class Recorded(NamedTuple):
    """A progress bar, and the bytes of results that had arrived at each of its steps."""

    description: str
    total: float
    received: list[int]

    def advance(self, amount=1.0, **fields):
        self.received.append(self.engine.n_received)


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


def test_tasks_that_are_nearly_done_are_not_cancelled(nodes, monkeypatch):
    """Ray ends this process if it cancels a task while the result is arriving."""
    cancelled = []
    monkeypatch.setattr("ray.cancel", lambda task, **_: cancelled.append(task))
    with um.cluster.ray() as engine:
        parallel.map(sleeps, [0] * engine.width)  # workers have started
        stream = parallel.stream(sleeps, [0.01] * (4 * engine.width))
        assert next(stream) == 0.01
        stream.close()
        with pytest.raises(LookupError):
            parallel.map(refuse, range(4))
    assert not cancelled


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
from umpteen import parallel, scratch

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
