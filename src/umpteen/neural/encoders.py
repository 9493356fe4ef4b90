"""Encoders: from a batch of samples to features, `(n, out_features)`.

`kind` says what a batch is: `"sparse"` for `SparseRows`, `"dense"` and `"images"` for a tensor
`(n, n_features)`.
"""

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import relu
from torch.nn.utils.parametrizations import spectral_norm

from umpteen.errors import ParameterError
from umpteen.neural.inputs import SparseRows


class Bag(nn.Module):
    """The weighted sum of the vectors of a sample's features, then ReLU (SiameseXML's encoder).

    It is for sparse rows, such as TF-IDF. With `residual`, SiameseXML's residual block follows;
    `linear` leaves out the ReLU. With `sparse`, only the vectors of a batch have gradients, which
    large vocabularies need.

    >>> bag = Bag(4, dim=2)
    >>> _ = bag.table.weight.data.copy_(torch.tensor([[1.0, 0], [0, 1], [5, 5], [-1, 1]]))
    >>> rows = SparseRows(torch.tensor([0, 2, 2]), torch.tensor([0, 3]), torch.tensor([0.5, 2.0]))
    >>> bag(rows).tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """

    kind: ClassVar[str] = "sparse"

    def __init__(
        self,
        n_features: int,
        dim: int = 256,
        *,
        residual: bool = False,
        dropout: float = 0.0,
        linear: bool = False,
        sparse: bool = True,
    ) -> None:
        super().__init__()
        self.out_features = dim
        self.table = nn.EmbeddingBag(
            n_features, dim, mode="sum", sparse=sparse, include_last_offset=True
        )
        nn.init.uniform_(self.table.weight, -0.1, 0.1)
        self.activation = nn.Identity() if linear else nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.residual = Residual(dim) if residual else nn.Identity()

    def forward(self, rows: SparseRows) -> Tensor:
        sums = self.table(rows.columns, rows.offsets, per_sample_weights=rows.values)
        features: Tensor = self.residual(self.dropout(self.activation(sums)))
        return features


class Residual(nn.Module):
    """x + Dropout(ReLU(radius * W x + bias)); W has spectral norm 1 and starts as the identity."""

    def __init__(self, dim: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.radius = nn.Parameter(torch.ones(()))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.matrix = nn.Linear(dim, dim, bias=False)
        nn.init.eye_(self.matrix.weight)
        spectral_norm(self.matrix)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        moved: Tensor = self.dropout(relu(self.radius * self.matrix(x) + self.bias))
        return x + moved


class MLP(nn.Module):
    """Layers of `hidden` outputs with ReLU, the last of `dim`, for dense rows.

    By default, `hidden` is `dim`. `linear` leaves out the last ReLU.

    >>> MLP(784, dim=64, n_layers=2)(torch.zeros(5, 784)).shape
    torch.Size([5, 64])
    """

    kind: ClassVar[str] = "dense"

    def __init__(
        self,
        n_features: int,
        dim: int = 256,
        *,
        n_layers: int = 1,
        hidden: int | None = None,
        dropout: float = 0.0,
        linear: bool = False,
    ) -> None:
        super().__init__()
        if n_layers < 1:
            raise ParameterError(f"n_layers={n_layers} is not possible: use 1 or more")
        self.out_features = dim
        sizes = [n_features] + [hidden or dim] * (n_layers - 1) + [dim]
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(dropout)]
        if linear:
            layers[-2] = nn.Identity()
        self.layers = nn.Sequential(*layers)

    def forward(self, rows: Tensor) -> Tensor:
        features: Tensor = self.layers(rows)
        return features


class Conv(nn.Module):
    """A small convolutional network for images `(n, channels, height, width)`, flat or not.

    Stages of 3x3 convolution, group norm, ReLU and pooling halve the image while it is at least
    14 wide: two for 28x28, three for 56x56. `width` channels in the first, twice as many in each
    later one; then, if `hidden` is given, a layer of `hidden` outputs with ReLU, and one of `dim`
    outputs, with ReLU or, if `linear`, without.

    >>> Conv((1, 56, 56), dim=32)(torch.zeros(2, 56 * 56)).shape
    torch.Size([2, 32])
    """

    kind: ClassVar[str] = "images"

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        dim: int = 128,
        *,
        width: int = 32,
        hidden: int | None = None,
        dropout: float = 0.0,
        linear: bool = False,
    ) -> None:
        super().__init__()
        if width % 8:
            raise ParameterError(f"width={width} is not possible: use a multiple of 8")
        self.image_shape, self.out_features = tuple(image_shape), dim
        channels, height, wide = self.image_shape
        stages: list[nn.Module] = []
        while not stages or min(height, wide) >= 14:
            stages += _stage(channels, width, pool=min(height, wide) >= 2)
            channels, width = width, 2 * width
            if min(height, wide) >= 2:
                height, wide = height // 2, wide // 2
        self.stages = nn.Sequential(*stages)
        n_maps = channels * height * wide
        if hidden is not None:
            self.stages.extend([nn.Flatten(), nn.Linear(n_maps, hidden), nn.ReLU()])
        self.last = nn.Linear(hidden or n_maps, dim)
        self.activation = nn.Identity() if linear else nn.ReLU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.stages(images.view(len(images), *self.image_shape))
        features: Tensor = self.dropout(self.activation(self.last(maps.flatten(1))))
        return features


def _stage(inputs: int, outputs: int, pool: bool) -> list[nn.Module]:
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.ReLU()
    ]  # fmt: skip
    return [*layers, nn.MaxPool2d(2)] if pool else layers
