"""If these fail, a cascade loses labels on the way down, or says one of them twice."""

import itertools

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umpteen.errors import LabelsError, ParameterError
from umpteen.multihead import CascadeHead, LabelCode
from umpteen.multihead.cascade_loss import Candidates
from umpteen.neural import Targets

from .literal import best, cascade_candidates, cross_entropy, decompose


def make(code, seed=0, **options):
    torch.manual_seed(seed)
    head = CascadeHead(3, code, hidden=4, **{"loss": "bce", **options}).double()
    for level in head.steps:
        torch.nn.init.normal_(level.bias.weight)
    return head


def tables(head, row):
    """Logits of one sample: of the first head, and of all nodes of each further one."""
    logits = [head.groups(row).detach().numpy()]
    for level in head.steps:
        products = level.table.weight @ level.query(row) + level.bias.weight[:, 0]
        logits.append(products.detach().numpy())
    return logits


def log_proba(head, logits, siblings):
    """Of a head's nodes, each among its siblings."""
    if head.loss_name == "bce":
        return -np.log1p(np.exp(-logits))
    result = logits.copy()
    for first, last in siblings:
        result[first:last] -= np.log(np.exp(logits[first:last]).sum())
    return result


def brute_force(head, row):
    """Scores of all labels of one sample: sums along the way down, label by label."""
    code, logits, ways = head.code, tables(head, row), []
    for h, here in enumerate(logits):
        size = len(here) if h == 0 else code.lengths[h]
        siblings = [(i, min(i + size, len(here))) for i in range(0, len(here), size)]
        ways.append(log_proba(head, here, siblings))
    places = [int(code.places[y]) if code.order is not None else y for y in range(code.n_labels)]
    nodes = [[place // stride for stride in code.strides] for place in places]
    return [sum(way[n] for way, n in zip(ways, path, strict=True)) for path in nodes]


@st.composite
def codes(draw):
    lengths = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    code = LabelCode(draw(st.integers(1, int(np.prod(lengths)))), lengths)
    return code.shuffled(0) if draw(st.booleans()) else code


@settings(max_examples=40)
@given(codes(), st.integers(1, 12), st.sampled_from(["bce", "softmax"]))
def test_all_groups_as_candidates_is_brute_force(code, k, loss):
    head = make(code, n_candidates=1000, loss=loss)
    features = torch.randn(3, 3).double()
    labels, scores = head.topk(features, k)
    for row, found, found_scores in zip(features, labels, scores, strict=True):
        expected, expected_scores = best(
            brute_force(head, row), range(code.n_labels), min(k, code.n_labels)
        )
        assert found.tolist() == expected
        np.testing.assert_allclose(found_scores, expected_scores, atol=1e-9)


@settings(max_examples=40)
@given(codes(), st.integers(1, 4), st.integers(1, 30))
def test_answers_come_from_the_best_groups_and_only_once(code, n_candidates, k):
    head = make(code, n_candidates=n_candidates)
    features = torch.randn(4, 3).double()
    labels, scores = head.topk(features, k)
    for row, found, found_scores in zip(features, labels.tolist(), scores, strict=True):
        real = [label for label in found if label >= 0]
        assert len(set(real)) == len(real)
        assert found[len(real) :] == [-1] * (min(k, code.n_labels) - len(real))
        assert found_scores[len(real) :].eq(-torch.inf).all()
        everything = brute_force(head, row)
        np.testing.assert_allclose(found_scores[: len(real)], [everything[y] for y in real])
        groups = {int(code.encode(np.array(label))[0]) for label in real}
        best_groups = best(tables(head, row)[0], range(code.n_groups[0]), n_candidates)[0]
        assert groups <= set(best_groups)


def test_equal_scores_stand_by_label():
    head = make(LabelCode(17, [4, 5]).shuffled(0), n_candidates=4)
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    labels, _ = head.topk(torch.zeros(1, 3).double(), 20)
    assert labels[0].tolist() == [*range(17)]


def test_probabilities_of_classes_sum_to_one():
    head = make(LabelCode(17, [2, 3, 4]), n_candidates=100, loss="softmax")
    _, scores = head.topk(torch.randn(5, 3).double(), 17)
    np.testing.assert_allclose(scores.exp().sum(1).detach(), 1)


@settings(max_examples=60)
@given(
    logits=st.lists(st.floats(-200, 200), min_size=1, max_size=12),
    n_candidates=st.integers(1, 12),
    data=st.data(),
)
def test_true_groups_are_always_candidates(logits, n_candidates, data):
    """Raw outputs plus 1, as in Algorithm 3, fail at the first large output of another group."""
    n = len(logits)
    true = data.draw(st.sets(st.integers(0, n - 1)))
    truth = torch.zeros(1, n)
    truth[0, list(true)] = 1
    here = Candidates(torch.arange(n)[None], torch.tensor([logits]).sigmoid(), truth)
    found = here.best(n_candidates).nodes[0].tolist()
    kept = [node for node in found if node >= 0]
    assert true <= set(kept)
    assert len(set(kept)) == len(kept) == min(n, max(n_candidates, len(true)))


def test_algorithm_3_as_printed_loses_the_true_group():
    outputs, true_group = np.array([-4.0, 3.0, 2.0]), 0
    printed = outputs + np.eye(3)[true_group]
    assert true_group not in np.argsort(-printed)[:1]
    assert cascade_candidates(outputs, {true_group}, 1) == {true_group}


def literal_bce(head, features, label_sets):
    """The loss for two heads, sample by sample, entry by entry."""
    code, first, second = head.code, [], []
    for row, labels in zip(features, label_sets, strict=True):
        groups, nodes = tables(head, row)
        true = {decompose(label, code.lengths)[0] for label in labels}
        first += [(groups[g], g in true) for g in range(len(groups))]
        for g in cascade_candidates(groups, true, head.n_candidates):
            block = range(g * code.lengths[1], min((g + 1) * code.lengths[1], code.n_labels))
            second += [(nodes[y], y in labels) for y in block]
    return sum(np.mean([np.log1p(np.exp(-z if t else z)) for z, t in part])
               for part in (first, second))  # fmt: skip


@pytest.mark.parametrize("n_candidates", [1, 2, 5, 50])
def test_the_loss_for_several_labels_is_the_literal_one(n_candidates):
    head = make(LabelCode(18, [5, 4]), n_candidates=n_candidates)
    label_sets = [[0, 1, 17], [], [4], [3, 7, 11, 15, 16]]
    labels = torch.tensor(list(itertools.chain(*label_sets)))
    offsets = torch.tensor([0, 3, 3, 4, 9])
    features = torch.randn(4, 3).double()
    found = head(features, Targets(offsets, labels))
    assert found.item() == pytest.approx(literal_bce(head, features, label_sets))


def test_the_loss_for_one_class_is_the_literal_one():
    head = make(LabelCode(22, [2, 3, 4]), loss="softmax")
    features, classes, expected = torch.randn(3, 3).double(), [0, 13, 21], []
    for row, label in zip(features, classes, strict=True):
        a, b, c = decompose(label, [2, 3, 4])
        groups, middle, leaves = tables(head, row)
        block = leaves[(a * 3 + b) * 4 : (a * 3 + b + 1) * 4]  # of 2 labels at the end
        siblings = middle[a * 3 : a * 3 + 3]
        parts = (groups, a), (siblings, b), (block, c)
        expected.append(sum(cross_entropy(logits, digit) for logits, digit in parts))
    found = head(features, Targets.of_classes(torch.tensor(classes)))
    assert found.item() == pytest.approx(np.mean(expected))
    assert found.item() == pytest.approx(
        -np.mean([brute_force(head, row)[y] for row, y in zip(features, classes, strict=True)])
    )


@pytest.mark.parametrize("lengths", [[4, 3], [2, 3, 2], [2, 2, 2, 2]])
@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_gradients(lengths, loss):
    head = make(LabelCode(11, lengths), n_candidates=2, loss=loss)
    targets = Targets(torch.tensor([0, 1, 2]), torch.tensor([0, 10]))
    if loss == "bce":
        targets = Targets(torch.tensor([0, 4, 4]), torch.tensor([0, 3, 9, 10]))
    features = torch.randn(2, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: head(rows, targets), features)


@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_sparse_gradients_are_the_same_and_touch_only_candidates(loss):
    dense, sparse = (
        make(LabelCode(48, [10, 5]), n_candidates=10, loss=loss, sparse=kind)
        for kind in (False, True)
    )
    features = torch.randn(1, 3).double()
    for head in (dense, sparse):
        head(features, Targets.of_classes(torch.tensor([47]))).backward()
    gradient = sparse.steps[0].table.weight.grad.coalesce()
    assert len(gradient.indices()[0]) == (48 if loss == "bce" else 3)
    torch.testing.assert_close(gradient.to_dense(), dense.steps[0].table.weight.grad)


def test_parameters():
    head = CascadeHead(8, 3956, lengths=[172, 23], hidden=16)
    assert head.n_parameters == (8 + 1) * 172 + (8 + 1) * 16 + 3956 * (16 + 1)
    ragged = CascadeHead(8, 3950, lengths=[172, 23], hidden=16)  # no rows for codes without label
    assert ragged.n_parameters == (8 + 1) * 172 + (8 + 1) * 16 + 3950 * (16 + 1)


@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_it_learns(loss):
    torch.manual_seed(0)
    head = CascadeHead(50, LabelCode(50, [4, 4, 4]).shuffled(0), hidden=16, loss=loss)
    optimiser = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        head(torch.eye(50), Targets.of_classes(torch.arange(50))).backward()
        optimiser.step()
    assert head.topk(torch.eye(50), 1)[0][:, 0].tolist() == list(range(50))


def test_what_cannot_be():
    with pytest.raises(ParameterError, match="2 heads"):
        CascadeHead(3, 10, lengths=[10])
    with pytest.raises(ParameterError, match="n_candidates"):
        CascadeHead(3, 10, n_candidates=0)
    with pytest.raises(ParameterError, match="too few"):
        CascadeHead(3, 10, lengths=[3, 3])
    head, features = CascadeHead(3, 10), torch.zeros(1, 3)
    with pytest.raises(LabelsError, match=r'exactly one class.*loss="bce".*CascadeHead'):
        head(features, Targets(torch.tensor([0, 2]), torch.tensor([0, 1])))
    with pytest.raises(LabelsError, match="-1"):
        head(features, Targets.of_classes(torch.tensor([-1])))


def test_no_samples_no_answers():
    labels, scores = CascadeHead(3, 40).topk(torch.zeros(0, 3), 5)
    assert labels.shape == scores.shape == (0, 5)
