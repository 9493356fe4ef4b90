"""The head and its losses, against literal versions."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from umpteen.collapse import EtfHead, fixed_frame, pick_all_labels
from umpteen.errors import FeaturesError, LabelsShapeError, ParameterError
from umpteen.neural import Targets

BASES = ["cross_entropy", "mse", "label_smoothing", "focal"]


def batch(n, n_labels, seed):
    random = np.random.default_rng(seed)
    Y = csr_matrix(random.random((n, n_labels)) < 0.4)
    logits = torch.from_numpy(3 * random.standard_normal((n, n_labels)))
    return logits, Y


def literal(base, z, k, smoothing=0.1, gamma=2.0):
    """The loss of logits z for the one class k."""
    p = np.exp(z) / np.exp(z).sum()
    one_hot = np.eye(len(z))[k]
    if base == "mse":
        return ((z - one_hot) ** 2).sum()
    if base == "focal":
        return -((1 - p[k]) ** gamma) * np.log(p[k])
    target = one_hot if base == "cross_entropy" else (1 - smoothing) * one_hot + smoothing / len(z)
    return -(target * np.log(p)).sum()


@pytest.mark.parametrize("base", BASES)
@given(st.integers(1, 6), st.integers(2, 6), st.booleans(), st.integers(0, 1000))
def test_losses_are_sums_over_labels(base, n, n_labels, normalize, seed):
    logits, Y = batch(n, n_labels, seed)
    total = 0.0
    for z, row in zip(logits.numpy(), Y.toarray(), strict=True):
        losses = [literal(base, z, k) for k in np.flatnonzero(row)]
        total += sum(losses) / (max(len(losses), 1) if normalize else 1)
    found = pick_all_labels(base, normalize)(logits, Targets.of(Y))
    assert float(found) == pytest.approx(total / n, rel=1e-9, abs=1e-9)


def test_normalized_cross_entropy_is_that_of_pytorch_with_shares_as_targets():
    logits, Y = batch(20, 5, 0)
    shares = Y.toarray() / np.maximum(Y.toarray().sum(axis=1, keepdims=True), 1)
    expected = torch.nn.functional.cross_entropy(logits, torch.from_numpy(shares))
    found = pick_all_labels(normalize=True)(logits, Targets.of(Y))
    assert float(found) == pytest.approx(float(expected))


@pytest.mark.parametrize("base", BASES)
def test_losses_of_extreme_logits_have_finite_slopes(base):
    logits = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
    targets = Targets.of(csr_matrix([[1, 0], [1, 0]]))
    pick_all_labels(base)(logits, targets).backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"base": "hinge"},
        {"smoothing": 1.0},
        {"gamma": -1.0},
        {"smoothing": -0.1},
        {"gamma": float("inf")},
        {"gamma": float("nan")},
    ],
)
def test_settings_out_of_range_are_named(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        pick_all_labels(**settings)


def test_rows_must_match():
    with pytest.raises(LabelsShapeError, match="3 rows but targets 2"):
        pick_all_labels()(torch.zeros(3, 2), Targets.of(csr_matrix([[1, 0], [0, 1]])))


@pytest.mark.parametrize(("in_features", "n_labels"), [(7, 7), (6, 7), (20, 7), (4, 30)])
def test_rows_are_fixed_and_only_the_bias_learns(in_features, n_labels):
    head = EtfHead(in_features, n_labels)
    np.testing.assert_array_equal(head.weight, fixed_frame(n_labels, in_features))
    assert [name for name, _ in head.named_parameters()] == ["bias"]
    assert head.n_parameters == n_labels
    assert EtfHead(in_features, n_labels, bias=False).n_parameters == 0
    assert EtfHead(in_features, n_labels, learned=True).n_parameters == n_labels * (in_features + 1)
    assert set(head.state_dict()) == {"weight", "bias"}


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 15), st.integers(0, 1000))
def test_topk_is_a_stable_sort_in_blocks(n, n_labels, k, seed):
    random = np.random.default_rng(seed)
    head = EtfHead(3, n_labels, learned=True, bias=False)
    with torch.no_grad():  # small whole numbers: many scores are equal
        head.weight.copy_(torch.from_numpy(random.integers(-1, 2, (n_labels, 3))))
    features = torch.from_numpy(random.integers(-1, 2, (n, 3)).astype(np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("umpteen.neural.topk._LEAST_BLOCK", 2)
        patch.setattr("umpteen.neural.topk._BLOCK_SCORES", 1)
        labels, scores = head.topk(features, k)
    table = (features @ head.weight.T).detach().numpy()
    order = np.argsort(-table, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(table, order, axis=1))


def test_no_samples_have_no_answers():
    labels, scores = EtfHead(3, 4).topk(torch.zeros(0, 3), 2)
    assert labels.shape == scores.shape == (0, 2)


def test_features_of_another_width_are_refused():
    with pytest.raises(FeaturesError, match=r"\(n, 3\)"):
        EtfHead(3, 4).topk(torch.zeros(2, 5), 2)


@pytest.mark.parametrize(("in_features", "n_labels"), [(6, 6), (8, 20)])
def test_free_features_learn_their_labels_against_fixed_rows(in_features, n_labels):
    """Also with more labels than features: sets of two are found again by the ranking."""
    head = EtfHead(in_features, n_labels)
    pairs = torch.tensor([(k, (k + 1) % n_labels) for k in range(n_labels)]).sort(dim=1).values
    targets = Targets(torch.arange(0, 2 * n_labels + 1, 2), pairs.ravel())
    features = torch.zeros(n_labels, in_features, requires_grad=True)
    optimizer = torch.optim.Adam([features, *head.parameters()], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        head(features, targets).backward()
        optimizer.step()
    found = head.topk(features, 2)[0].sort(dim=1).values
    assert torch.equal(found, pairs)


def test_a_learned_head_is_the_same_for_the_same_seed():
    first, again, other = (EtfHead(5, 4, learned=True, seed=seed).weight for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_penalties_out_of_range_are_named():
    for name in ("feature_penalty", "weight_penalty"):
        with pytest.raises(ParameterError, match=f"{name}=-1"):
            EtfHead(4, 3, **{name: -1})


def test_fixed_rows_are_not_penalized():
    features, targets = torch.ones(2, 4), Targets.of_classes(torch.tensor([0, 1]))
    losses = [EtfHead(4, 3, weight_penalty=each)(features, targets) for each in (0.0, 5.0)]
    assert losses[0] == losses[1]
