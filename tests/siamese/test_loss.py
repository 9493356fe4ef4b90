"""Module I and III's loss: a wrong slope would train towards something else."""

import math

import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given
from hypothesis import strategies as st

from umpteen.siamese.loss import PairLoss, contrastive, softmax

PARTS = [(0.9, 1.5), (0.75, 3.0)]
COSINES = st.floats(-1, 1)


@pytest.mark.parametrize(("c", "d"), PARTS)
@given(v=COSINES)
def test_each_term_is_the_papers_formula(c, d, v):
    loss, tensor = PairLoss(c, d), torch.tensor(v, dtype=torch.float64)
    chance = c * math.exp(d * (v - 1))
    assert loss.of_positives(tensor).item() == pytest.approx(-math.log(chance), abs=1e-6)
    assert loss.of_negatives(tensor).item() == pytest.approx(-math.log(1 - chance), abs=1e-6)


@pytest.mark.parametrize(("c", "d"), PARTS)
@pytest.mark.parametrize("kind", ["of_positives", "of_negatives"])
def test_slopes_are_those_of_finite_differences(c, d, kind):
    function = getattr(PairLoss(c, d), kind)
    cosines = torch.linspace(-0.95, 0.95, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (cosines,))


@pytest.mark.parametrize(("c", "d"), PARTS)
def test_a_cosine_of_one_has_a_finite_slope(c, d):
    """The negative term's slope there is d c / (1 - c); a little more than 1 is rounding."""
    cosines = torch.tensor([1.0, 1.0 + 1e-6], requires_grad=True)
    values = PairLoss(c, d).of_negatives(cosines)
    values.sum().backward()
    assert torch.isfinite(values).all()
    assert cosines.grad[0].item() == pytest.approx(d * c / (1 - c), rel=1e-4)
    assert torch.isfinite(cosines.grad).all()


def _literal(cosines, relevant, negative, loss, n_hardest):
    total = 0.0
    for row in range(len(cosines)):
        own = loss.of_positives(cosines[row][relevant[row]]).tolist()
        other = loss.of_negatives(cosines[row][negative[row]]).tolist()
        total += sum(own) + sum(sorted(other, reverse=True)[:n_hardest])
    return total / len(cosines)


@given(seed=st.integers(0, 1000), n_hardest=st.integers(1, 9))
def test_contrastive_is_its_literal_version(seed, n_hardest):
    torch.manual_seed(seed)
    cosines = 2 * torch.rand(4, 7) - 1
    relevant = torch.rand(4, 7) < 0.3
    negative = ~relevant & (torch.rand(4, 7) < 0.8)
    loss = PairLoss(0.9, 1.5)
    expected = _literal(cosines, relevant, negative, loss, n_hardest)
    assert float(contrastive(cosines, relevant, negative, loss, n_hardest)) == pytest.approx(
        float(expected), rel=1e-5
    )


def test_a_relevant_pair_is_never_pushed_away():
    """The slope of every relevant pair is down the loss as the cosine rises, of others up."""
    cosines = torch.rand(5, 5, requires_grad=True)
    relevant = torch.rand(5, 5) < 0.4
    contrastive(cosines, relevant, ~relevant, PairLoss(0.9, 1.5), 2).backward()
    assert (cosines.grad[relevant] < 0).all()
    assert (cosines.grad[~relevant] >= 0).all()


def test_softmax_is_cross_entropy_where_all_others_are_negatives():
    torch.manual_seed(0)
    cosines = torch.rand(6, 6)
    target = torch.arange(6)
    expected = sum(
        torch.nn.functional.cross_entropy(part / 0.05, target) for part in (cosines, cosines.T)
    )
    found = softmax(cosines, ~torch.eye(6, dtype=torch.bool), 0.05)
    assert float(found) == pytest.approx(float(expected) / 2, rel=1e-5)


def test_softmax_without_any_negative_is_zero_and_finite():
    cosines = torch.rand(3, 3, requires_grad=True)
    loss = softmax(cosines, torch.zeros(3, 3, dtype=torch.bool), 0.05)
    loss.backward()
    assert loss.item() == 0
    assert torch.isfinite(cosines.grad).all()
