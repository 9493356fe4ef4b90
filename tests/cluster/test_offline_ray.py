"""The same on a Ray cluster of this machine: the same bytes, whatever dies in the middle."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import umpteen as um
from tests.cluster.test_offline import contents, rows, write_rows
from umpteen.cluster import offline_ray
from umpteen.errors import ClusterConnectionError, ClusterError, ModelNotFoundError, ShardsError

ray = pytest.importorskip("ray", reason="needs the extra `cluster`")
N_SHARDS = 6


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """A head without cores, and two nodes of one core each."""
    from ray.cluster_utils import Cluster

    os.environ |= {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "RAY_health_check_period_ms": "500",  # then a dead node is soon found
        "RAY_worker_niceness": "0",  # by default, workers wait for everybody else
    }
    store = {"object_store_memory": 100_000_000}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, **store},
    )
    cluster.workers = [cluster.add_node(num_cpus=1, **store) for _ in range(2)]
    cluster.wait_for_nodes()
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A model, files that take a part of a second each, and the answers without a cluster."""
    place = tmp_path_factory.mktemp("cluster")
    texts = [row["text"] for row in rows(60)]
    labels = [[text.split()[0]] for text in texts]
    um.Tagger(language=None).fit(texts, labels).save(place / "model")
    (place / "in").mkdir()
    for number in range(N_SHARDS):
        write_rows(place / "in" / f"{number}.jsonl", rows(2_000, number))
    um.cluster.predict(place / "model", f"{place}/in/*", place / "expected")
    return place


def predict(work, output, address, inputs="in/*"):
    return um.cluster.predict(work / "model", f"{work}/{inputs}", output, address=address)


def writing(output, but_not=()):
    """Wait for a draft that a worker has open, and return the worker's process id."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                open_files = [os.readlink(each) for each in (process / "fd").iterdir()]
            except OSError:
                continue
            if process.name not in but_not and any(
                name.startswith(f"{output}/.umpteen/") and name.endswith(".part")
                for name in open_files
            ):
                return int(process.name)
        time.sleep(0.02)
    raise AssertionError("no worker wrote a draft")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds workers by /proc")
def test_the_same_bytes_when_a_worker_dies(nodes, work, tmp_path):
    def kill_one():
        killed.append(writing(tmp_path / "out"))
        os.kill(killed[0], signal.SIGKILL)

    killed = []
    killer = threading.Thread(target=kill_one)
    killer.start()
    done = predict(work, tmp_path / "out", nodes.address)
    killer.join()
    assert killed
    assert (done.predicted, done.rows) == (N_SHARDS, N_SHARDS * 2_000)
    assert contents(tmp_path / "out") == contents(work / "expected")
    assert not list((tmp_path / "out" / ".umpteen").glob("*.part"))
    assert predict(work, tmp_path / "out", nodes.address).skipped == N_SHARDS


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds workers by /proc")
def test_a_killed_driver_is_started_again(nodes, work, tmp_path):
    out = tmp_path / "out"
    command = ["-m", "umpteen", "predict", work / "model", work / "in/*.jsonl", "-o", out]
    driver = subprocess.Popen([sys.executable, *command, "--cluster", nodes.address])
    try:
        while not (out.exists() and contents(out)):
            assert driver.poll() is None
            time.sleep(0.01)
        worker = writing(out)
    finally:
        driver.kill()
        driver.wait()
    there = contents(out)
    assert there.items() <= contents(work / "expected").items()
    done = predict(work, out, nodes.address)
    assert done.skipped == len(there) > 0
    assert done.predicted == N_SHARDS - len(there)
    assert contents(out) == contents(work / "expected")
    assert worker


def test_bad_files_and_bad_models_are_told_from_each_other(nodes, work, tmp_path):
    (work / "bad").mkdir(exist_ok=True)
    write_rows(work / "bad" / "a.jsonl", [{"text": "a loaf"}, {"text": None}])
    write_rows(work / "bad" / "b.jsonl", rows(3))
    with (
        pytest.warns(UserWarning, match=r"a\.jsonl, line 2 \(read as jsonl\): 'text' is None"),
        pytest.raises(ShardsError, match=r"1 of 2 files could not be predicted \(a\.jsonl\)"),
    ):
        predict(work, tmp_path / "out", nodes.address, "bad/*")
    assert set(contents(tmp_path / "out")) == {"b.jsonl"}


def test_the_progress_bar_ends_where_the_files_end(nodes, work, tmp_path, monkeypatch):
    """A bar that stays at 90 % makes people wait."""
    steps = []

    class Recorded:
        def advance(self, amount=1.0, **fields):
            steps.append(amount)

    @contextmanager
    def bar(description, total, verbose="auto"):
        steps.append(-total)
        yield Recorded()

    monkeypatch.setattr("umpteen.cluster.offline.progress_bar", bar)
    (work / "long").mkdir(exist_ok=True)
    write_rows(work / "long" / "a.jsonl", rows(2_000))
    predict(work, tmp_path / "out", nodes.address, "long/*")
    assert min(steps[1:]) >= 0
    assert sum(steps) == pytest.approx(0)


def test_the_progress_bar_hears_of_work_within_a_file(nodes):
    """With files of hours, a bar that moves by files says nothing."""
    counter = ray.remote(num_cpus=0)(offline_ray._Counter).remote()
    news = offline_ray._News(ray, counter)
    ray.get(news._asked)  # asked before there was any
    assert news.arrived() == {}
    ray.get([counter.tell.remote("a", 5), counter.tell.remote("a", 9)])
    found = {}
    while found.get("a", 0) < 9:  # the first of two answers may come before the second call
        ray.get(news._asked)
        found |= news.arrived()
    assert found == {"a": 9}
    ray.kill(counter)
    for _ in range(2):  # the first answer may be from before
        ray.wait([news._asked])
        assert news.arrived() == {}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds workers by /proc")
@pytest.mark.usefixtures("on_ctrl_c")
def test_ctrl_c_stops_the_workers_and_the_same_command_goes_on(nodes, work, tmp_path):
    """A cluster that goes on computing costs money, and drafts fill the disk."""
    out = tmp_path / "out"
    command = ["-m", "umpteen", "predict", work / "model", work / "in/*.jsonl", "-o", out]
    command += ["--cluster", nodes.address]
    driver = subprocess.Popen([sys.executable, *map(str, command)], stderr=subprocess.PIPE)
    worker = writing(out)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert said.decode().rstrip().endswith("umpteen: interrupted")
    assert b"Traceback" not in said
    end = time.monotonic() + 60
    while Path(f"/proc/{worker}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not list((out / ".umpteen").glob("*.part"))
    there = contents(out)
    done = predict(work, out, nodes.address)
    assert (done.skipped, done.predicted) == (len(there), N_SHARDS - len(there))
    assert contents(out) == contents(work / "expected")


def test_a_worker_with_another_version_is_refused(nodes, work, tmp_path, monkeypatch):
    """Its answers could be others than those of the other workers."""
    monkeypatch.setattr("umpteen.cluster.offline_ray.versions", lambda: {"umpteen": "0.0"})
    with pytest.raises(ClusterError, match=r"runs with 0\.0: install the same"):
        predict(work, tmp_path / "out", nodes.address)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds workers by /proc")
def test_the_same_bytes_when_a_node_dies(nodes, work, tmp_path):
    """The last test of the cluster, as one node is left."""

    def kill_one():
        writing(tmp_path / "out")
        nodes.remove_node(nodes.workers.pop(), allow_graceful=False)

    killer = threading.Thread(target=kill_one)
    killer.start()
    predict(work, tmp_path / "out", nodes.address)
    killer.join()
    assert contents(tmp_path / "out") == contents(work / "expected")


def test_advice_without_a_cluster(work, tmp_path):
    ray.shutdown()
    with pytest.raises(ClusterConnectionError, match="nothing answers"):
        predict(work, tmp_path / "out", "127.0.0.1:1")
    with pytest.raises(ModelNotFoundError):
        um.cluster.predict(work / "none", f"{work}/in/*", tmp_path / "out", address="auto")
