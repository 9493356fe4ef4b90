"""What a user may give to a head by mistake, and what else PyTorch does with modules."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.errors import FeaturesError, LabelsError, LabelsShapeError, ParameterError

from .every_head import (
    ALL,
    DIM,
    N_LABELS,
    SPARSE,
    classes,
    dense,
    features,
    gradients,
    loss_of,
)  # fmt: skip


@pytest.fixture(params=ALL)
def name(request):
    return request.param


@pytest.fixture
def head(name):
    torch.manual_seed(0)
    return ALL[name]()


@pytest.mark.parametrize("wrong", [torch.float64, torch.bfloat16, torch.int64, torch.complex64])
def test_features_of_another_type_are_refused(head, wrong):
    """PyTorch speaks of mat1 and mat2, and one head multiplied anything."""
    x = torch.ones(3, DIM).to(wrong)
    with pytest.raises(FeaturesError, match=f"features are {wrong}.*pass features.to"):
        head(x, classes(3))
    with pytest.raises(FeaturesError, match=f"features are {wrong}"):
        head.topk(x, 2)


def test_a_layer_that_learns_nothing_takes_features_of_its_own_type():
    head = um.neural.heads.Etf(DIM, N_LABELS, bias=False)
    assert not list(head.parameters())
    assert torch.isfinite(head(features(3), classes(3)))
    with pytest.raises(FeaturesError, match=r"weights of this head are torch\.float32"):
        head(features(3).double(), classes(3))


def test_under_autocast_features_may_be_of_half_precision(head):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.isfinite(head(features(3).bfloat16(), classes(3)))
        with pytest.raises(FeaturesError, match=r"torch\.float64"):
            head(features(3).double(), classes(3))


def test_sparse_features_and_single_samples_are_refused(head):
    with pytest.raises(FeaturesError, match="to_dense"):
        head(features(3).to_sparse(), classes(3))
    with pytest.raises(FeaturesError, match=r"features\[None\]"):
        head(torch.zeros(DIM), classes(1))


@pytest.mark.parametrize("wrong", [torch.float32, torch.bool, torch.complex64])
def test_class_ids_are_whole_numbers(head, wrong):
    with pytest.raises(LabelsShapeError, match=rf"type {wrong}.* \(3, m\).*\(3, 23\)"):
        head(features(3), classes(3).to(wrong))


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_class_ids_of_any_size_are_the_same(head, kind):
    x, y = features(3), classes(3)
    assert torch.equal(loss_of(head, x, y.to(kind)), loss_of(head, x, y))


@pytest.mark.parametrize("first", [2**30, -5, 9])
def test_damaged_sparse_labels_are_refused(first):
    """The first of these ended the process."""
    labels = csr_matrix(np.eye(3, N_LABELS, dtype=np.float32))
    labels.indptr = np.array([0, first, 10 - 2**31, 3], np.int32)
    with pytest.raises(LabelsError, match="labels is a damaged sparse matrix"):
        ALL["full"]()(features(3), labels)


@pytest.mark.parametrize(
    "labels",
    [
        csr_matrix(-np.eye(3, N_LABELS, dtype=np.int8)),
        (-torch.eye(3, N_LABELS, dtype=torch.int64)).to_sparse(),
        torch.ones(3, N_LABELS, dtype=torch.complex64),
        csr_matrix(1j * np.eye(3, N_LABELS)),
    ],
)
def test_indicators_of_odd_numbers_are_refused(labels):
    with pytest.raises(LabelsError, match=r"other than 0 and 1|Complex data"):
        ALL["full-bce"]()(features(3), labels)


def test_tensors_of_other_layouts_are_refused_by_name():
    head, x, eye = ALL["full"](), features(3), torch.eye(3, N_LABELS)
    rows = [torch.tensor([1]), torch.tensor([1, 2])]
    ragged = torch.nested.nested_tensor(rows, layout=torch.jagged)
    with pytest.raises(LabelsShapeError, match="1 dense dimensions"):
        head(x, eye.to_sparse(1))
    for ask in (head, head.log_proba):
        with pytest.raises(LabelsError, match="to_padded_tensor"):
            ask(x, ragged)
    with pytest.raises(LabelsError, match="ids of the labels"):
        head.log_proba(x, eye.long().to_sparse())


@pytest.mark.parametrize("smoothing", ["a", None, float("nan"), -0.1])
def test_smoothing_that_is_no_share_is_refused(head, smoothing):
    with pytest.raises(ParameterError, match="label_smoothing="):
        head(features(2), classes(2), label_smoothing=smoothing)


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float16])
def test_a_head_of_another_type_learns_and_answers(head, kind):
    """A network in bfloat16 without autocast, or in float64 for a check of gradients."""
    head.to(kind)
    loss = head(features(4).to(kind), classes(4))
    loss.backward()
    assert torch.isfinite(loss)
    assert all(each.grad.dtype == kind for each in head.parameters())
    labels, scores = head.topk(features(4).to(kind), 3)
    assert labels.shape == (4, 3)
    assert torch.isfinite(scores).all()


def test_noise_keeps_its_precision():
    """Draws and their probabilities would differ."""
    head = ALL["adversarial"]()
    before = {name: each.clone() for name, each in head.named_buffers()}
    for name, each in head.bfloat16().named_buffers():
        assert torch.equal(each, before[name]), name


# Probabilities of labels that are asked for


def test_probabilities_of_tokens_and_of_one_label_each(head):
    x, y = features(2, 3), classes(2, 3, 4)
    flat = head.log_proba(x.view(6, DIM), y.view(6, 4))
    torch.testing.assert_close(head.log_proba(x, y), flat.view(2, 3, 4))
    torch.testing.assert_close(head.log_proba(x, y[..., 1]), flat.view(2, 3, 4)[..., 1])
    for form in (y.int(), y.numpy(), y.tolist(), y.to(torch.uint64)):
        torch.testing.assert_close(head.log_proba(x, form), flat.view(2, 3, 4))
    assert head.log_proba(features(0), classes(0)).shape == (0,)
    assert head.log_proba(features(0), classes(0, 4)).shape == (0, 4)


def test_labels_of_other_samples_have_no_probabilities(head):
    """Two heads answered for the rows that there were."""
    with pytest.raises(LabelsShapeError, match=r"leading shape \(4,\)"):
        head.log_proba(features(4), classes(2, 3))
    with pytest.raises(LabelsShapeError, match=r"type torch\.float32"):
        head.log_proba(features(4), classes(4, 2).float())
    with pytest.raises(LabelsError, match="no tensor"):
        head.log_proba(features(4), None)


# Modules and optimizers


@pytest.mark.parametrize("name", ["product-codes", "cascade-softmax", "sampling", "adversarial"])
def test_a_compiled_graph_takes_batches_of_any_size(name):
    """The last batch of an epoch is smaller, and tokens come in rows."""
    torch.compiler.reset()
    head = ALL[name](**({"n_random": 99} if name.startswith("sampling") else {}))
    head = head.requires_grad_(False)
    compiled = torch.compile(head, fullgraph=True, backend="eager")
    for leading in ((4,), (7,), (5,), (2, 3)):
        x, y = features(*leading), classes(*leading)
        torch.testing.assert_close(loss_of(compiled, x, y), loss_of(head, x, y))


@pytest.mark.parametrize("name", ["full-bce", "sampling-bce", "powerset"])
def test_a_graph_of_several_labels_is_compiled(name):
    head = ALL[name](**({"n_random": 99} if name.startswith("sampling") else {}))
    indicator = torch.zeros(4, N_LABELS)
    indicator[[0, 0, 2], [3, 7, 22]] = 1
    padded = torch.tensor([[7, 3], [-100, -100], [22, -100], [-100, -100]])
    x = features(4)
    for labels in (indicator, padded):
        torch.compiler.reset()
        compiled = torch.compile(head, fullgraph=True, backend="eager")
        torch.testing.assert_close(loss_of(compiled, x, labels), loss_of(head, x, labels))


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_gradients_are_clipped(name):
    """torch.nn.utils.clip_grad_norm_ takes dense ones only."""
    plain, sparse = ALL[name](), ALL[name](sparse=True)
    sparse.load_state_dict(plain.state_dict())
    x, y = features(4), classes(4)
    for each in (plain, sparse):
        gradients(each, x, y)
    norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.01)
    torch.testing.assert_close(um.neural.clip_gradients(sparse.parameters(), 0.01), norm)
    for mine, theirs in zip(sparse.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(dense(mine.grad), theirs.grad, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", SPARSE)
def test_optimizers_of_pytorch_take_sparse_gradients(name):
    """SparseAdam for the tables and Adam for the rest, or SGD with momentum for all."""
    head, x, y = ALL[name](sparse=True), features(8), classes(8)
    tables = [each.weight for each in head.modules() if isinstance(each, torch.nn.Embedding)]
    ids = {id(each) for each in tables}
    rest = [each for each in head.parameters() if id(each) not in ids]
    optimizers = [
        torch.optim.SparseAdam(tables, lr=0.05),
        *([torch.optim.Adam(rest, lr=0.05)] if rest else []),
        torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.5),
    ]
    losses = []
    for _ in range(30):
        head.zero_grad()
        loss = head(x, y)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


def test_averaged_and_whole_modules(head, tmp_path):
    """Averages of weights over time, and a module that is saved as a whole."""
    averaged = torch.optim.swa_utils.AveragedModel(head)
    averaged.update_parameters(head)
    torch.save(head, tmp_path / "head.pt")
    again = torch.load(tmp_path / "head.pt", weights_only=False)
    x = features(5)
    for other in (averaged.module, again):
        assert torch.equal(other.topk(x, 4)[0], head.topk(x, 4)[0])


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("adversarial")])
def test_weights_are_loaded_into_a_head_without_memory(name):
    head = ALL[name]()
    with torch.device("meta"):
        empty = ALL[name]()
    empty.load_state_dict(head.state_dict(), assign=True)
    x = features(5)
    assert torch.equal(empty.topk(x, 4)[0], head.topk(x, 4)[0])


def test_tensors_without_numbers_are_refused(head):
    """The device "meta" has shapes only; PyTorch fails on it in the middle of a loss."""
    x, y = features(4), classes(4)
    for given in ((x.to("meta"), y), (x, y.to("meta")), (x.to("meta"), y.to("meta"))):
        with pytest.raises((FeaturesError, LabelsError), match=r"meta.*make them on"):
            head(*given)
    with pytest.raises(FeaturesError, match="make them on"):
        head.topk(x.to("meta"), 3)
    with pytest.raises(FeaturesError, match=r"but this head is on meta.*load weights"):
        head.to("meta")(x, y)


@pytest.mark.parametrize("wrong", ["a", None, 1.5, 2**70, True])
def test_an_ignored_class_is_a_whole_number(head, wrong):
    with pytest.raises(ParameterError, match="ignore_index="):
        head(features(4), classes(4), ignore_index=wrong)


def test_missing_labels_of_a_masked_array_are_not_learned(head):
    labels = np.ma.array([1, 2, 3, 4], mask=[True, False, False, False])
    with pytest.raises(LabelsError, match=r"labels\.filled"):
        head(features(4), labels)
    assert head(features(4), labels.filled(-100)).isfinite()


@pytest.mark.parametrize("limit", [-1.0, float("nan"), None, "1"])
def test_gradients_are_not_turned_around(limit):
    """A negative limit would let a network learn the opposite."""
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.ones(2)
    with pytest.raises(ParameterError, match="limit="):
        um.neural.clip_gradients([weight], limit)
    assert weight.grad.tolist() == [1, 1]


def test_gradients_of_a_single_parameter_are_clipped():
    """As by torch.nn.utils.clip_grad_norm_; its rows have no gradients of their own."""
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert um.neural.clip_gradients(weight, 1.0) == 5
    torch.testing.assert_close(weight.grad, torch.tensor([0.6, 0.8]))
