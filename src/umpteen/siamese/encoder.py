"""The encoder that samples and labels share, as it is trained."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, gelu, normalize, relu

from umpteen.neural import SparseRows


def _linear(sums: Tensor) -> Tensor:
    return sums


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": relu, "gelu": gelu, "linear": _linear
}  # fmt: skip


class Encoder(nn.Module):
    """f(x) = N(ReLU(E x)), then N(f + ReLU(R f)), where N brings to length 1.

    E has a vector for each feature. R begins as the identity, which changes nothing: f is not
    negative. Without `residual`, f is all. `dropout` leaves out entries of a row while training.

    >>> encoder = Encoder(3, dim=2)
    >>> _ = encoder.table.weight.data.copy_(torch.tensor([[3.0, 4], [1, 0], [-1, -1]]))
    >>> encoder(SparseRows.of(csr_matrix([[1.0, 0, 0], [0, 0, 0]]))).detach()
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """

    def __init__(
        self,
        n_features: int,
        dim: int,
        *,
        activation: str = "relu",
        residual: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.table = nn.EmbeddingBag(
            n_features, dim, mode="sum", sparse=True, include_last_offset=True
        )
        nn.init.uniform_(self.table.weight, -0.1, 0.1)
        self.matrix = nn.Linear(dim, dim, bias=False) if residual else None
        if self.matrix is not None:
            nn.init.eye_(self.matrix.weight)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: SparseRows) -> Tensor:
        return self.lift(self.bags(rows))

    def bags(self, rows: SparseRows) -> Tensor:
        """Return f, which comes before the residual block."""
        values = self.dropout(rows.values)
        weights = self.table.weight
        if weights.device.type == "cpu" and weights.requires_grad:
            sums: Tensor = _RowSums.apply(weights, rows.columns, rows.offsets, values)
        else:
            sums = _sums(weights, rows.columns, rows.offsets, values)
        return normalize(self.activation(sums))

    def lift(self, bags: Tensor) -> Tensor:
        """Apply the residual block."""
        return bags if self.matrix is None else normalize(bags + relu(self.matrix(bags)))


def _sums(weights: Tensor, columns: Tensor, offsets: Tensor, values: Tensor) -> Tensor:
    return embedding_bag(
        columns, weights, offsets, mode="sum", per_sample_weights=values, include_last_offset=True
    )


class _RowSums(torch.autograd.Function):
    """PyTorch's weighted sums of rows; its gradient as a sparse product, in a third of the time."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, columns: Tensor, offsets: Tensor, values: Tensor) -> Any:
        ctx.save_for_backward(columns, offsets, values)
        ctx.shape = weights.shape
        return _sums(weights, columns, offsets, values)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        columns, offsets, values = (tensor.numpy() for tensor in ctx.saved_tensors)
        touched, places = np.unique(columns, return_inverse=True)
        shape = (len(offsets) - 1, len(touched))
        rows = csr_matrix((values, places, offsets), shape=shape)
        moved = rows.T.tocsr() @ gradients[0].contiguous().numpy()  # (touched, dim)
        gradient = torch.sparse_coo_tensor(
            torch.from_numpy(touched)[None],
            torch.from_numpy(moved),
            ctx.shape,
            check_invariants=False,
            is_coalesced=True,
        )
        return gradient, None, None, None
