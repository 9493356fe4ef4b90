"""Probabilities mean the same for all heads."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch

from umpteen.errors import (
    LabelsError,
)

from .every_head import (
    N_LABELS,
    ONE_CLASS,
    features,
)

pytestmark = pytest.mark.usefixtures("seed")


def literal_log_proba(name, head, x):
    """Of all labels, by the definition of each head."""
    if name.startswith("product"):
        logits = head.linear(x).double()
        logits = torch.nn.functional.logsigmoid(logits) if name == "product-bce" else logits
        total = torch.zeros(len(x), N_LABELS, dtype=torch.float64)
        parts = head._by_head(logits, head.n_groups * head.n_codes)  # (n, groups, length) each
        for code, places in enumerate(head._places_of(torch.arange(N_LABELS))):
            digits = head.code.digits(places)
            groups = slice(None) if head.n_groups > 1 else slice(code, code + 1)
            sums = sum(part[:, groups][:, :, digits[:, h]] for h, part in enumerate(parts))
            total += sums.logsumexp(1).log_softmax(1) / head.n_codes
        return total
    if name.startswith("cascade"):
        children = head.steps[0]
        table = children.query(x) @ children.table.weight.T + children.bias.weight[:, 0]
        nodes = torch.arange(N_LABELS)
        groups = nodes // children.length
        if head.loss_name == "bce":
            first = torch.nn.functional.logsigmoid(head.groups(x))
            return first[:, groups] + torch.nn.functional.logsigmoid(table)
        within = torch.cat([each.log_softmax(1) for each in table.split(children.length, 1)], 1)
        return head.groups(x).log_softmax(1)[:, groups] + within
    if name == "powerset":
        inside = torch.zeros(len(x), N_LABELS, dtype=torch.float64)
        parts = head.linear(x).double().split(head.code.lengths, dim=1)
        for first, part in zip(range(0, N_LABELS, head.code.labels_per_head), parts, strict=True):
            for subset, share in enumerate(part.softmax(1).T):
                for bit in range(head.code.labels_per_head):
                    if subset >> bit & 1:
                        inside[:, first + bit] += share
        return inside.log()
    if name.startswith("adversarial"):
        scores = x @ head.table.weight.T + head.bias.weight[:, 0]
        if name == "adversarial-paper":
            labels, found = head.topk(x, N_LABELS)
            scores = torch.zeros_like(scores).scatter(1, labels, found)
        return scores.log_softmax(1)
    if name.startswith("sampling"):
        scores = x @ head.table.weight.T + head.bias.weight[:, 0]
    else:
        scores = head.logits(x)
    independent = head.loss_name == "bce"
    return torch.nn.functional.logsigmoid(scores) if independent else scores.log_softmax(1)


@pytest.mark.parametrize("block", [2**22, 5 * 8])
def test_scores_of_all_heads_become_probabilities(name, head, block, monkeypatch):
    """If this fails, a score says one thing with one head and another with the next."""
    monkeypatch.setattr("umpteen.neural.topk._BLOCK_SCORES", block)
    monkeypatch.setattr("umpteen.neural.topk._LEAST_BLOCK", 5)
    for each in head.parameters():
        each.data += 0.3 * torch.randn_like(each)
    x = features(8)
    every = torch.arange(N_LABELS).expand(8, -1)
    with torch.no_grad():
        expected = literal_log_proba(name, head, x)
    found = head.log_proba(x, every)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    total = found.double().exp().sum(1)
    if name == "product-codes":
        assert (total < 1).all()
    elif name in ONE_CLASS or name in ("full-pal", "etf"):
        np.testing.assert_allclose(total, 1, rtol=1e-5)
    some = every[:, [3, 0, 22, 3]]
    np.testing.assert_allclose(head.log_proba(x, some), found[:, [3, 0, 22, 3]], rtol=1e-6)
    for k in (1, 7, N_LABELS):
        best, scores = head.topk_log_proba(x, k)
        assert torch.equal(best, head.topk(x, k)[0])
        own = found.gather(1, best.clamp(min=0))
        np.testing.assert_allclose(scores[best >= 0], own[best >= 0], rtol=1e-5, atol=1e-6)
        assert (scores[best < 0] == -torch.inf).all()


def test_a_negative_label_is_refused_with_advice_about_padding(head):
    with pytest.raises(LabelsError, match=r"-1 was given: .* pass ignore_index="):
        head(features(2), torch.tensor([3, -1]))


def test_probabilities_of_labels_that_do_not_exist_are_refused(head):
    with pytest.raises(LabelsError, match="labels run from 0 to 22"):
        head.log_proba(features(2), torch.tensor([[1, 23], [0, 2]]))
