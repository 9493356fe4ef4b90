"""What every head promises."""

import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch

from umpteen.collapse import EtfHead
from umpteen.multihead import CascadeHead, PowersetHead, ProductHead, SamplingHead
from umpteen.neural import FullHead

HEADS = [FullHead, EtfHead, ProductHead, CascadeHead, SamplingHead, PowersetHead]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_no_head_answers_more_labels_than_there_are(head, n):
    """A place for each of a billion labels takes all memory."""
    labels, scores = head(3, 4).topk(torch.randn(n, 3), 10**9)
    assert labels.shape == scores.shape == (n, 4)
    assert (labels.sort(1).values == torch.arange(4)).all()
