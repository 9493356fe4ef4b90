"""Two processes that train one network are one process with the whole batch.

The ranks are started once and write down what they found; each test compares a part of that with
a plain head, or with a classifier, in this process.
"""

import socket

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch

import umpteen as um
from umpteen.errors import (
    FeaturesError,
    LabelsError,
    ModelPathError,
    ParameterError,
    RanksError,
    UmpteenError,
)
from umpteen.neural import MLP, Bag, Conv, ResNet, ShardedHead, SparseRows

from .two_ranks import (
    CASES,
    CLASSIFIERS,
    DIM,
    N_LABELS,
    StoppedError,
    classifier,
    dense,
    options_of_forward,
    rank_of_two,
    samples,
    train_classifier,
    train_head,
    whole,
)

heads = um.neural.heads


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(rank_of_two, (str(folder), port), nprocs=2)
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
        ("overflow", (RanksError, FeaturesError), "rank 1 raised|scores overflow"),
        ("no head", (ParameterError,) * 2, "ProductHead cannot be sharded.*DistributedDataP"),
        ("few labels", (ParameterError,) * 2, "1 labels cannot be divided among 2 processes"),
        ("two heads", (RanksError,) * 2, "the same head on every rank"),
        ("biases", (ParameterError,) * 2, "call init_bias before"),
        ("noise", (ParameterError,) * 2, "draws no negatives"),
        ("other rank", (ParameterError,) * 2, "'rank': 1"),
        ("less data", (RanksError,) * 2, r"the shape of X is \(121, 30\) on rank 0, but \(61, 30"),
        ("bad data", (RanksError, LabelsError), "rank 1 raised|negative|-99"),
        ("other data", (RanksError,) * 2, "the checksum of X and Y.*same data and parameters"),
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
