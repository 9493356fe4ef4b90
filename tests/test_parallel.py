"""Results in order, errors at once, and Ctrl-C that is heard."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from umpteen import parallel
from umpteen.errors import ParameterError


def test_results_stand_in_the_order_of_the_items():
    """Order in is order out: sums over parts have the same bits for any number of threads."""

    def slow_at_first(item):
        time.sleep(0.02 if item < 2 else 0)
        return item * item

    finished = []
    results = parallel.run(slow_at_first, range(50), n_jobs=4, done=finished.append)
    assert results == [item * item for item in range(50)]
    assert finished == list(range(50))


def test_tasks_run_side_by_side():
    both = threading.Barrier(2)
    assert parallel.run(lambda _: both.wait(timeout=10) >= 0, range(2), n_jobs=2) == [True, True]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_first_error_surfaces_and_the_rest_is_dropped(n_jobs):
    started = []

    def fails(item):
        started.append(item)
        time.sleep(0.002)
        if item in (3, 4):
            raise LookupError(f"task {item}")
        return item

    with pytest.raises(LookupError, match="task 3"):
        parallel.run(fails, range(1000), n_jobs=n_jobs)
    assert len(started) < 50


def test_an_error_while_reporting_progress_also_drops_the_rest():
    started = []

    def task(item):
        started.append(item)
        time.sleep(0.005)

    def broken_bar(item):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        parallel.run(task, range(16), n_jobs=2, done=broken_bar)
    before = len(started)
    time.sleep(0.05)
    assert len(started) == before < 16


def test_no_items_no_results():
    assert parallel.run(str, [], n_jobs=2) == []


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_an_impossible_number_of_threads_is_refused(n_jobs):
    with pytest.raises(ParameterError, match="use -1 for every core"):
        parallel.run(str, range(3), n_jobs=n_jobs)


def test_every_core_is_the_default():
    assert parallel.n_threads(None) == parallel.n_threads(-1) >= 1


class Backwards:
    """An engine that computes in another order, as a cluster may, and answers in order."""

    def __init__(self):
        self.seen = []

    width = 1

    def map(self, function, items, shared):
        self.seen = items[::-1]
        yield from [function(item, *shared) for item in self.seen][::-1]


def test_a_cluster_engine_takes_the_tasks_of_the_block_only():
    engine = Backwards()
    with parallel.engine(engine):
        assert parallel.map(pow, range(3), (2,)) == [0, 1, 4]
        assert parallel.run(str, range(5), n_jobs=2) == list("01234")  # is not worth the way
    assert engine.seen == [2, 1, 0]
    parallel.map(str, range(5))
    assert engine.seen == [2, 1, 0]


def test_scratch_memory_is_made_anew_where_it_goes():
    scratch = parallel.PerThread(partial(np.zeros, 3))
    scratch.value[:] = 1
    assert pickle.loads(pickle.dumps(scratch)).value.tolist() == [0, 0, 0]


def test_a_setting_of_the_process_that_cannot_be_made_is_not_counted():
    """Otherwise the next block would run without it, and its end would restore nothing."""
    restored, fails = [], [True, False]

    def change():
        if fails.pop(0):
            raise BlockingIOError
        return "before"

    setting = parallel.ProcessSetting(change, restored.append)
    with pytest.raises(BlockingIOError), setting:
        pass
    assert restored == []
    with setting as before:
        assert before == "before"
    assert restored == ["before"]


INTERRUPTED = """
import time
from umpteen import parallel

def task(item):
    print("started\\n", end="", flush=True)
    time.sleep(0.2)

try:
    parallel.run(task, range(1000), n_jobs=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent in another way on Windows")
@pytest.mark.usefixtures("on_ctrl_c")
def test_ctrl_c_is_heard_at_once():
    """A user who has to kill the terminal loses the session, not only this fit."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert output.endswith("interrupted\n")
    assert output.count("started") < 20


INTERRUPTED_INSIDE_A_LOCK = """
import signal
import threading
from umpteen import parallel

def interrupted(self, _):
    signal.raise_signal(signal.SIGINT)
    self._lock.acquire()

threading.Condition._acquire_restore = interrupted  # of semaphores, which pools use
try:
    parallel.run(str, range(1000), n_jobs=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent in another way on Windows")
@pytest.mark.usefixtures("on_ctrl_c")
def test_ctrl_c_leaves_no_lock_broken():
    """A traceback of the standard library would hide what the user asked for."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_INSIDE_A_LOCK],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_ctrl_c_in_compiled_code_is_ctrl_c():
    """It arrives as the cause of causes of a SystemError, which reads like a crash."""

    def interrupted(_):
        try:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as problem:
                raise SystemError("returned a result with an exception set") from problem
        except SystemError as problem:
            raise SystemError("returned a result with an exception set") from problem

    with pytest.raises(KeyboardInterrupt):
        parallel.run(interrupted, [1], n_jobs=1)

    def broken(_):
        raise SystemError("something else")

    with pytest.raises(SystemError, match="something else"):
        parallel.run(broken, [1], n_jobs=1)
