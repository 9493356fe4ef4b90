"""If these fail, a product of heads trains on the wrong thing or answers with the wrong label."""

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umpteen.errors import FeaturesError, LabelsError, ParameterError
from umpteen.multihead import LabelCode, ProductHead
from umpteen.multihead.grid import best_rows
from umpteen.multihead.merging import best_codes, log_total
from umpteen.neural import Targets

from .literal import best, cross_entropy, decompose, kronecker, product_bce


def all_scores(heads, n_codes):
    """Sums of head scores for every code, code by code."""
    lengths = [len(scores) for scores in heads]
    codes = itertools.islice(itertools.product(*map(range, lengths)), n_codes)
    return [sum(scores[d] for scores, d in zip(heads, code, strict=True)) for code in codes]


@st.composite
def head_scores(draw):
    """Whole numbers, so that ties are many and sums exact."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    spread = draw(st.integers(0, 4))
    heads = [draw(st.lists(st.integers(-spread, spread), min_size=n, max_size=n)) for n in lengths]
    return heads, draw(st.integers(1, math.prod(lengths)))


@given(st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=5), min_size=1, max_size=4))
def test_theorem_1_holds_after_a_positive_map(heads):
    positive = [np.exp(np.array(outputs)) for outputs in heads]
    per_head = [int(np.argmax(outputs)) for outputs in positive]
    product = kronecker(positive)
    code = LabelCode(len(product), [len(outputs) for outputs in heads])
    joint = product[code.decode(np.array(per_head))]
    assert joint == pytest.approx(product.max())


def test_theorem_1_fails_without_one():
    heads = [np.array([-2.0, 1.0]), np.array([-3.0, 1.0])]
    assert decompose(int(np.argmax(kronecker(heads))), [2, 2]) == [0, 0]
    assert [int(np.argmax(outputs)) for outputs in heads] == [1, 1]


@given(head_scores(), st.integers(1, 40))
def test_best_codes_are_those_of_brute_force(case, k):
    heads, n_codes = case
    tensors = [torch.tensor([scores], dtype=torch.float64) for scores in heads]
    digits, scores = best_codes(tensors, k, n_codes)
    labels, expected = best(all_scores(heads, n_codes), range(n_codes), min(k, n_codes))
    assert digits[0].tolist() == [decompose(y, [len(h) for h in heads]) for y in labels]
    assert scores[0].tolist() == expected


@given(head_scores())
def test_the_total_is_that_of_all_codes_that_exist(case):
    heads, n_codes = case
    tensors = [torch.tensor([scores], dtype=torch.float64) for scores in heads]
    expected = np.log(np.exp(all_scores(heads, n_codes)).sum())
    assert float(log_total(tensors, n_codes)) == pytest.approx(expected)


def head_with(code, seed=0, *, whole_numbers=False, **options):
    torch.manual_seed(seed)
    head = ProductHead(3, code, **options)
    if whole_numbers:
        with torch.no_grad():
            head.linear.weight.copy_(torch.randint(-1, 2, head.linear.weight.shape))
            head.linear.bias.zero_()
    return head.double()


def brute_force(head, features):
    """Log-probabilities of all labels, `(n, n_labels)`, by Eq. 16 in full."""
    outputs = head.linear(features).detach().numpy()
    outputs = -np.log1p(np.exp(-outputs)) if head.loss_name == "bce" else outputs
    digits, borders = head.code.encode(np.arange(head.n_labels)), np.cumsum(head.code.lengths)[:-1]
    result = []
    for row in outputs.reshape(len(features), head.n_groups, -1):
        groups = [np.split(group, borders) for group in row]
        sums = [
            [sum(o[d] for o, d in zip(g, code, strict=True)) for code in digits] for g in groups
        ]
        scores = np.log(np.exp(sums).sum(0))
        result.append(scores - np.log(np.exp(scores).sum()))
    return np.array(result)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    k=st.integers(1, 30),
    n_groups=st.integers(1, 3),
    ties=st.booleans(),
    shuffled=st.booleans(),
    data=st.data(),
)
def test_topk_is_exact(lengths, k, n_groups, ties, shuffled, data):
    code = LabelCode(data.draw(st.integers(1, math.prod(lengths))), lengths)
    code = code.shuffled(1) if shuffled else code
    head = head_with(code, whole_numbers=ties, n_groups=n_groups)
    features = torch.randint(-1, 2, (4, 3)).double() if ties else torch.randn(4, 3).double()
    labels, scores = head.topk(features, k)
    for row, expected in enumerate(brute_force(head, features)):
        best_labels, best_scores = best(
            expected.round(9), range(code.n_labels), min(k, code.n_labels)
        )
        assert labels[row].tolist() == best_labels
        np.testing.assert_allclose(scores[row], best_scores, atol=1e-8)


@pytest.mark.parametrize("loss", ["softmax", "joint", "bce"])
def test_topk_is_exact_at_many_labels(loss):
    head = head_with(LabelCode(997, [10, 10, 10]), loss=loss)
    features = torch.randn(5, 3).double()
    labels, _ = head.topk(features, 50)
    for row, expected in enumerate(brute_force(head, features)):
        assert labels[row].tolist() == best(expected, range(997), 50)[0]


@pytest.mark.parametrize("n_groups", [2, 5])
def test_topk_of_groups_is_exact_at_many_labels(n_groups):
    head = head_with(LabelCode(9_990, [100, 100]).shuffled(0), n_groups=n_groups)
    features = 5 * torch.randn(8, 3).double()
    labels, _ = head.topk(features, 5)
    for row, expected in enumerate(brute_force(head, features)):
        assert labels[row].tolist() == best(expected, range(9_990), 5)[0]


@pytest.mark.parametrize("n_groups", [1, 3])
def test_log_probabilities_sum_to_one_over_labels_that_exist(n_groups):
    head = head_with(LabelCode(23, [5, 5]).shuffled(0), n_groups=n_groups)
    features = torch.randn(4, 3).double()
    labels = torch.arange(23).expand(4, -1)
    found = head.log_proba(features, labels).detach().numpy()
    np.testing.assert_allclose(np.exp(found).sum(1), 1)
    np.testing.assert_allclose(found, brute_force(head, features), atol=1e-9)


def loss_of(head, features, classes):
    return head(features, Targets.of_classes(torch.tensor(classes))).item()


def test_losses_are_the_literal_ones():
    code, features, classes = LabelCode(12, [3, 4]), torch.randn(3, 3).double(), [0, 7, 11]
    locals_ = [decompose(y, [3, 4]) for y in classes]
    expected = {"softmax": [], "joint": [], "bce": []}
    for row, (a, b) in zip(head_with(code).linear(features).detach().numpy(), locals_, strict=True):
        expected["softmax"].append(cross_entropy(row[:3], a) + cross_entropy(row[3:], b))
        expected["joint"].append(cross_entropy(row, a) + cross_entropy(row, 3 + b))
        expected["bce"].append(product_bce(row, [a, b], [3, 4]))
    for loss, values in expected.items():
        found = loss_of(head_with(code, loss=loss), features, classes)
        assert found == pytest.approx(np.mean(values)), loss


@pytest.mark.parametrize("n_groups", [1, 2, 4])
def test_the_loss_is_the_likelihood_where_all_codes_exist(n_groups):
    head, features = head_with(LabelCode(12, [3, 4]), n_groups=n_groups), torch.randn(3, 3).double()
    log_proba = brute_force(head, features)
    expected = -np.mean([log_proba[i, y] for i, y in enumerate([0, 7, 11])])
    assert loss_of(head, features, [0, 7, 11]) == pytest.approx(expected)


@pytest.mark.parametrize("options", [{}, {"n_groups": 3}, {"loss": "joint"}, {"loss": "bce"}])
def test_gradients(options):
    head = head_with(LabelCode(11, [3, 4]), **options)
    targets = Targets.of_classes(torch.tensor([0, 10]))
    features = torch.randn(2, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: head(rows, targets), features)


def test_parameters_are_features_times_the_sum_of_lengths():
    assert ProductHead(8, 1_728_000, n_heads=3).n_parameters == (8 + 1) * 360
    assert ProductHead(8, 100, lengths=[20, 5], n_groups=4).n_parameters == (8 + 1) * 25 * 4


def test_it_learns_more_labels_than_outputs():
    torch.manual_seed(0)
    features = torch.eye(36)
    head = ProductHead(36, LabelCode(36, [6, 6]).shuffled(0))
    optimiser = torch.optim.SGD(head.parameters(), lr=10.0)
    for _ in range(200):
        optimiser.zero_grad()
        head(features, Targets.of_classes(torch.arange(36))).backward()
        optimiser.step()
    assert head.topk(features, 1)[0][:, 0].tolist() == list(range(36))


def test_what_cannot_be():
    head, features = ProductHead(3, 10), torch.zeros(2, 3)
    two_labels = Targets(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]))
    with pytest.raises(LabelsError, match=r"exactly one class .*CascadeHead"):
        head(features, two_labels)
    with pytest.raises(LabelsError, match="10"):
        head(features, Targets.of_classes(torch.tensor([0, 10])))
    with pytest.raises(LabelsError, match="labels have 3"):
        head(features, Targets.of_classes(torch.tensor([0, 1, 2])))
    with pytest.raises(FeaturesError, match=r"\(n, 3\)"):
        head.topk(torch.zeros(2, 4), 1)
    with pytest.raises(ParameterError, match="k=0"):
        head.topk(features, 0)
    with pytest.raises(LabelsError, match="-1"):
        head.log_proba(features, torch.tensor([[0], [-1]]))


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "hinge"},
        {"loss": "bce", "n_groups": 2},
        {"n_groups": 0},
        {"lengths": [3, 3]},
        {"code": LabelCode(9, [3, 3])},
        {"code": LabelCode(10, [5, 2]), "lengths": [5, 2]},
    ],
)
def test_options_that_cannot_be(options):
    with pytest.raises(ParameterError):
        ProductHead(3, 10, **options)


def test_no_samples_no_answers():
    labels, scores = ProductHead(3, 40).topk(torch.zeros(0, 3), 5)
    assert labels.shape == scores.shape == (0, 5)


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    m=st.integers(1, 12),
    n_groups=st.integers(1, 4),
    spread=st.sampled_from([0.0, 1.0, 300.0]),
    data=st.data(),
)
def test_the_best_rows_of_a_grid_hold_the_best_codes(lengths, m, n_groups, spread, data):
    n_codes = data.draw(st.integers(1, math.prod(lengths)))
    heads = [spread * torch.randn(2, n_groups, length, dtype=torch.float64) for length in lengths]
    grid = best_rows(heads, n_codes, m)
    for sample in range(2):
        groups = [[head[sample, g].tolist() for head in heads] for g in range(n_groups)]
        sums = torch.tensor([all_scores(group, n_codes) for group in groups], dtype=torch.float64)
        scores = sums.logsumexp(0)
        inside = [place for place in grid.places()[sample].tolist() if place < n_codes]
        outside = sorted(set(range(n_codes)) - set(inside))
        assert len(inside) >= min(m, n_codes)
        if grid.bound is None:
            assert not outside
        else:
            bound = float(grid.bound[sample])
            assert all(float(scores[place]) <= bound + 1e-9 * (1 + abs(bound)) for place in outside)


def test_flat_predictions_of_several_groups_are_exact():
    """A bound by the groups' best cannot tell labels apart here."""
    code = LabelCode(2_491, [50, 50]).shuffled(3)
    head = head_with(code, n_groups=4)
    with torch.no_grad():
        head.linear.weight.mul_(1e-3)
        head.linear.bias.mul_(1e-3)
    features = torch.randn(5, 3).double()
    labels, scores = head.topk(features, 7)
    for row, expected in enumerate(brute_force(head, features)):
        assert labels[row].tolist() == np.argsort(-expected, kind="stable")[:7].tolist()
        np.testing.assert_allclose(scores[row], np.sort(expected)[::-1][:7], atol=1e-12)
