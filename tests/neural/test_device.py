"""PyTorch's number of threads: one while we compute, and afterwards what it was before."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch

import umpteen as um
from umpteen.errors import ParameterError
from umpteen.neural.device import find_device, one_thread

USERS = 3  # threads that the user chose


@pytest.fixture(autouse=True)
def chosen_by_the_user():
    before = torch.get_num_threads()
    torch.set_num_threads(USERS)
    yield
    assert torch.get_num_threads() == USERS
    assert in_new_thread(torch.get_num_threads) == USERS
    torch.set_num_threads(before)


def in_new_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(timeout=60)


class Elsewhere:
    """A thread that enters and leaves a block when it is told to."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(1)

    def __call__(self, function, *arguments):
        return self.pool.submit(function, *arguments).result(timeout=60)

    def enter(self):
        self.block = one_thread()
        self(self.block.__enter__)

    def leave(self):
        self(self.block.__exit__, None, None, None)

    def n_threads(self):
        return self(torch.get_num_threads)


@pytest.fixture
def two():
    found = Elsewhere(), Elsewhere()
    yield found
    for each in found:
        each.pool.shutdown()


def test_a_device_that_computes_nothing_is_refused():
    with pytest.raises(ParameterError, match="computes no values"):
        find_device("meta")


@pytest.mark.parametrize("used_before", [True, False])
@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_overlapping_blocks_leave_all_threads_to_the_user(two, used_before, first_to_leave):
    """Otherwise everything in PyTorch is slow until the process ends, and nothing says why."""
    if used_before:
        assert [each.n_threads() for each in two] == [USERS, USERS]
    for each in two:
        each.enter()
    assert [each.n_threads() for each in two] == [1, 1]
    leaves, stays = two[first_to_leave], two[1 - first_to_leave]
    leaves.leave()
    assert (leaves.n_threads(), stays.n_threads()) == (USERS, 1)
    stays.leave()
    assert stays.n_threads() == leaves.n_threads() == USERS


def test_a_block_inside_a_block_does_not_end_the_outer_one():
    """A network that is watched in training predicts; the rest of training keeps its bits."""
    with one_thread():
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1


def test_an_error_gives_the_threads_back(two):
    two[0].enter()
    with pytest.raises(LookupError), one_thread(), one_thread():
        raise LookupError
    assert torch.get_num_threads() == USERS
    assert two[0].n_threads() == 1
    two[0].leave()


def test_predictions_that_overlap_use_one_thread_each_and_give_back_the_rest():
    """A server answers several requests at once."""
    X, Y = np.eye(4, dtype=np.float32), [[0], [1], [2], [3]]
    model = um.NeuralClassifier(
        epochs=1, recipe=um.neural.NetworkRecipe(validation_fraction=0.0)
    ).fit(X, Y)
    meeting, seen = threading.Barrier(2, timeout=60), []

    def wait_for_the_other(*_):
        meeting.wait()
        seen.append(torch.get_num_threads())
        meeting.wait()

    encoder = model._ready_network(torch.device("cpu")).encoder
    encoder.register_forward_pre_hook(wait_for_the_other)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(model.predict_topk, [X, X])
    assert first == second
    assert seen == [1, 1]
