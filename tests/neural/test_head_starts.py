"""Where training begins: labels are as likely as they are frequent."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch

from umpteen.errors import (
    LabelsError,
    LabelsShapeError,
)

from .every_head import (
    ALL,
    DIM,
    N_LABELS,
    ONE_CLASS,
    heads,
)

pytestmark = pytest.mark.usefixtures("seed")


COUNTS = np.array([*range(1, N_LABELS), 0])


def start_log_proba(head):
    """Of all labels, for features that say nothing."""
    for level in getattr(head, "levels", []):
        torch.nn.init.zeros_(level.query.bias)
    return head.log_proba(torch.zeros(1, DIM), torch.arange(N_LABELS)[None])[0]


def begun(name, n_samples=None, **options):
    return ALL[name](**options).init_bias(COUNTS, n_samples)


def smoothed(n_samples):
    return torch.from_numpy((COUNTS + 0.5) / (n_samples + 1))


DIGITS = ("product", "product-groups", "product-codes", "product-bce")


@pytest.mark.parametrize("name", [name for name in ALL if name not in DIGITS])
def test_before_training_labels_are_as_likely_as_they_are_frequent(name):
    """With biases of 0 a head has to learn first that most of a million labels are rare."""
    n_samples = None if name in ONE_CLASS else 400
    options = {"n_candidates": 99} if name.startswith("cascade") else {}
    head, frequencies = begun(name, n_samples, **options), smoothed(n_samples or COUNTS.sum())
    if name == "sampling":  # where frequent labels are negatives more often
        frequencies = torch.ones(N_LABELS).double()
    if name in (*ONE_CLASS, "full-pal", "etf"):
        frequencies = frequencies / frequencies.sum()
    found = start_log_proba(head).exp().double()
    tolerances = {"atol": 0.02, "rtol": 0.1} if name == "cascade" else {"atol": 1e-3, "rtol": 0.01}
    torch.testing.assert_close(found, frequencies, **tolerances)


@pytest.mark.parametrize("base", ["cross_entropy", "label_smoothing", "focal", "mse"])
def test_a_fixed_layer_begins_at_shares_with_all_losses_that_have_a_softmax(base):
    head = heads.Etf(DIM, N_LABELS, base=base).init_bias(COUNTS, 400)
    shares = smoothed(400) if base != "mse" else torch.ones(N_LABELS).double()
    found = start_log_proba(head).exp().double()
    torch.testing.assert_close(found, shares / shares.sum(), atol=1e-5, rtol=1e-4)
    assert heads.Etf(DIM, N_LABELS, bias=False).init_bias(COUNTS).bias is None


@pytest.mark.parametrize("name", DIGITS)
def test_before_training_a_product_knows_the_frequencies_of_digits(name):
    """A label is as likely as if its digits were independent; several codes are averaged."""
    head = begun(name)
    logs = torch.zeros(N_LABELS).double()
    for places in head._places_of(torch.arange(N_LABELS)):
        digits = head.code.digits(places)
        for h, length in enumerate(head.code.lengths):
            shares = torch.zeros(length).double()
            shares.index_add_(0, digits[:, h], smoothed(COUNTS.sum()))
            logs += shares[digits[:, h]].log() / len(head._places_of(torch.arange(N_LABELS)))
    torch.testing.assert_close(
        start_log_proba(head).double(), logs.log_softmax(0), atol=0.05, rtol=0.01
    )


def test_before_training_digits_are_as_likely_as_they_are_frequent():
    head, frequencies = begun("product"), smoothed(COUNTS.sum())
    digits = head.code.encode(torch.arange(N_LABELS))
    outputs = head.linear.bias.detach().split(head.code.lengths)
    for h, logits in enumerate(outputs):
        share = torch.zeros(len(logits)).double().index_add(0, digits[:, h], frequencies)
        torch.testing.assert_close(logits.softmax(0).double(), share / share.sum(),
                                   atol=1e-5, rtol=1e-4)  # fmt: skip


def test_counts_of_other_labels_are_refused():
    with pytest.raises(LabelsShapeError, match=r"\(23,\)"):
        heads.Full(DIM, N_LABELS).init_bias(np.ones(22))


@pytest.mark.parametrize("name", ["full", "full-bce", "product", "cascade"])
@pytest.mark.parametrize(
    "more", [(float("nan"),), (-1.0,), (float("inf"),), (1.0, -1), (1, np.nan)]
)
def test_counts_that_are_no_counts_are_refused(name, more):
    value, *n_samples = more
    with pytest.raises(LabelsError, match="negative or not finite"):
        ALL[name]().init_bias([value] * N_LABELS, *n_samples)


@pytest.mark.parametrize("given", [("many",), (None,), ([[1], [2, 3]],), (COUNTS, "many")])
def test_what_is_no_number_is_refused(given):
    """PyTorch's own error does not say what it is about."""
    with pytest.raises(LabelsError, match="no numbers of training samples"):
        heads.Full(DIM, N_LABELS).init_bias(*given)


def test_infinitely_many_samples_are_refused():
    """All biases would be infinite."""
    with pytest.raises(LabelsError, match="not finite"):
        heads.Full(DIM, N_LABELS).init_bias(COUNTS, np.inf)


@pytest.mark.parametrize("name", ["full", "adversarial"])
def test_counts_may_be_part_of_a_graph(name):
    counts = torch.arange(1.0, N_LABELS + 1)
    plain, head = ALL[name](), ALL[name]()
    plain.init_bias(counts)
    head.init_bias(counts.clone().requires_grad_())
    found = {key: value for key, value in head.state_dict().items() if key.startswith("bias")}
    assert found
    for key, value in found.items():
        assert torch.equal(value, plain.state_dict()[key])
