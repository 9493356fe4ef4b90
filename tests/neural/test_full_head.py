"""FullHead against brute force and the literal formulas of its losses."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsError, ParameterError
from umpteen.neural import FullHead, Targets
from umpteen.neural import topk as topk_module
from umpteen.neural.topk import best_by_blocks


def brute_force(scores, k):
    labels = np.full((len(scores), k), -1)
    values = np.full((len(scores), k), -np.inf)
    for row, line in enumerate(scores.tolist()):
        order = sorted(range(len(line)), key=lambda label: (-line[label], label))[:k]
        labels[row, : len(order)] = order
        values[row, : len(order)] = [line[label] for label in order]
    return labels, values


@given(st.data())
def test_topk_by_blocks_is_brute_force(data):
    """Ties inside a block and across blocks, blocks shorter than k, more asked than there is."""
    n, n_labels = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 23))
    k, block = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 25))
    values = st.sampled_from([-1.0, 0.0, 0.5, 0.5000001, 2.0])
    rows = data.draw(
        st.lists(st.lists(values, min_size=n_labels, max_size=n_labels), min_size=n, max_size=n)
    )
    scores = torch.tensor(rows, dtype=torch.float32).view(n, n_labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topk_module, "_LEAST_BLOCK", block)
        patch.setattr(topk_module, "_BLOCK_SCORES", 1)
        labels, found = best_by_blocks(lambda a, b: scores[:, a:b], n, n_labels, k)
    expected_labels, expected = brute_force(scores, k)
    np.testing.assert_array_equal(labels.numpy(), expected_labels)
    np.testing.assert_array_equal(found.numpy(), expected.astype(np.float32))


def test_the_head_asks_for_every_label_once(monkeypatch):
    monkeypatch.setattr(topk_module, "_LEAST_BLOCK", 7)
    monkeypatch.setattr(topk_module, "_BLOCK_SCORES", 1)
    head, features = FullHead(5, 40), torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    labels, scores = head.topk(features, 40)
    logits = torch.stack(
        [(features * head.weight[label]).sum(1) + head.bias[label] for label in range(40)], dim=1
    )
    assert (labels.sort(1).values == torch.arange(40)).all()
    torch.testing.assert_close(scores, logits.gather(1, labels))


@pytest.fixture
def batch():
    torch.manual_seed(0)
    indicator = csr_matrix([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
    return torch.randn(3, 2), indicator


def logits_of(head, features):
    return (features @ head.weight.T + head.bias).detach().double().numpy()


def test_bce_is_the_literal_sum(batch):
    features, Y = batch
    head = FullHead(2, 4, loss="bce")
    p = 1 / (1 + np.exp(-logits_of(head, features)))
    truth = Y.toarray()
    expected = -(truth * np.log(p) + (1 - truth) * np.log(1 - p)).sum() / 3
    assert head(features, Targets.of(Y)).item() == pytest.approx(expected, rel=1e-5)


def test_pick_all_labels_is_the_literal_sum(batch):
    features, Y = batch
    head = FullHead(2, 4, loss="pick_all_labels")
    logits = logits_of(head, features)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -(Y.toarray() * log_p).sum() / 3
    assert head(features, Targets.of(Y)).item() == pytest.approx(expected, rel=1e-5)


def test_softmax_is_the_literal_mean(batch):
    features, _ = batch
    head, classes = FullHead(2, 4), torch.tensor([2, 0, 3])
    logits = logits_of(head, features)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -log_p[np.arange(3), classes].mean()
    found = head(features, Targets.of_classes(classes)).item()
    assert found == pytest.approx(expected, rel=1e-5)
    alike = FullHead(2, 4, loss="pick_all_labels")
    alike.load_state_dict(head.state_dict())
    assert alike(features, Targets.of_classes(classes)).item() == pytest.approx(found)


def test_before_training_a_bce_label_is_one_among_all():
    """With 0 the first epochs would only teach a million biases that labels are rare."""
    assert torch.sigmoid(FullHead(3, 1000, loss="bce").bias).sum().item() == pytest.approx(1, 0.01)


def test_parameter_count():
    assert FullHead(512, 1000).n_parameters == 512 * 1000 + 1000


def test_bad_input_is_refused(batch):
    features, Y = batch
    with pytest.raises(ParameterError, match="hinge"):
        FullHead(2, 4, loss="hinge")
    with pytest.raises(LabelsError, match="exactly one class"):
        FullHead(2, 4)(features, Targets.of(Y))
    with pytest.raises(LabelsError, match="from 0 to 2 here, but 3"):
        FullHead(2, 3, loss="bce")(features, Targets.of(Y))
    with pytest.raises(LabelsError, match="same batch"):
        FullHead(2, 4, loss="bce")(features[:2], Targets.of(Y))
