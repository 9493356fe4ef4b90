"""What PyTorch does with modules, it does with every head."""

import copy
import io
import os

import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import umpteen as um
from umpteen.errors import (
    ParameterError,
)
from umpteen.multihead import LabelCode

from .every_head import (
    ALL,
    CODED,
    DIM,
    N_LABELS,
    SPARSE,
    classes,
    dense,
    features,
    gradients,
    heads,
    loss_of,
)

pytestmark = pytest.mark.usefixtures("seed")


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
    with torch.autocast("cpu", dtype=torch.bfloat16):  # the backward pass in the block, too
        gradients_inside = gradients(head, x, y)
    outside = {each: dense(table.grad) for each, table in head.named_parameters()}
    assert all(torch.equal(outside[each], gradients_inside[each]) for each in outside)


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


@pytest.mark.parametrize("form", ["padded ids", "indicator"])
@pytest.mark.parametrize("name", ["full-bce", "full-pal", "sampling-bce", "powerset", "etf"])
def test_a_whole_graph_with_several_labels_is_compiled(name, form):
    torch.compiler.reset()
    head, x = every_group(name), features(4)
    y = torch.tensor([[3, 7, -100], [5, -100, -100], [-100, -100, -100], [1, 22, 9]])
    if form == "indicator":
        y = torch.zeros(4, N_LABELS + 1).scatter(1, y.where(y >= 0, N_LABELS), 1)[:, :-1]
    expected = loss_of(head, x, y), gradients(head, x, y)
    head.zero_grad()
    loss = loss_of(torch.compile(head, fullgraph=True, backend="aot_eager"), x, y)
    loss.backward()
    torch.testing.assert_close(loss, expected[0])
    for parameter, each in head.named_parameters():
        if each.requires_grad:
            torch.testing.assert_close(each.grad, expected[1][parameter])
