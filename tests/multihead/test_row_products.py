"""If these fail, cascades and samples of groups learn from wrong rows."""

import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch

from umpteen.multihead import row_products as module
from umpteen.multihead.row_products import row_products


@pytest.fixture(params=[(2**19, 0), (7, 0), (7, 99)], ids=["one chunk", "many chunks", "all rows"])
def case(request, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_ENTRIES", request.param[0])
    monkeypatch.setattr(module, "_GATHERED", request.param[1])
    torch.manual_seed(0)
    queries, table = torch.randn(3, 4).double(), torch.randn(9, 4).double()
    samples, nodes = torch.tensor([0, 0, 2, 1, 0]), torch.randint(9, (5, 2))
    return queries.requires_grad_(), table.requires_grad_(), samples, nodes


def test_products_are_those_of_a_loop(case):
    queries, table, samples, nodes = case
    found = row_products(*case, sparse=False)
    for p, i in torch.cartesian_prod(torch.arange(5), torch.arange(2)).tolist():
        expected = table[nodes[p, i]] @ queries[samples[p]]
        torch.testing.assert_close(found[p, i], expected)


def test_gradients_of_queries_and_table(case):
    queries, table, samples, nodes = case
    assert torch.autograd.gradcheck(
        lambda q, t: row_products(q, t, samples, nodes, sparse=False), (queries, table)
    )


def test_sparse_gradients_are_the_same(case):
    queries, table, _, nodes = case
    gradients = []
    for sparse in (False, True):
        products = row_products(*case, sparse=sparse)
        gradients.append(torch.autograd.grad(products.square().sum(), [queries, table]))
    torch.testing.assert_close(gradients[1][0], gradients[0][0])
    assert gradients[1][1].is_sparse
    torch.testing.assert_close(gradients[1][1].to_dense(), gradients[0][1])
    assert set(gradients[1][1].coalesce().indices()[0].tolist()) == set(nodes.flatten().tolist())


def test_no_pairs_have_no_products(case):
    queries, table, samples, nodes = case
    assert row_products(queries, table, samples[:0], nodes[:0], sparse=True).shape == (0, 2)
