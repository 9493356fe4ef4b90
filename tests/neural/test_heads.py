"""What every head promises to a training loop that is not ours."""

import copy
import io
import os

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
import torch.distributed as dist
from scipy.sparse import coo_matrix, csr_matrix
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import umpteen as um
from umpteen.errors import (
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    MemoryBudgetError,
    ParameterError,
)
from umpteen.multihead import LabelCode
from umpteen.neural import Targets

DIM, N_LABELS = 6, 23
heads = um.neural.heads

ONE_CLASS = {
    "full": lambda **o: heads.Full(DIM, N_LABELS),
    "product": lambda **o: heads.Product(DIM, N_LABELS, **o),
    "product-groups": lambda **o: heads.Product(DIM, N_LABELS, n_groups=3, **o),
    "product-codes": lambda **o: heads.Product(DIM, N_LABELS, n_codes=3, **o),
    "product-bce": lambda **o: heads.Product(DIM, N_LABELS, loss="bce", **o),
    "cascade-softmax": lambda **o: heads.Cascade(DIM, N_LABELS, hidden=4, loss="softmax", **o),
    "sampling": lambda **o: heads.Sampling(DIM, N_LABELS, **o),
    "sampling-own": lambda **o: heads.Sampling(DIM, N_LABELS, sampling="own", **o),
    "adversarial": lambda **o: adversarial(**o),
    "adversarial-paper": lambda **o: adversarial(objective="negative_sampling", **o),
}
SEVERAL = {
    "full-bce": lambda **o: heads.Full(DIM, N_LABELS, loss="bce"),
    "full-pal": lambda **o: heads.Full(DIM, N_LABELS, loss="pick_all_labels"),
    "cascade": lambda **o: heads.Cascade(DIM, N_LABELS, hidden=4, **{"n_candidates": 3, **o}),
    "sampling-bce": lambda **o: heads.Sampling(DIM, N_LABELS, loss="bce", **o),
    "powerset": lambda **o: heads.Powerset(DIM, N_LABELS),
    "etf": lambda **o: heads.Etf(DIM, N_LABELS, feature_penalty=0.1),
}
ALL = ONE_CLASS | SEVERAL
CODED = [name for name in ALL if name.startswith(("product", "cascade", "sampling"))]
SPARSE = [name for name in ALL if name.startswith(("cascade", "sampling", "adversarial"))]


def adversarial(**options):
    """With a tree that was fitted to something."""
    head = heads.Adversarial(DIM, N_LABELS, noise_dim=3, **{"n_negatives": 7, **options})
    random = np.random.default_rng(0)
    samples = torch.from_numpy(random.standard_normal((90, DIM)))
    return head.fit_noise(samples, torch.arange(90) % N_LABELS, regularizer=1.0)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(params=ALL)
def name(request):
    return request.param


@pytest.fixture
def head(name):
    return ALL[name]()


def features(*leading):
    return torch.randn(*leading, DIM)


def classes(*shape):
    return torch.randint(N_LABELS, shape)


def loss_of(head, *arguments, **options):
    """Groups are drawn anew in each call: the same ones with the same seed."""
    torch.manual_seed(1)
    return head(*arguments, **options)


def gradients(head, *arguments, **options):
    head.zero_grad()
    loss_of(head, *arguments, **options).backward()
    return {name: dense(each.grad) for name, each in head.named_parameters() if each.requires_grad}


def dense(gradient):
    return gradient.to_dense().clone() if gradient.is_sparse else gradient.clone()


# Forms of labels


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


# What PyTorch does with modules


def same_answers(one, other):
    x = features(7)
    for mine, theirs in zip(one.topk(x, 9), other.topk(x, 9), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", CODED)
def test_weights_bring_the_order_of_labels(name):
    """Weights in another order answer with other labels, without an error."""
    lengths = ALL[name]().code.lengths
    orders = [None, *(LabelCode(N_LABELS, lengths).shuffled(each) for each in (1, 2))]
    for mine in orders:
        for other in orders:
            options = [{} if code is None else {"code": code} for code in (mine, other)]
            first, second = (ALL[name](**each) for each in options)
            second.load_state_dict(first.state_dict())
            same_answers(first, second)
            x, y = features(4), classes(4)
            assert torch.equal(loss_of(first, x, y), loss_of(second, x, y))


def test_weights_of_other_digits_are_refused():
    """Heads of {12; 8} and {10; 10} have weights of the same shape."""
    one = heads.Product(DIM, 90, lengths=[12, 8])
    for other in (
        heads.Product(DIM, 90, lengths=[10, 10]),
        heads.Product(DIM, 91, lengths=[12, 8]),
        heads.Product(DIM, 90, lengths=[12, 8], loss="bce"),
    ):
        with pytest.raises(ParameterError, match=r"\[12, 8\]"):
            other.load_state_dict(one.state_dict())
    powerset = heads.Powerset(DIM, 4, labels_per_head=3)  # 8 + 2 outputs, as 4 + 4 + 2 are
    with pytest.raises(ParameterError, match="labels_per_head"):
        heads.Powerset(DIM, 5, labels_per_head=2).load_state_dict(powerset.state_dict())


def test_torch_save_and_load(name, head):
    file = io.BytesIO()
    torch.save(head.state_dict(), file)
    file.seek(0)
    torch.manual_seed(5)
    again = ALL[name]()
    again.load_state_dict(torch.load(file, weights_only=True))
    same_answers(head, again)


def test_copies_are_independent(head):
    twin, x, y = copy.deepcopy(head), features(3), classes(3)
    same_answers(head, twin)
    before = head.topk(x, 3)[1].clone()
    torch.optim.SGD(twin.parameters(), lr=1.0).zero_grad()
    twin(x, y).backward()
    torch.optim.SGD(twin.parameters(), lr=1.0).step()
    assert torch.equal(head.topk(x, 3)[1], before)
    assert not torch.equal(twin.topk(x, 3)[1], before)


def test_gradient_checkpointing_gives_the_same_gradients(head):
    x, y = features(4), classes(4)
    expected = gradients(head, x, y)
    head.zero_grad()
    torch.manual_seed(1)
    checkpoint(head, x.requires_grad_(), y, use_reentrant=False).backward()
    for parameter, each in head.named_parameters():
        torch.testing.assert_close(dense(each.grad), expected[parameter])


def test_half_precision_on_the_cpu(head):
    x, y = features(8), classes(8)
    expected = loss_of(head, x, y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(head, torch.nn.functional.linear(x, torch.eye(DIM)), y)
        best, scores = head.topk(x, 4)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=0.03, abs=0.03)
    loss.backward()
    assert all(torch.isfinite(dense(each.grad)).all() for each in head.parameters())
    assert best.shape == (8, 4)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("name", SPARSE)
def test_half_precision_of_a_table_that_is_read_by_rows(name):
    """The path for large tables, which copies rows."""
    big = {"cascade": heads.Cascade, "sampling": heads.Sampling,
           "adversarial": heads.Adversarial}[name.partition("-")[0]]  # fmt: skip
    options = {"cascade": {"loss": "bce"}, "cascade-softmax": {"loss": "softmax"},
               "sampling-own": {"sampling": "own"}, "sampling-bce": {"loss": "bce"},
               "adversarial-paper": {"objective": "negative_sampling"}}  # fmt: skip
    head = big(DIM, 5000, sparse=True, **options.get(name, {}))
    x, y = features(4), torch.randint(5000, (4,))
    expected = loss_of(head, x, y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(head, x, y)
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=0.03)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_gradients_are_the_same(name):
    plain, sparse = ALL[name](), ALL[name](sparse=True)
    sparse.load_state_dict(plain.state_dict())
    x, y = features(4), classes(4)
    expected = gradients(plain, x, y)
    for parameter, found in gradients(sparse, x, y).items():
        torch.testing.assert_close(found, expected[parameter])
    tables = [each.grad.is_sparse for key, each in sparse.named_parameters() if "table" in key]
    assert tables == [True] * len(tables) != []


COMPILED = [name for name in ALL if name != "cascade"]  # its number of candidates varies


def every_group(name):
    """Draws of a compiled graph are others, so that nothing is left to draw."""
    return ALL[name](**({"n_random": 99} if name.startswith("sampling") else {}))


@pytest.mark.parametrize("name", COMPILED)
def test_a_whole_graph_is_compiled(name):
    torch.compiler.reset()
    head, x, y = every_group(name), features(4), classes(4)
    y[1] = -100
    expected = loss_of(head, x, y), gradients(head, x, y)
    compiled = torch.compile(head, fullgraph=True, backend="aot_eager")
    head.zero_grad()
    loss = loss_of(compiled, x, y)
    loss.backward()
    torch.testing.assert_close(loss, expected[0])
    for parameter, each in head.named_parameters():
        torch.testing.assert_close(each.grad, expected[1][parameter])


def test_the_compiler_makes_code_of_heads():
    """Two at once, as each takes long; the graphs of all are tested above."""
    _needs_a_compiler()
    torch.compiler.reset()
    some = torch.nn.ModuleList(map(every_group, ("cascade-softmax", "sampling")))

    def losses(x, y):
        return torch.stack([head(x, y) for head in some])

    x, y = features(4), classes(4)
    found = torch.compile(losses, fullgraph=True)(x, y)
    torch.testing.assert_close(found, losses(x, y))
    found.sum().backward()
    assert all(each.grad is not None for each in some.parameters())


def _needs_a_compiler():
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception as error:
        pytest.skip(f"no C++ compiler: {error}")


def _alone(rank, folder):
    """Write which gradients of a network on one rank are not those without DDP."""
    _join(rank, folder, world_size=1)
    wrong = []
    for name, sparse in [*((name, False) for name in ALL), *((name, True) for name in SPARSE)]:
        head, x, y = ALL[name](**({"sparse": True} if sparse else {})), features(4), classes(4)
        expected = gradients(head, x, y)
        head.zero_grad()
        torch.manual_seed(1)
        DistributedDataParallel(head)(x, y).backward()
        for parameter, each in head.named_parameters():
            if not torch.allclose(dense(each.grad), expected[parameter], rtol=1e-5, atol=1e-6):
                wrong.append((name, sparse, parameter))
    torch.save(wrong, f"{folder}/{rank}.pt")
    os._exit(0)  # the destructors of DDP and gloo wait for each other now and then


def test_ddp_without_a_wrapper(tmp_path):
    torch.multiprocessing.spawn(_alone, (str(tmp_path),), nprocs=1)
    assert torch.load(tmp_path / "0.pt") == []


def _join(rank, folder, world_size):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world_size)


def _rank(rank, folder, names):
    """Train two steps on the rank's half of a batch; write the weights."""
    _join(rank, folder, world_size=2)
    found = {}
    for name in names:
        torch.manual_seed(0)
        head = ALL[name](**({"sparse": True} if name in SPARSE else {}))
        wrapped, optimizer = (
            DistributedDataParallel(head),
            um.neural.RowAdam(head.parameters(), 0.1),
        )
        x, y = features(8), classes(8)
        for _ in range(2):
            optimizer.zero_grad()
            wrapped(x[4 * rank :][:4], y[4 * rank :][:4]).backward()
            optimizer.step()
        found[name] = head.state_dict()
    torch.save(found, f"{folder}/{rank}.pt")
    dist.barrier()
    os._exit(0)


def test_ddp_on_two_ranks_keeps_weights_equal(tmp_path):
    torch.multiprocessing.spawn(_rank, (str(tmp_path), [*ALL]), nprocs=2)
    one, other = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    for name in ALL:
        for key, weights in one[name].items():
            assert torch.equal(weights, other[name][key]), (name, key)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card")
def test_on_a_graphics_card(name, head):
    x, y = features(8), classes(8)
    on_card = copy.deepcopy(head).cuda()
    torch.testing.assert_close(on_card.topk(x.cuda(), 5)[1].cpu(), head.topk(x, 5)[1])
    loss = on_card(x.cuda(), y.cuda())
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_no_head_answers_more_labels_than_there_are(head, n):
    """A place for each of a billion labels takes all memory."""
    if isinstance(head, heads.Cascade):
        head.n_candidates = 100
    labels, scores = head.topk(torch.randn(n, DIM), 10**9)
    assert labels.shape == scores.shape == (n, N_LABELS)
    assert (labels.sort(1).values == torch.arange(N_LABELS)).all()


def test_features_without_samples_have_the_loss_0(head):
    assert head(features(0), classes(0)) == 0


# Where training begins


COUNTS = np.array([*range(1, N_LABELS), 0])


def start(head):
    """Scores of all labels for features that say nothing."""
    for level in getattr(head, "levels", []):
        torch.nn.init.zeros_(level.query.bias)
    labels, scores = head.topk(torch.zeros(1, DIM), N_LABELS)
    return scores[0].gather(0, labels[0].argsort())


def begun(name, n_samples=None, **options):
    return ALL[name](**options).init_bias(COUNTS, n_samples)


def smoothed(n_samples):
    return torch.from_numpy((COUNTS + 0.5) / (n_samples + 1))


def test_before_training_classes_are_as_likely_as_they_are_frequent():
    """With 0 a head has to learn first that most of a million labels are rare."""
    frequencies = smoothed(COUNTS.sum())
    expected = frequencies / frequencies.sum()
    found = start(begun("full")).softmax(0)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-4)
    cascade = begun("cascade-softmax", n_candidates=99)
    torch.testing.assert_close(start(cascade).exp().double(), expected, atol=1e-3, rtol=0.01)


@pytest.mark.parametrize("name", ["full-bce", "sampling-bce"])
def test_before_training_labels_are_as_likely_as_they_are_frequent(name):
    found = start(begun(name, 100)).sigmoid()
    torch.testing.assert_close(found.double(), smoothed(100), atol=1e-5, rtol=1e-4)


def test_before_training_labels_of_sets_are_as_likely_as_they_are_frequent():
    found = start(begun("powerset", 100)).exp()
    torch.testing.assert_close(found.double(), smoothed(100), atol=1e-5, rtol=1e-4)


def test_before_training_digits_are_as_likely_as_they_are_frequent():
    head, frequencies = begun("product"), smoothed(COUNTS.sum())
    digits = head.code.encode(torch.arange(N_LABELS))
    outputs = head.linear.bias.detach().split(head.code.lengths)
    for h, logits in enumerate(outputs):
        share = torch.zeros(len(logits)).double().index_add(0, digits[:, h], frequencies)
        torch.testing.assert_close(logits.softmax(0).double(), share / share.sum(),
                                   atol=1e-5, rtol=1e-4)  # fmt: skip


def test_a_cascade_begins_with_the_groups_and_labels_that_are_frequent():
    head = begun("cascade", 400, n_candidates=99)
    found, frequencies = start(head).exp().double(), smoothed(400)
    torch.testing.assert_close(found, frequencies, atol=0.02, rtol=0.1)


def test_counts_of_other_labels_are_refused():
    with pytest.raises(LabelsShapeError, match=r"\(23,\)"):
        heads.Full(DIM, N_LABELS).init_bias(np.ones(22))


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


@pytest.mark.parametrize("name", ["full", "full-bce", "product", "cascade"])
@pytest.mark.parametrize(
    "more", [(float("nan"),), (-1.0,), (float("inf"),), (1.0, -1), (1, np.nan)]
)
def test_counts_that_are_no_counts_are_refused(name, more):
    value, *n_samples = more
    with pytest.raises(LabelsError, match="negative or not finite"):
        ALL[name]().init_bias([value] * N_LABELS, *n_samples)


@pytest.mark.parametrize("settings", [torch.zeros(9, dtype=torch.uint8), None, {"n_labels": 3}])
@pytest.mark.parametrize("name", ["product", "cascade", "powerset"])
def test_damaged_settings_of_weights_are_refused(name, settings):
    head = ALL[name]()
    weights = head.state_dict() | {"_extra_state": settings}
    with pytest.raises(ParameterError, match="settings"):
        head.load_state_dict(weights)


# What cannot be


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_features_that_are_not_finite_are_refused(head, value):
    """Answers were labels with the score NaN."""
    x = features(3)
    x[1, 2] = value
    with pytest.raises(FeaturesError, match="NaN or infinite"):
        head(x, classes(3))
    with pytest.raises(FeaturesError, match="NaN or infinite"):
        head.topk(x, 2)


def test_a_gradient_scaler_may_leave_out_steps_that_overflow():
    x = features(3).half()
    x[1, 2] = torch.inf
    assert not torch.isfinite(heads.Full(DIM, N_LABELS).half()(x, classes(3)))


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


# Probabilities


def literal_log_proba(name, head, x):
    """Of all labels, by the definition of each head."""
    if name.startswith("product"):
        logits = head.linear(x).double()
        logits = torch.nn.functional.logsigmoid(logits) if name == "product-bce" else logits
        total = torch.zeros(len(x), N_LABELS, dtype=torch.float64)
        parts = head._by_head(logits, head.n_groups * head.n_codes)  # (n, groups, length) each
        for code, places in enumerate(head._places_of(torch.arange(N_LABELS))):
            digits = head.code.digits(places)
            groups = slice(None) if head.n_groups > 1 else slice(code, code + 1)
            sums = sum(part[:, groups][:, :, digits[:, h]] for h, part in enumerate(parts))
            total += sums.logsumexp(1).log_softmax(1) / head.n_codes
        return total
    if name.startswith("cascade"):
        children = head.steps[0]
        table = children.query(x) @ children.table.weight.T + children.bias.weight[:, 0]
        nodes = torch.arange(N_LABELS)
        groups = nodes // children.length
        if head.loss_name == "bce":
            first = torch.nn.functional.logsigmoid(head.groups(x))
            return first[:, groups] + torch.nn.functional.logsigmoid(table)
        within = torch.cat([each.log_softmax(1) for each in table.split(children.length, 1)], 1)
        return head.groups(x).log_softmax(1)[:, groups] + within
    if name == "powerset":
        inside = torch.zeros(len(x), N_LABELS, dtype=torch.float64)
        parts = head.linear(x).double().split(head.code.lengths, dim=1)
        for first, part in zip(range(0, N_LABELS, head.code.labels_per_head), parts, strict=True):
            for subset, share in enumerate(part.softmax(1).T):
                for bit in range(head.code.labels_per_head):
                    if subset >> bit & 1:
                        inside[:, first + bit] += share
        return inside.log()
    if name.startswith("adversarial"):
        scores = x @ head.table.weight.T + head.bias.weight[:, 0]
        if name == "adversarial-paper":
            labels, found = head.topk(x, N_LABELS)
            scores = torch.zeros_like(scores).scatter(1, labels, found)
        return scores.log_softmax(1)
    if name.startswith("sampling"):
        scores = x @ head.table.weight.T + head.bias.weight[:, 0]
    else:
        scores = head.logits(x)
    independent = head.loss_name == "bce"
    return torch.nn.functional.logsigmoid(scores) if independent else scores.log_softmax(1)


@pytest.mark.parametrize("block", [2**22, 5 * 8])
def test_scores_of_all_heads_become_probabilities(name, head, block, monkeypatch):
    """If this fails, a score says one thing with one head and another with the next."""
    monkeypatch.setattr("umpteen.neural.topk._BLOCK_SCORES", block)
    monkeypatch.setattr("umpteen.neural.topk._LEAST_BLOCK", 5)
    for each in head.parameters():
        each.data += 0.3 * torch.randn_like(each)
    x = features(8)
    every = torch.arange(N_LABELS).expand(8, -1)
    with torch.no_grad():
        expected = literal_log_proba(name, head, x)
    found = head.log_proba(x, every)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    total = found.double().exp().sum(1)
    if name == "product-codes":
        assert (total < 1).all()
    elif name in ONE_CLASS or name in ("full-pal", "etf"):
        np.testing.assert_allclose(total, 1, rtol=1e-5)
    some = every[:, [3, 0, 22, 3]]
    np.testing.assert_allclose(head.log_proba(x, some), found[:, [3, 0, 22, 3]], rtol=1e-6)
    for k in (1, 7, N_LABELS):
        best, scores = head.topk_log_proba(x, k)
        assert torch.equal(best, head.topk(x, k)[0])
        own = found.gather(1, best.clamp(min=0))
        np.testing.assert_allclose(scores[best >= 0], own[best >= 0], rtol=1e-5, atol=1e-6)
        assert (scores[best < 0] == -torch.inf).all()


def test_probabilities_of_labels_that_do_not_exist_are_refused(head):
    with pytest.raises(LabelsError, match="labels run from 0 to 22"):
        head.log_proba(features(2), torch.tensor([[1, 23], [0, 2]]))
