"""What every head promises to a training loop that is not ours: forms of labels."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
from scipy.sparse import coo_matrix, csr_matrix

from umpteen.errors import (
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    ParameterError,
)
from umpteen.neural import Targets

from .every_head import (
    ALL,
    DIM,
    N_LABELS,
    ONE_CLASS,
    SEVERAL,
    classes,
    features,
    heads,
    loss_of,
)

pytestmark = pytest.mark.usefixtures("seed")


def test_ten_lines_of_a_loop(name):
    """Without these, nobody can put a head where nn.Linear and CrossEntropyLoss were."""
    encoder, head = torch.nn.Linear(4, DIM), ALL[name]()
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=0.05)
    inputs, labels = torch.randn(40, 4), torch.arange(40) % 5
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = head(encoder(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    best, scores = head.topk(encoder(inputs), 3)
    assert best.shape == scores.shape == (40, 3)


@pytest.mark.parametrize("several", SEVERAL)
def test_all_forms_of_several_labels_are_the_same(several):
    head, x = SEVERAL[several](), features(4)
    sets = [[3, 7], [], [22], [0, 1, 20]]
    indicator = torch.zeros(4, N_LABELS)
    padded = torch.full((4, 5), -100)
    for row, labels in enumerate(sets):
        indicator[row, labels] = 1
        padded[row, : len(labels)] = torch.tensor(labels).flip(0)
    padded[0, 2] = 3  # twice
    zeros = coo_matrix(([0.0, *([1.0] * 6)], ([1, 0, 0, 2, 3, 3, 3], [5, 3, 7, 22, 0, 1, 20])),
                       (4, N_LABELS))  # fmt: skip
    scipy_rows = csr_matrix(indicator.numpy())
    expected = loss_of(head, x, Targets.of(scipy_rows))
    forms = [
        padded, padded.int(), indicator, indicator.bool(), indicator.double(),
        indicator.to_sparse(), indicator.to_sparse_csr(), scipy_rows, zeros,
    ]  # fmt: skip
    for form in forms:
        assert torch.equal(loss_of(head, x, form), expected)
    assert torch.equal(loss_of(head, x, padded.masked_fill(padded == -100, -1), ignore_index=-1),
                       expected)  # fmt: skip


def test_one_class_in_any_form(head):
    x, y = features(5), classes(5)
    expected = loss_of(head, x, y)
    for form in (y.int(), y[:, None], y.numpy(), y.tolist(), torch.eye(N_LABELS)[y]):
        torch.testing.assert_close(loss_of(head, x, form), expected)


def test_any_leading_shape(head):
    x, y = features(2, 3, 4), classes(2, 3, 4)
    flat = loss_of(head, x.view(-1, DIM), y.flatten())
    torch.testing.assert_close(loss_of(head, x, y), flat)
    assert loss_of(head, x, y, reduction="none").shape == (2, 3, 4)
    best, scores = head.topk(x, 2)
    assert best.shape == scores.shape == (2, 3, 4, 2)
    assert torch.equal(best.view(-1, 2), head.topk(x.view(-1, DIM), 2)[0])


def test_reductions_are_of_one_loss(head):
    x, y = features(6), classes(6)
    each = loss_of(head, x, y, reduction="none")
    torch.testing.assert_close(loss_of(head, x, y), each.mean())
    torch.testing.assert_close(loss_of(head, x, y, reduction="sum"), each.sum())


def test_ignored_samples_do_not_count(head):
    """Padding tokens must not train anything."""
    x, y = features(6), classes(6)
    y[[1, 4]] = -100
    kept = y != -100
    each = loss_of(head, x, y, reduction="none")
    assert (each[~kept] == 0).all()
    torch.testing.assert_close(loss_of(head, x, y), each[kept].mean())
    x.requires_grad_()
    loss_of(head, x, y).backward()
    assert (x.grad[~kept] == 0).all()
    assert (x.grad[kept] != 0).any()


@pytest.mark.parametrize("name", ["full", "product", "cascade-softmax", "sampling-own"])
def test_what_is_kept_is_what_it_would_be_alone(name):
    x, y = features(6), classes(6)
    y[[1, 4]] = 7  # any number may mean "ignore"
    kept = y != 7
    options = {"n_random": 99} if name == "sampling-own" else {}
    head = ALL[name](**options)
    alone = loss_of(head, x[kept], y[kept])
    torch.testing.assert_close(loss_of(head, x, y, ignore_index=7), alone)


def test_nothing_but_ignored_samples_has_the_loss_0(head):
    loss = head(features(3), torch.full((3,), -100))
    loss.backward()
    assert loss == 0


@pytest.mark.parametrize("name", ["full", "sampling", "sampling-own"])
def test_smoothing_is_that_of_cross_entropy(name):
    head = ALL[name](**({} if name == "full" else {"n_random": 99}))  # all groups
    x, y = features(5), classes(5)
    weight = head.weight if name == "full" else head.table.weight
    expected = torch.nn.functional.cross_entropy(x @ weight.T, y, label_smoothing=0.2)
    torch.testing.assert_close(head(x, y, label_smoothing=0.2), expected)


def test_smoothing_of_digits_and_groups_is_that_of_each_head():
    x, y = features(5), classes(5)
    product = heads.Product(DIM, N_LABELS)
    digits = product.code.encode(y)
    outputs = product.linear(x).split(product.code.lengths, dim=1)
    expected = sum(
        torch.nn.functional.cross_entropy(each, digits[:, h], label_smoothing=0.2)
        for h, each in enumerate(outputs)
    )
    torch.testing.assert_close(product(x, y, label_smoothing=0.2), expected)
    cascade = heads.Cascade(DIM, N_LABELS, lengths=[6, 4], loss="softmax")  # the last has 3
    level, losses = cascade.steps[0], []
    for row, label in zip(x, y.tolist(), strict=True):
        group = label // 4
        rows = level.table.weight[4 * group : 4 * group + 4]
        for logits, own in ((cascade.groups(row), group), (rows @ level.query(row), label % 4)):
            losses.append(torch.nn.functional.cross_entropy(
                logits[None], torch.tensor([own]), label_smoothing=0.2))  # fmt: skip
    torch.testing.assert_close(cascade(x, y, label_smoothing=0.2), sum(losses) / 5)


def test_smoothing_is_refused_where_it_means_nothing(name, head):
    if head.loss_name != "softmax" or name == "product-groups":
        with pytest.raises(ParameterError, match="label_smoothing"):
            head(features(2), classes(2), label_smoothing=0.1)
    with pytest.raises(ParameterError, match="label_smoothing=1"):
        head(features(2), classes(2), label_smoothing=1.0)


def test_labels_that_do_not_fit_are_refused(head):
    x = features(3)
    with pytest.raises(LabelsError, match="looks like an indicator"):
        head(x, torch.eye(N_LABELS)[:3].long())
    with pytest.raises(LabelsError, match="-1 was given"):
        head(x, torch.tensor([0, -1, 2]))
    with pytest.raises(LabelsError, match="23 was given"):
        head(x, torch.tensor([0, 1, N_LABELS]))
    with pytest.raises(LabelsShapeError, match="leading shape"):
        head(x, classes(2))
    with pytest.raises(LabelsShapeError, match="22 labels"):
        head(x, torch.zeros(3, N_LABELS - 1))
    with pytest.raises(LabelsShapeError, match="24 labels"):
        head(x, csr_matrix((3, N_LABELS + 1)))
    with pytest.raises(LabelsError, match="same batch"):
        head(x, csr_matrix((2, N_LABELS)))
    with pytest.raises(FeaturesError, match=r"\(n, 6\)"):
        head(torch.zeros(3, DIM + 1), classes(3))
    with pytest.raises(ParameterError, match="reduction='max'"):
        head(x, classes(3), reduction="max")


@pytest.mark.parametrize("one_class", ONE_CLASS)
def test_several_labels_are_refused_by_heads_of_one_class(one_class):
    with pytest.raises(LabelsError, match="exactly one class"):
        ONE_CLASS[one_class]()(features(1), torch.tensor([[2, 3]]))
