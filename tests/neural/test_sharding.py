"""Two processes that train one network are one process with the whole batch.

The ranks are started once and write down what they found; each test compares a part of that with
a plain head, or with a classifier, in this process.
"""

import os

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import umpteen as um
from umpteen.errors import LabelsError, ParameterError, RanksError
from umpteen.multihead import LabelCode
from umpteen.neural import RowAdam

DIM, N_LABELS, N_SAMPLES = 6, 23, 9  # neither is divided by two
heads = um.neural.heads
CODE = LabelCode(N_LABELS, [6, 4]).shuffled(1)

ONE_CLASS = {
    "full": lambda: heads.Full(DIM, N_LABELS),
    "sampling": lambda: heads.Sampling(DIM, N_LABELS, lengths=[6, 4]),
    "sampling-sparse": lambda: heads.Sampling(DIM, N_LABELS, code=CODE, sparse=True),
    "sampling-own": lambda: heads.Sampling(DIM, N_LABELS, sampling="own", sparse=True),
    "adversarial": lambda: heads.Adversarial(DIM, N_LABELS, n_negatives=7, noise_dim=3),
    "adversarial-sparse": lambda: heads.Adversarial(DIM, N_LABELS, n_negatives=7, sparse=True),
    "adversarial-paper": lambda: heads.Adversarial(
        DIM, N_LABELS, objective="negative_sampling", noise_dim=3, regularizer=0.01
    ),
}
SEVERAL = {
    "full-bce": lambda: heads.Full(DIM, N_LABELS, loss="bce"),
    "full-pal": lambda: heads.Full(DIM, N_LABELS, loss="pick_all_labels"),
    "sampling-bce": lambda: heads.Sampling(DIM, N_LABELS, loss="bce", sparse=True),
}
CASES = ONE_CLASS | SEVERAL


def whole(rows):
    return rows


def half_of(rank):
    return lambda rows: rows[:5] if rank == 0 else rows[5:]


# What both do: with all samples in one process, or with a share of them on each rank


def train_head(name, share, is_rank=False):
    """Three steps of a loop, as a user writes it."""
    torch.manual_seed(0)
    inputs, labels = torch.randn(N_SAMPLES, 4), torch.randint(N_LABELS, (N_SAMPLES,))
    if name in SEVERAL:
        labels = torch.stack([labels, labels.roll(1)], dim=1)
        labels[3] = -100
    encoder = torch.nn.Linear(4, DIM)
    head = CASES[name]().init_bias(torch.arange(N_LABELS), 300).shard()
    wrapped = DistributedDataParallel(encoder) if is_rank else encoder
    if head.has_noise:
        head.fit_noise(wrapped(share(inputs)), share(labels), regularizer=1.0)
    optimizer = RowAdam([*encoder.parameters(), *head.parameters()], lr=0.1)
    losses = []
    for step in range(3):
        torch.manual_seed(10 * step + (dist.get_rank() if is_rank else 0))
        optimizer.zero_grad()
        loss = head(wrapped(share(inputs)), share(labels))
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = {key: dense(each.grad) for key, each in named(encoder, head)}
        optimizer.step()
    answers = head.topk(wrapped(share(inputs)), 20)
    return {
        "losses": losses, "gradients": gradients, "answers": answers,
        "encoder": encoder.state_dict(), "head": head.unshard().state_dict(),
        "n_rows": [len(each) for each in head.parameters()],
    }  # fmt: skip


def named(encoder, head):
    yield from (("encoder." + name, each) for name, each in encoder.named_parameters())
    yield from ((name.removeprefix("part."), each) for name, each in head.named_parameters())


def dense(gradient):
    return gradient.to_dense().clone() if gradient.is_sparse else gradient.clone()


def options_of_forward(share):
    """Everything else that a loop may ask of a head."""
    torch.manual_seed(0)
    features, labels = torch.randn(3, 3, DIM), torch.randint(N_LABELS, (3, 3))
    labels[1, 2] = labels[2, 0] = -100
    found = {}
    for name in ("full", "sampling"):
        head = ONE_CLASS[name]().shard()
        for reduction in ("mean", "sum", "none"):
            torch.manual_seed(1)
            loss = head(share(features), share(labels), label_smoothing=0.2, reduction=reduction)
            found[name, reduction] = loss.detach()
        x = share(features).clone().requires_grad_()
        head(x, share(labels), reduction="none").sum().backward()
        found[name, "gradient"] = x.grad
        found[name, "nothing counts"] = head(
            share(features), torch.full_like(share(labels), -100)
        ).detach()
        found[name, "topk"] = head.topk(share(features), 2)
    return found


# The ranks


def _rank(rank, folder):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    share = half_of(rank)
    found = {name: train_head(name, share, is_rank=True) for name in CASES}
    found["options"] = options_of_forward(lambda rows: rows[:1] if rank == 0 else rows[1:])
    torch.save(found, f"{folder}/{rank}.pt")
    dist.barrier()
    os._exit(0)  # the destructors of DDP and gloo wait for each other now and then


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    torch.multiprocessing.spawn(_rank, (str(folder),), nprocs=2)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in (0, 1)]


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def interleaved(first, second):
    """Rank 0 holds the labels 0, 2, 4, ..., rank 1 the others."""
    table = torch.empty(len(first) + len(second), *first.shape[1:])
    table[::2], table[1::2] = first, second
    return table


# Heads in a loop of one's own


@pytest.mark.parametrize("name", CASES)
def test_a_sharded_head_is_the_plain_head(name, ranks):
    """Or training on two machines is another training."""
    expected, found = train_head(name, whole), [each[name] for each in ranks]
    for rank in found:
        close(rank["losses"], expected["losses"])
        for key, weights in expected["encoder"].items():
            close(rank["encoder"][key], weights)
        for key, weights in expected["head"].items():  # an ordinary head's, on each rank
            close(rank["head"][key], weights)
    for key, gradient in expected["gradients"].items():
        mine, theirs = (rank["gradients"][key] for rank in found)
        close(mine if key.startswith("encoder") else interleaved(mine, theirs), gradient)
        if key.startswith("encoder"):
            close(mine, theirs)
    labels, scores = (
        torch.cat(parts) for parts in zip(*(r["answers"] for r in found), strict=True)
    )
    assert torch.equal(labels, expected["answers"][0])
    close(scores, expected["answers"][1])
