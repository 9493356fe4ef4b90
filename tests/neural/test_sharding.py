"""Two processes that train one network are one process with the whole batch.

The ranks are started once and write down what they found; each test compares a part of that with
a plain head, or with a classifier, in this process.
"""

import faulthandler
import os
import re
import socket
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
import torch.distributed as dist
from scipy.sparse import csr_matrix, random_array
from torch.nn.parallel import DistributedDataParallel

import umpteen as um
from umpteen.errors import LabelsError, ModelPathError, ParameterError, RanksError, UmpteenError
from umpteen.multihead import LabelCode
from umpteen.neural import MLP, Bag, Conv, ResNet, RowAdam, ShardedHead, SparseRows, blueprint
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
    X, Y, y = samples()
    half = rank * 60
    return {
        "a label": raised(lambda: head(x, torch.tensor([1, 2, 99 * rank]))),
        "NaN": raised(lambda: head.topk(x / (1 - rank), 2)),
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


def _rank(rank, folder, port):
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


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(_rank, (str(folder), port), nprocs=2)
    found = [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in (0, 1)]
    found[0]["folder"] = folder
    return found


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


@pytest.mark.parametrize("name", CASES)
def test_each_rank_holds_its_share_of_the_rows(name, ranks):
    """Or a layer that is too big for one machine is too big for two."""
    for rank, n_rows in ((0, 12), (1, 11)):
        assert set(ranks[rank][name]["n_rows"]) == {n_rows}


def test_every_option_of_a_loss_is_that_of_the_plain_head(ranks):
    expected, (first, second) = options_of_forward(whole), (each["options"] for each in ranks)
    for (name, what), value in expected.items():
        mine, theirs = first[name, what], second[name, what]
        if what in ("none", "gradient"):
            mine = torch.cat([mine, theirs])
        if what == "topk":
            close(torch.cat([mine[1], theirs[1]]), value[1])
            assert torch.equal(torch.cat([mine[0], theirs[0]]), value[0])
        else:
            close(mine, value)


def test_in_a_process_alone_nothing_is_sharded():
    """One program for one process and for several."""
    head = heads.Full(DIM, N_LABELS)
    assert head.shard() is head
    assert head.unshard() is head


# NeuralClassifier


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_on_two_ranks_is_that_of_one_process(name, ranks):
    expected = train_classifier(name)
    for rank in ranks:
        found = rank[name + "-fit"]
        np.testing.assert_allclose(found["history"]["loss"], expected["history"]["loss"], 1e-4)
        assert found["history"]["score"] == pytest.approx(expected["history"]["score"])
        for key, weights in expected["weights"].items():
            np.testing.assert_allclose(found["weights"][key], weights, rtol=1e-3, atol=1e-4)
        assert (found["answers"].labels == expected["answers"].labels).mean() > 0.99
        assert np.array_equal(found["watched"], expected["watched"])


def test_noise_that_is_fitted_again_is_that_of_one_process(ranks):
    """But for rounding: a tree may put a class elsewhere if a feature differs in its last bit."""
    found, expected = ranks[0]["noise-fit"]["history"], train_classifier("noise")["history"]
    np.testing.assert_allclose(found["loss"][:1], expected["loss"][:1], 1e-4)
    np.testing.assert_allclose(found["loss"], expected["loss"], 0.05)


@pytest.mark.parametrize("name", [*CLASSIFIERS, "noise", "dropout"])
def test_all_ranks_end_with_the_same_bits(name, ranks):
    """Or the answer depends on which machine is asked."""
    first, second = (each[name + "-fit"] for each in ranks)
    assert first["answers"] == second["answers"]
    assert first["history"] == second["history"]
    for key, weights in first["weights"].items():
        assert weights.tobytes() == second["weights"][key].tobytes(), key


def test_an_interrupted_training_ends_in_the_same_bits(ranks):
    for rank in ranks:
        assert isinstance(rank["stopped"], StoppedError)
        whole, continued = rank["dropout-fit"], rank["continued"]
        assert continued["history"] == whole["history"]
        assert continued["answers"] == whole["answers"]
        for key, weights in whole["weights"].items():
            assert continued["weights"][key].tobytes() == weights.tobytes(), key


def test_dropout_still_learns(ranks):
    assert ranks[0]["dropout-fit"]["score"] > 0.4


def test_a_model_of_two_ranks_is_loaded_by_one_process(ranks):
    model, X, _ = classifier("sampling")
    loaded = um.load(ranks[0]["folder"] / "sampling")
    assert type(loaded) is type(model)
    assert loaded.predict_topk(X, 5) == ranks[0]["sampling-fit"]["answers"]


def test_the_programs_of_the_guide_run(ranks):
    for rank, n_samples in enumerate((5, 6)):
        assert ranks[rank]["programs"] == ((n_samples, 5), "FullHead")
    model = um.load(ranks[0]["folder"] / "model")
    assert model.predict_topk(samples()[0], 3).labels.shape == (121, 3)


# Mistakes: no rank waits for another that has given up


@pytest.mark.parametrize(
    ("what", "kinds", "match"),
    [
        ("a label", (RanksError, LabelsError), "rank 1 raised|99 was given"),
        ("NaN", (RanksError, UmpteenError), "rank 1 raised|NaN"),
        ("no head", (ParameterError,) * 2, "ProductHead cannot be sharded.*DistributedDataP"),
        ("few labels", (ParameterError,) * 2, "1 labels cannot be divided among 2 processes"),
        ("two heads", (RanksError,) * 2, "the same head on every rank"),
        ("biases", (ParameterError,) * 2, "call init_bias before"),
        ("noise", (ParameterError,) * 2, "draws no negatives"),
        ("other rank", (ParameterError,) * 2, "'rank': 1"),
        ("less data", (RanksError,) * 2, r"the shape of X is \(121, 30\) on rank 0, but \(61, 30"),
        ("bad data", (RanksError, LabelsError), "rank 1 raised|negative|-99"),
        ("other data", (RanksError,) * 2, "the checksum of X and Y.*same on every rank"),
        ("settings", (RanksError,) * 2, "the list of parameters"),
        ("product", (ParameterError,) * 2, "ProductHead cannot be sharded"),
        ("checkpoint", (ModelPathError,) * 2, "which 2 processes did not write"),
    ],
)
def test_mistakes_are_refused_on_all_ranks(what, kinds, match, ranks):
    for rank, kind in zip(ranks, kinds, strict=True):
        with pytest.raises(kind, match=match):
            raise rank["mistakes"][what]


def test_after_mistakes_training_can_go_on(ranks):
    first, second = (each["mistakes"]["still there"] for each in ranks)
    assert first == second > 0


@pytest.mark.parametrize(
    "encoder", [Bag(5, 3, residual=True), MLP(5, 3), Conv((1, 14, 14)), ResNet((3, 8, 8))]
)
def test_a_rank_may_be_left_without_samples(encoder):
    """The last batch of an epoch may be smaller than the number of ranks."""
    empty = torch.zeros(0, dtype=torch.int64)
    rows = SparseRows(torch.zeros(1, dtype=torch.int64), empty, empty.float())
    n_features = 5 if isinstance(encoder, MLP) else int(np.prod(getattr(encoder, "image_shape", 0)))
    features = encoder(rows if isinstance(encoder, Bag) else torch.zeros(0, n_features))
    assert features.shape == (0, encoder.out_features)
    features.sum().backward()
    assert all(torch.isfinite(dense(each.grad)).all() for each in encoder.parameters())


def test_one_sharded_head_needs_a_group():
    with pytest.raises(ParameterError, match="init_process_group"):
        ShardedHead(heads.Full(DIM, N_LABELS))
