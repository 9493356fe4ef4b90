"""Every head on a graphics card, beside the same head on the CPU; skipped where there is none."""

import copy

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch

import umpteen as um

from .every_head import ALL, DIM, SPARSE, classes, dense, features, loss_of

CARD = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card")


@pytest.fixture(params=ALL)
def name(request):
    torch.manual_seed(0)
    return request.param


def pair(name, **options):
    """The same head on the CPU and on the card; where groups are drawn, all of them are."""
    if name.startswith("sampling"):
        options["n_random"] = 99
    head = ALL[name](**options)
    return head, copy.deepcopy(head).to(CARD)


def test_answers_are_those_of_the_cpu(name):
    head, on_card = pair(name)
    x = features(3, 8)
    for method in ("topk", "topk_log_proba"):
        labels, scores = getattr(on_card, method)(x.to(CARD), 5)
        assert labels.device.type == scores.device.type == CARD
        torch.testing.assert_close(
            scores.cpu(), getattr(head, method)(x, 5)[1], atol=1e-4, rtol=1e-4
        )
    asked = classes(3, 8, 2)
    found = on_card.log_proba(x.to(CARD), asked.to(CARD)).cpu()
    torch.testing.assert_close(found, head.log_proba(x, asked), atol=1e-4, rtol=1e-4)


def test_losses_and_gradients_are_those_of_the_cpu(name):
    """Negatives of an adversarial head are drawn by a seed of the CPU, so they agree, too."""
    head, on_card = pair(name)
    x, y = features(8), classes(8)
    loss, other = loss_of(head, x, y), loss_of(on_card, x.to(CARD), y.to(CARD))
    torch.testing.assert_close(other.cpu(), loss, atol=1e-4, rtol=1e-4)
    loss.backward()
    other.backward()
    theirs = dict(on_card.named_parameters())
    for key, each in head.named_parameters():
        torch.testing.assert_close(
            dense(theirs[key].grad).cpu(), dense(each.grad), atol=1e-4, rtol=1e-3
        )


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_step_is_that_of_the_cpu(name):
    """On the CPU, rows are moved by a kernel; on a card, by PyTorch."""
    moved = []
    head, on_card = pair(name, sparse=True)
    x, y = features(8), classes(8)
    for each, device in ((head, "cpu"), (on_card, CARD)):
        optimizer = um.neural.RowAdam(each.parameters(), lr=0.01, eps=1e-3)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(each, x.to(device), y.to(device)).backward()
            optimizer.step()
        assert any(each.is_sparse for each in (p.grad for p in each.parameters()))
        moved.append({key: values.cpu() for key, values in each.named_parameters()})
    for key, values in moved[0].items():
        torch.testing.assert_close(moved[1][key], values, atol=1e-3, rtol=1e-2)


def test_half_precision_learns(name):
    """Autocast in bfloat16, as on most cards."""
    _, head = pair(name)
    encoder = torch.nn.Linear(4, DIM).to(CARD)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.05)
    inputs, labels = torch.randn(40, 4, device=CARD), torch.arange(40, device=CARD) % 5
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast(CARD, dtype=torch.bfloat16):
            loss = head(encoder(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert loss.dtype == torch.float32
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


def test_weights_go_from_the_card_to_the_cpu_and_back(name, tmp_path):
    head, on_card = pair(name)
    torch.save(on_card.state_dict(), tmp_path / "weights")
    state = torch.load(tmp_path / "weights", map_location="cpu")
    again = ALL[name]()
    again.load_state_dict(state)
    x = features(5)
    torch.testing.assert_close(again.topk(x, 5)[1], head.topk(x, 5)[1])
    on_card.load_state_dict(head.state_dict())
    assert all(each.device.type == CARD for each in on_card.parameters())
    torch.testing.assert_close(on_card.topk(x.to(CARD), 5)[1].cpu(), head.topk(x, 5)[1])


@pytest.mark.parametrize("head", ["full", "product", "cascade", "sampling", "adversarial",
                                  "powerset", "etf"])  # fmt: skip
def test_a_classifier_learns_on_the_card_and_answers_on_the_cpu(head, tmp_path):
    """A training that is continued, too: the state of the card's generator is in it."""
    random = np.random.default_rng(0)
    y = np.tile(np.arange(4), 50)
    X = (np.eye(4)[y] + 0.1 * random.standard_normal((200, 4))).astype(np.float32)
    options = {"epochs": 8, "learning_rate": 0.03, "verbose": False}
    options |= {"head": head, "device": CARD, "checkpoint": str(tmp_path / "kept")}
    Y = np.eye(4)[y] if head in ("powerset", "etf") else y
    model = um.NeuralClassifier("mlp", **options).fit(X, Y)
    assert np.mean(model.predict_topk(X, 1).labels[:, 0] == y) > 0.95
    more = um.NeuralClassifier("mlp", **{**options, "epochs": 10}).fit(X, Y)
    assert len(more.history_["loss"]) >= len(model.history_["loss"])
    model.save(tmp_path / "model")
    on_cpu = um.load(tmp_path / "model").set_params(device="cpu")
    found, expected = on_cpu.predict_topk(X, 3), model.predict_topk(X, 3)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-2)
