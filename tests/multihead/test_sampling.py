"""If these fail, sampled groups train the wrong rows."""

import collections

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given
from hypothesis import strategies as st

from umpteen.errors import LabelsError, ParameterError
from umpteen.multihead import LabelCode, SamplingHead
from umpteen.multihead.sampled_groups import distinct_others
from umpteen.neural import Targets

from .literal import best, cross_entropy, fast_sampling


def make(code, seed=0, **options):
    torch.manual_seed(seed)
    head = SamplingHead(3, code, **options).double()
    torch.nn.init.normal_(head.bias.weight)
    return head


def table(head):
    """Rows with the bias behind, for features with a 1 behind."""
    return torch.cat([head.table.weight, head.bias.weight], dim=1).detach().numpy()


def with_one(features):
    return np.append(features.numpy(), np.ones((len(features), 1)), axis=1)


def test_shared_groups_are_fast_sampling():
    head = make(LabelCode(18, [5, 4]), n_random=0)
    features, classes = torch.randn(4, 3).double(), np.array([1, 17, 5, 16])
    logits, targets = fast_sampling(with_one(features), table(head), classes, 4)
    expected = np.mean([cross_entropy(*pair) for pair in zip(logits, targets, strict=True)])
    found = head(features, Targets.of_classes(torch.from_numpy(classes)))
    assert found.item() == pytest.approx(expected)


def test_the_target_as_printed_is_wrong():
    classes = np.array([1, 17, 5])
    groups, local = classes // 4, classes % 4
    positions = np.searchsorted(np.unique(groups), groups)
    _, right = fast_sampling(np.zeros((3, 2)), np.zeros((18, 2)), classes, 4)
    assert right.tolist() == [1, 9, 5]
    assert (positions * groups + local).tolist() != right.tolist()


@pytest.mark.parametrize("options", [{"n_random": 99}, {"sampling": "own", "n_random": 99}])
@pytest.mark.parametrize("shuffled", [False, True])
def test_all_groups_are_a_full_softmax(options, shuffled):
    code = LabelCode(18, [5, 4])
    head = make(code.shuffled(0) if shuffled else code, **options)
    features, classes = torch.randn(4, 3).double(), [1, 17, 5, 16]
    logits = with_one(features) @ table(head).T
    expected = np.mean([cross_entropy(*pair) for pair in zip(logits, classes, strict=True)])
    found = head(features, Targets.of_classes(torch.tensor(classes)))
    assert found.item() == pytest.approx(expected)


def test_own_groups_are_the_true_one_and_some_others():
    head = make(LabelCode(20, [5, 4]), sampling="own", n_random=2, sparse=True)
    for label in (0, 7, 19):
        head.zero_grad()
        head(torch.randn(1, 3).double(), Targets.of_classes(torch.tensor([label]))).backward()
        rows = head.table.weight.grad.coalesce().indices()[0].numpy()
        assert label in rows
        assert len(rows) == 3 * 4
        assert len(set(rows // 4)) == 3


def test_several_labels_learn_by_binary_cross_entropy_over_shared_groups():
    head = make(LabelCode(18, [5, 4]), n_random=0, loss="bce")
    features = torch.randn(3, 3).double()
    rows = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17]
    truth = np.zeros((3, 18))
    truth[0, [1, 17]] = truth[2, 9] = 1
    logits = with_one(features) @ table(head)[rows].T
    expected = np.log1p(np.exp(np.where(truth[:, rows] > 0, -logits, logits))).mean()
    found = head(features, Targets(torch.tensor([0, 2, 2, 3]), torch.tensor([1, 17, 9])))
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("options", [{}, {"sampling": "own"}])
def test_sparse_gradients_are_the_same(options):
    dense, sparse = (make(LabelCode(48, [10, 5]), sparse=kind, **options) for kind in (False, True))
    features, classes = torch.randn(3, 3).double(), Targets.of_classes(torch.tensor([3, 4, 47]))
    for head in (dense, sparse):
        torch.manual_seed(1)
        head(features, classes).backward()
    assert sparse.table.weight.grad.is_sparse
    torch.testing.assert_close(sparse.table.weight.grad.to_dense(), dense.table.weight.grad)


@pytest.mark.parametrize("options", [{"loss": "bce"}, {}, {"sampling": "own"}])
def test_gradients(options):
    head = make(LabelCode(11, [4, 3]), **options)
    features = torch.randn(2, 3).double().requires_grad_()

    def loss(rows):
        torch.manual_seed(0)
        return head(rows, Targets.of_classes(torch.tensor([0, 10])))

    assert torch.autograd.gradcheck(loss, features)


@given(st.integers(1, 30), st.integers(1, 40), st.booleans())
def test_topk_is_exact(n_labels, k, ties):
    head = make(LabelCode.descending(n_labels).shuffled(0))
    torch.nn.init.normal_(head.table.weight)
    if ties:
        head.table.weight.data.round_()
        head.bias.weight.data.round_()
    features = torch.randint(-1, 2, (3, 3)).double()
    labels, scores = head.topk(features, k)
    for row, expected in enumerate(with_one(features) @ table(head).T):
        best_labels, best_scores = best(expected, range(n_labels), min(k, n_labels))
        assert labels[row].tolist() == best_labels
        np.testing.assert_allclose(scores[row].detach(), best_scores)


def test_topk_by_blocks_is_the_same(monkeypatch):
    head = make(LabelCode.descending(1000))
    features = torch.randn(4, 3).double()
    at_once = head.topk(features, 7)
    monkeypatch.setattr("umpteen.neural.topk._BLOCK_SCORES", 4 * 33)
    monkeypatch.setattr("umpteen.neural.topk._LEAST_BLOCK", 1)
    torch.testing.assert_close(head.topk(features, 7), at_once)


@given(st.integers(1, 12), st.data())
def test_draws_are_distinct_and_not_taken(n, data):
    taken = data.draw(st.sets(st.integers(0, n - 1)))
    size = data.draw(st.integers(0, n - len(taken)))
    found = distinct_others(torch.tensor([sorted(taken)], dtype=torch.int64), n, size)[0].tolist()
    assert len(set(found)) == size
    assert not taken & set(found)
    assert all(0 <= number < n for number in found)


def test_all_choices_are_equally_likely():
    torch.manual_seed(0)
    found = distinct_others(torch.full((60_000, 1), 2), 5, 2).sort(dim=1).values
    counts = collections.Counter(map(tuple, found.tolist()))
    assert set(counts) == {(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (3, 4)}
    assert all(abs(count - 10_000) < 400 for count in counts.values())


def test_parameters_are_those_of_a_full_layer():
    assert SamplingHead(8, 1234).n_parameters == (8 + 1) * 1234
    assert SamplingHead(8, 1234, bias=False).n_parameters == 8 * 1234


def test_groups_stay_small():
    """A step with 128 classes compares 129 groups; with large ones it would not be quick."""
    assert SamplingHead(1, 1_000).code.lengths == LabelCode.descending(1_000).lengths
    assert SamplingHead(1, 300_000).code.lengths == [9375, 32]


def test_weights_do_not_depend_on_the_groups():
    """Weights of versions with larger groups load, and give the same predictions."""
    one, other = make(LabelCode(11, [4, 3])), make(LabelCode(11, [2, 6]))
    torch.nn.init.normal_(one.table.weight)
    other.load_state_dict(one.state_dict())
    features = torch.randn(4, 3).double()
    torch.testing.assert_close(other.topk(features, 5), one.topk(features, 5))
    with pytest.raises(ParameterError, match="loss"):
        make(LabelCode(11, [2, 6]), loss="bce").load_state_dict(one.state_dict())


def test_what_cannot_be():
    with pytest.raises(ParameterError, match="two lengths"):
        SamplingHead(3, 10, lengths=[5, 2, 1])
    with pytest.raises(ParameterError, match="loss"):
        SamplingHead(3, 10, sampling="own", loss="bce")
    with pytest.raises(ParameterError, match="n_random"):
        SamplingHead(3, 10, n_random=-1)
    two = Targets(torch.tensor([0, 2]), torch.tensor([0, 1]))
    for options in ({}, {"sampling": "own"}):
        with pytest.raises(LabelsError, match="exactly one class"):
            SamplingHead(3, 10, **options)(torch.zeros(1, 3), two)
    with pytest.raises(LabelsError, match="10"):
        SamplingHead(3, 10)(torch.zeros(1, 3), Targets.of_classes(torch.tensor([10])))


def test_batches_without_labels_have_a_loss():
    head = SamplingHead(3, 10, loss="bce")
    empty = Targets(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64))
    assert torch.isfinite(head(torch.zeros(1, 3), empty))
