"""Several codes for each label: answers against all labels, one by one."""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umpteen.errors import ParameterError
from umpteen.multihead import LabelCode, ProductHead
from umpteen.neural import Targets

from .literal import best, decompose


def head_with(code, n_codes, *, whole_numbers=False):
    torch.manual_seed(0)
    head = ProductHead(3, code, n_codes=n_codes)
    if whole_numbers:
        with torch.no_grad():
            head.linear.weight.copy_(torch.randint(-1, 2, head.linear.weight.shape))
            head.linear.bias.zero_()
    return head.double()


def orders(head):
    """For each code, the label at every place."""
    first = np.arange(head.n_labels) if head.code.order is None else head.code.order
    return [first, *head.label_at_more.numpy()]


def literal_scores(head, features):
    """The mean over codes of log p(label), label by label, `(n, n_labels)`."""
    lengths, outputs = head.code.lengths, head.linear(features).detach().numpy()
    result = np.zeros((len(features), head.n_labels))
    for row, values in enumerate(outputs.reshape(len(features), head.n_codes, -1)):
        for order, own in zip(orders(head), values, strict=True):
            heads = np.split(own, np.cumsum(lengths)[:-1])
            sums = np.empty(head.n_labels)
            for place, label in enumerate(order):
                digits = decompose(place, lengths)
                sums[label] = sum(h[d] for h, d in zip(heads, digits, strict=True))
            result[row] += (sums - np.log(np.exp(sums).sum())) / head.n_codes
    return result


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    k=st.integers(1, 30),
    n_codes=st.integers(2, 4),
    ties=st.booleans(),
    shuffled=st.booleans(),
    data=st.data(),
)
def test_topk_is_exact(lengths, k, n_codes, ties, shuffled, data):
    code = LabelCode(data.draw(st.integers(1, math.prod(lengths))), lengths)
    head = head_with(code.shuffled(9) if shuffled else code, n_codes, whole_numbers=ties)
    features = torch.randint(-1, 2, (4, 3)).double() if ties else torch.randn(4, 3).double()
    labels, scores = head.topk(features, k)
    for row, expected in enumerate(literal_scores(head, features)):
        n = min(k, code.n_labels)
        best_labels, best_scores = best(expected.round(9), range(code.n_labels), n)
        assert labels[row].tolist() == best_labels
        np.testing.assert_allclose(scores[row], best_scores, atol=1e-8)


@pytest.mark.parametrize("sharpness", [0.1, 3.0, 30.0])
def test_topk_is_exact_at_many_labels(sharpness):
    """Flat predictions need all labels, sharp ones only a few of each code."""
    head = head_with(LabelCode(9_990, [100, 100]), 3)
    features = sharpness * torch.randn(6, 3).double()
    labels, _ = head.topk(features, 5)
    every = torch.arange(9_990).expand(6, -1)
    for row, expected in enumerate(head.log_proba(features, every).detach().numpy()):
        assert labels[row].tolist() == best(expected, range(9_990), 5)[0]


def test_log_proba_is_the_mean_of_the_codes():
    head, features = head_with(LabelCode(23, [5, 5]), 3), torch.randn(4, 3).double()
    found = head.log_proba(features, torch.arange(23).expand(4, -1)).detach().numpy()
    np.testing.assert_allclose(found, literal_scores(head, features), atol=1e-9)


def test_the_loss_is_the_mean_of_the_codes_losses():
    head, features = head_with(LabelCode(25, [5, 5]), 3), torch.randn(25, 3).double()
    found = head(features, Targets.of_classes(torch.arange(25)), reduction="none")
    expected = -np.diag(literal_scores(head, features))  # no code is padding
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-9)


def test_codes_are_others_and_stay_with_the_weights():
    head, other = (ProductHead(3, 60, n_codes=3) for _ in range(2))
    order = [each.tolist() for each in orders(head)]
    assert len({tuple(each) for each in order}) == 3
    other._use_more(torch.stack([torch.randperm(60), torch.randperm(60)]))
    other.load_state_dict(head.state_dict())
    features = torch.randn(7, 3)
    assert torch.equal(other.topk(features, 9)[0], head.topk(features, 9)[0])
    damaged = head.state_dict() | {"label_at_more": torch.zeros(2, 60, dtype=torch.int64)}
    with pytest.raises(ParameterError, match="damaged"):
        other.load_state_dict(damaged)
    with pytest.raises(ParameterError, match="n_codes"):
        ProductHead(3, 60, n_codes=2).load_state_dict(
            head.state_dict()
            | {"linear.weight": torch.zeros(32, 3), "linear.bias": torch.zeros(32)}
        )


def test_several_codes_tell_labels_apart_that_one_confuses():
    """Samples that look like two labels: one code mixes digits of both, several do not."""
    torch.manual_seed(0)
    n, found = 64, {}
    centers = torch.randn(n, 16)
    for n_codes in (1, 4):
        torch.manual_seed(0)
        head = ProductHead(16, n, n_codes=n_codes)
        optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
        for _ in range(150):
            y = torch.randint(n, (256,))
            optimizer.zero_grad()
            head(centers[y] + 0.7 * torch.randn(256, 16), y).backward()
            optimizer.step()
        y = torch.arange(n).repeat(20)
        x = centers[y] + 0.7 * torch.randn(len(y), 16)
        found[n_codes] = (head.topk(x, 1)[0][:, 0] == y).float().mean().item()
    assert found[4] > found[1] + 0.1


@pytest.mark.parametrize(
    "options", [{"n_codes": 0}, {"n_codes": 2, "n_groups": 2}, {"n_codes": 2, "loss": "bce"}]
)
def test_options_that_cannot_be(options):
    with pytest.raises(ParameterError):
        ProductHead(3, 10, **options)
