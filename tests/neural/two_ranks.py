"""What two processes do that train one network, and what one process does in their place."""

import faulthandler
import os
import re
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from scipy.sparse import csr_matrix, random_array
from torch.nn.parallel import DistributedDataParallel

import umpteen as um
from umpteen.errors import (
    UmpteenError,
)
from umpteen.multihead import LabelCode
from umpteen.neural import MLP, Bag, RowAdam, blueprint
from umpteen.neural.checkpoint import Keeper

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
        # Products of halves may differ in their last bits, which would move classes in the tree.
        head.fit_noise(share(encoder(inputs).detach()), share(labels), regularizer=1.0)
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


def samples(n=121, n_features=30):
    """Labels follow from features; batches of 27 and 108 samples to train on, 13 to validate."""
    random = np.random.default_rng(0)
    X = csr_matrix(random_array((n, n_features), density=0.3, rng=random, dtype=np.float32))
    scores = X.toarray() @ random.normal(size=(n_features, N_LABELS))
    return X, csr_matrix(scores >= np.sort(scores, axis=1)[:, [-3]]), scores.argmax(1)


def classifier(name):
    """Its samples, too; the last batch of 109 has one sample, so that rank 1 has none."""
    X, Y, y = samples()
    options = {
        "sets": {"encoder": blueprint(Bag, dim=8), "recipe__clip": 0.5, "recipe__averaging": 0.5},
        "sgd": {"encoder": blueprint(MLP, dim=8), "learning_rate": 0.1,
                "recipe__optimizer": "sgd", "recipe__weight_decay": 0.01},
        "sampling": {"encoder": blueprint(Bag, dim=8), "recipe__max_seconds": 1e6,
                     "head": blueprint(heads.Sampling, lengths=[6, 4], sparse=True)},
        "adversarial": {"encoder": blueprint(MLP, dim=8), "head": "adversarial", "epochs": 1},
        "noise": {"encoder": blueprint(MLP, dim=8), "head": "adversarial"},
        "dropout": {"encoder": blueprint(Bag, dim=8, dropout=0.3, residual=True), "epochs": 12},
    }[name]  # fmt: skip
    defaults = {"epochs": 4, "batch_size": 27, "learning_rate": 0.02, "recipe__patience": 9}
    model = um.NeuralClassifier().set_params(**{**defaults, **options})
    return model, X, y if name in ("sampling", "adversarial", "noise") else Y


CLASSIFIERS = ["sets", "sgd", "sampling", "adversarial"]


def train_classifier(name, folder=None, **parameters):
    model, X, Y = classifier(name)
    model.set_params(**parameters)
    watched = []
    model.fit(X, Y, watch=lambda now: watched.append(now.predict_topk(X[:5], 2).labels))
    if folder is not None:
        model.save(folder)
    return {"history": model.history_, "weights": model.weights_, "watched": watched,
            "answers": model.predict_topk(X, 5), "score": model.score(X, Y)}  # fmt: skip


# The ranks


def mistakes(rank):
    """What each rank is told if something is wrong on one of them, or on both."""
    head, x = heads.Full(DIM, N_LABELS).shard(), torch.randn(3, DIM)
    large = heads.Full(DIM, N_LABELS)
    torch.nn.init.constant_(large.weight, 1e20)
    large = large.shard()
    X, Y, y = samples()
    half = rank * 60
    return {
        "a label": raised(lambda: head(x, torch.tensor([1, 2, 99 * rank]))),
        "NaN": raised(lambda: head.topk(x / (1 - rank), 2)),
        "overflow": raised(lambda: large.topk(x.abs() * 1e20**rank, 2)),
        "no head": raised(lambda: heads.Product(DIM, N_LABELS).shard()),
        "few labels": raised(lambda: heads.Full(DIM, 1).shard()),
        "two heads": raised(lambda: heads.Full(DIM, 10 + rank).shard()),
        "biases": raised(lambda: head.init_bias(np.ones(N_LABELS))),
        "noise": raised(lambda: head.fit_noise(x, torch.arange(3))),
        "other rank": raised(lambda: head.load_state_dict(other_rank(head))),
        "less data": raised(lambda: um.NeuralClassifier().fit(X[half:], Y[half:])),
        "bad data": raised(lambda: um.NeuralClassifier().fit(X, y - 99 * rank)),
        "other data": raised(lambda: um.NeuralClassifier().fit(X, np.roll(y, rank))),
        "settings": raised(lambda: um.NeuralClassifier(epochs=1 + rank).fit(X, Y)),
        "product": raised(lambda: um.NeuralClassifier(head="product").fit(X, y)),
        "checkpoint": raised(lambda: um.NeuralClassifier(checkpoint="model").fit(X, Y)),
        "still there": float(head(x, torch.arange(3)).detach()),
    }


def other_rank(head):
    state = head.state_dict()
    head.ranks = type(head.ranks)(1 - head.ranks.rank, 2)
    settings = head.get_extra_state()
    head.ranks = type(head.ranks)(1 - head.ranks.rank, 2)
    return {**state, "_extra_state": settings}


class StoppedError(UmpteenError):
    pass


def interrupted(rank, folder, n_saves):
    """Stop both ranks when rank 1 is about to write a checkpoint that rank 0 has; continue."""
    save, count = Keeper.save, [0]

    def stopping(keeper, run):
        count[0] += 1
        if count[0] < n_saves or rank == 0:
            save(keeper, run)
        if count[0] == n_saves:
            raise StoppedError

    Keeper.save = stopping
    settings = {"checkpoint": f"{folder}/run", "recipe__checkpoint_every": 0}
    problem = raised(lambda: train_classifier("dropout", **settings))
    Keeper.save = save
    torch.manual_seed(rank)
    return problem, train_classifier("dropout", checkpoint=settings["checkpoint"])


def raised(act):
    try:
        act()
    except UmpteenError as error:
        return error
    return None


def programs():
    """Those of the guide."""
    guide = (Path(__file__).parents[2] / "docs" / "neural.md").read_text("utf-8")
    return re.findall(r"```py\n(.*?)```", guide.partition("## Several processes")[2], re.DOTALL)


def run_programs(rank, folder):
    """Run the guide's programs as torchrun does; the first one starts the process group."""
    fitting, loop = programs()
    X, _, y = samples()
    inside = {"X": X[:60], "y": y[:60], "encoder": torch.nn.Linear(4, 64), "n_labels": N_LABELS}
    inside["loader"] = [(torch.randn(5 + rank, 4), torch.arange(5 + rank))] * 2
    os.chdir(folder)
    exec(fitting, inside)
    exec(loop, inside)
    return inside["best"].shape, type(inside["plain"]).__name__


def rank_of_two(rank, folder, port):
    faulthandler.dump_traceback_later(400, exit=True)  # rather than wait for ever
    torch.set_num_threads(1)
    os.environ |= {
        "GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "RANK": str(rank), "WORLD_SIZE": "2",
    }  # fmt: skip
    told = run_programs(rank, folder)
    share = half_of(rank)
    found = {name: train_head(name, share, is_rank=True) for name in CASES}
    found["options"] = options_of_forward(lambda rows: rows[:1] if rank == 0 else rows[1:])
    for name in (*CLASSIFIERS, "noise", "dropout"):
        is_saved = name == "sampling" and rank == 0
        found[name + "-fit"] = train_classifier(name, f"{folder}/sampling" if is_saved else None)
    found["programs"] = told
    found["stopped"], found["continued"] = interrupted(rank, folder, n_saves=8)
    found["mistakes"] = mistakes(rank)
    torch.save(found, f"{folder}/{rank}.pt")
    dist.barrier()
    os._exit(0)  # the destructors of DDP and gloo wait for each other now and then
