"""What cannot be learned or answered is refused: labels, features, weights and sizes."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
from scipy.sparse import csr_matrix

from umpteen.errors import (
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    MemoryBudgetError,
    ParameterError,
)

from .every_head import (
    ALL,
    N_LABELS,
    SEVERAL,
    classes,
    features,
    heads,
)

pytestmark = pytest.mark.usefixtures("seed")


@pytest.mark.parametrize("several", SEVERAL)
@pytest.mark.parametrize("value", [0.5, -1.0, float("nan")])
def test_indicators_of_other_values_are_refused(several, value):
    """Each of these values counted as a label."""
    head, indicator = SEVERAL[several](), np.zeros((4, N_LABELS), np.float32)
    indicator[:, 2] = value
    dense = torch.from_numpy(indicator)
    for labels in (dense, dense.to_sparse(), csr_matrix(indicator)):
        with pytest.raises(LabelsError, match="values other than 0 and 1"):
            head(features(4), labels)


@pytest.mark.parametrize("labels", [None, ["a"] * 4, [[0], [1, 2], [3], [4]]])
def test_labels_that_are_no_tensor_are_refused(head, labels):
    with pytest.raises(LabelsError, match="no tensor"):
        head(features(4), labels)


def test_features_that_are_no_tensor_are_refused(head):
    with pytest.raises(FeaturesError, match="expected a tensor"):
        head(features(4).numpy(), classes(4))
    with pytest.raises(FeaturesError, match="expected a tensor"):
        head.topk(features(4).numpy(), 2)


def test_sparse_labels_of_tokens_are_refused(head):
    with pytest.raises(LabelsShapeError, match="sparse labels have shape"):
        head(features(1, 4), torch.eye(4, N_LABELS)[None].to_sparse())


@pytest.mark.parametrize("settings", [torch.zeros(9, dtype=torch.uint8), None, {"n_labels": 3}])
@pytest.mark.parametrize("name", ["product", "cascade", "powerset"])
def test_damaged_settings_of_weights_are_refused(name, settings):
    head = ALL[name]()
    weights = head.state_dict() | {"_extra_state": settings}
    with pytest.raises(ParameterError, match="settings"):
        head.load_state_dict(weights)


def answers(head, x):
    return {
        "topk": lambda: head.topk(x, 2)[1],
        "topk of all": lambda: head.topk(x, N_LABELS)[1],
        "topk_log_proba": lambda: head.topk_log_proba(x, 2)[1],
        "log_proba": lambda: head.log_proba(x, classes(len(x))),
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38, -3e38])
def test_features_that_are_not_finite_or_too_large_are_refused(head, value):
    """Answers were labels with the score NaN."""
    x = features(3)
    x[1, 2] = value
    for ask in (lambda: head(x, classes(3)), *answers(head, x).values()):
        with pytest.raises(FeaturesError, match="NaN or infinite, or beyond"):
            ask()


@pytest.mark.parametrize("size", [1e10, 9e29])
def test_large_features_have_no_scores_that_are_nan(head, size):
    x = features(9).sign() * size
    for name, ask in answers(head, x).items():
        assert bool((ask() < torch.inf).all()), name
    assert not bool(head(x, classes(9)).isnan())


def test_scores_that_overflow_are_refused(head):
    """In half precision, sums of the largest features are infinite, and differences are NaN."""
    with torch.no_grad():
        for each in head.parameters():
            each.mul_(1000)
    head.half()
    x = (features(9).sign() * 6e4).half()
    refusals = []
    for ask in answers(head, x).values():
        try:
            assert bool((ask() < torch.inf).all())
        except FeaturesError as error:
            refusals.append(str(error))
    assert all("scores overflow" in each for each in refusals)
    assert refusals or head.loss_name == "bce"  # products of sigmoids do not overflow


@pytest.mark.parametrize("name", ["full", "product", "cascade", "powerset", "adversarial"])
def test_weights_that_are_nan_have_no_answers(name):
    head = ALL[name]()
    with torch.no_grad():
        next(head.parameters()).fill_(torch.nan)
    for ask in answers(head, features(3)).values():
        with pytest.raises(FeaturesError, match="weights that are not finite"):
            ask()


def test_a_gradient_scaler_may_leave_out_steps_that_overflow(head):
    """Draws from the noise of infinite features ended in an IndexError."""
    x = features(30).half()
    x[:, 2] = torch.inf
    assert not torch.isfinite(head.half()(x, classes(30)))


@pytest.mark.parametrize("kind", heads.__all__)
@pytest.mark.parametrize(
    "sizes", [(0, 5), (-1, 5), (2.5, 5), ("a", 5), (True, 5), (6, 0), (6, -3), (6, 2.5), (6, None)]
)
def test_sizes_that_are_none_are_refused(kind, sizes):
    with pytest.raises(ParameterError, match="is not possible"):
        getattr(heads, kind)(*sizes)


@pytest.mark.parametrize("kind", heads.__all__)
@pytest.mark.parametrize("sizes", [(10**9, 10**9), (10**15, 60), (6, 10**18), (6, 10**30)])
def test_sizes_beyond_the_memory_are_refused(kind, sizes):
    """Before memory is taken, and before a list of so many digits is made."""
    with pytest.raises((MemoryBudgetError, ParameterError), match=r"GB|is not possible"):
        getattr(heads, kind)(*sizes)
