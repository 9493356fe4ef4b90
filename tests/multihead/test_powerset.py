"""If these fail, sets of labels come back as other sets."""

import itertools

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import umpteen
from umpteen.errors import LabelsError, ParameterError
from umpteen.metrics import subset_accuracy
from umpteen.multihead import PowersetCode, PowersetHead
from umpteen.neural import MLP, NeuralClassifier, Targets, blueprint


@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 5))
def test_sets_come_back(n_labels, labels_per_head, seed):
    code = PowersetCode(n_labels, labels_per_head)
    sets = np.random.default_rng(seed).random((7, n_labels)) < 0.4
    digits = code.encode(csr_matrix(sets))
    assert digits.shape == (7, code.n_heads)
    assert (digits < code.lengths).all()
    np.testing.assert_array_equal(code.members(torch.from_numpy(digits)).numpy(), sets)


def all_sets(head, row):
    """Each set of labels and its log-probability, one by one."""
    heads = head.linear(row).detach().split(head.code.lengths)
    log_proba = [logits.log_softmax(0).numpy() for logits in heads]
    found = []
    for members in itertools.product([0, 1], repeat=head.n_labels):
        digits = head.code.encode(csr_matrix([members]))[0]
        score = sum(p[d] for p, d in zip(log_proba, digits, strict=True))
        found.append((members, score))
    return found


@settings(max_examples=20)
@given(st.integers(1, 7), st.integers(1, 4), st.integers(1, 40))
def test_best_sets_are_those_of_brute_force(n_labels, labels_per_head, k):
    torch.manual_seed(0)
    head = PowersetHead(3, n_labels, labels_per_head=labels_per_head).double()
    features = torch.randn(2, 3).double()
    sets, scores = head.best_sets(features, k)
    for row in range(2):
        expected = sorted(all_sets(head, features[row]), key=lambda pair: -pair[1])[:k]
        assert [tuple(one.int().tolist()) for one in sets[row]] == [pair[0] for pair in expected]
        np.testing.assert_allclose(scores[row], [pair[1] for pair in expected])


@given(st.integers(1, 30), st.integers(1, 6))
def test_the_best_set_is_the_first_of_the_best_sets(n_labels, labels_per_head):
    torch.manual_seed(n_labels)
    head = PowersetHead(4, n_labels, labels_per_head=labels_per_head)
    features = torch.randn(5, 4)
    assert torch.equal(head.best_set(features), head.best_sets(features, 1)[0][:, 0])


def test_labels_rank_by_their_probability_to_be_in_the_set():
    torch.manual_seed(0)
    head = PowersetHead(3, 7, labels_per_head=3).double()
    features = torch.randn(1, 3).double()
    expected = np.zeros(7)
    for members, score in all_sets(head, features[0]):
        expected += np.exp(score) * np.array(members)
    labels, scores = head.topk(features, 9)
    assert labels[0].tolist() == np.argsort(-expected).tolist()
    np.testing.assert_allclose(scores[0].exp(), np.sort(expected)[::-1])


def test_the_loss_is_the_likelihood_of_the_set():
    torch.manual_seed(0)
    head = PowersetHead(3, 5, labels_per_head=2).double()
    features = torch.randn(2, 3).double()
    Y = csr_matrix([[0, 1, 1, 0, 1], [0, 0, 0, 0, 0]])
    expected = [dict(all_sets(head, row))[tuple(y)] for row, y in zip(features, Y.toarray())]  # noqa: B905
    assert head(features, Targets.of(Y)).item() == pytest.approx(-np.mean(expected))


def test_the_papers_heads():
    assert PowersetHead(8, 20, labels_per_head=4).code.lengths == [16] * 5
    coco = PowersetHead(8, 80, labels_per_head=5)
    assert coco.code.lengths == [32] * 16
    sets, _ = coco.best_sets(torch.randn(3, 8), 4)  # of 2 ** 80
    assert sets.shape == (3, 4, 80)
    assert len({tuple(one.tolist()) for one in sets[0]}) == 4


def test_it_learns_that_labels_exclude_each_other():
    """Each of two labels is as likely as not, but never both: thresholds cannot say that."""
    torch.manual_seed(0)
    head = PowersetHead(1, 2, labels_per_head=2)
    targets = Targets.of(csr_matrix([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]]))
    optimiser = torch.optim.SGD(head.parameters(), lr=1.0)
    for _ in range(200):
        optimiser.zero_grad()
        head(torch.ones(5, 1), targets).backward()
        optimiser.step()
    sets, scores = head.best_sets(torch.ones(1, 1), 2)
    assert sets[0].tolist() == [[True, False], [False, True]]
    np.testing.assert_allclose(scores[0].exp(), [0.6, 0.4], atol=0.02)


def test_a_network_predicts_the_likeliest_set(tmp_path):
    random = np.random.default_rng(0)
    labels = (random.random((400, 7)) < 0.4) & (np.arange(7) != 3)  # label 3 is never seen
    Y = csr_matrix(labels[labels.any(axis=1)], dtype=np.int8)
    X = (Y.toarray() + 0.1 * random.normal(size=Y.shape)).astype(np.float32)
    model = NeuralClassifier(
        blueprint(MLP, dim=32), blueprint(PowersetHead, labels_per_head=2), epochs=30,
        random_state=0, learning_rate=1e-2, verbose=False,
    ).fit(X, Y)  # fmt: skip
    sets = model.predict(X)
    assert sets.shape == Y.shape
    assert subset_accuracy(Y, sets) > 0.9
    assert sets[:, 3].nnz == 0
    with torch.inference_mode():
        head = model._ready_network(torch.device("cpu")).head
        members = head.best_set(torch.from_numpy(model.features(X))).numpy()
    np.testing.assert_array_equal(sets.toarray()[:, model.seen_labels_], members)
    model.save(tmp_path / "m")
    assert (umpteen.load(tmp_path / "m").predict(X) != sets).nnz == 0


def test_what_cannot_be():
    with pytest.raises(ParameterError, match=r"2\*\*17"):
        PowersetHead(3, 40, labels_per_head=17)
    with pytest.raises(ParameterError, match="n_labels"):
        PowersetHead(3, 0)
    with pytest.raises(LabelsError, match="5"):
        PowersetHead(3, 5)(torch.zeros(1, 3), Targets.of_classes(torch.tensor([5])))
