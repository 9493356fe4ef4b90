"""From rows of `X` to batches on the device, scaled so that networks learn well from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.sparse import csr_matrix
from torch import Tensor

from umpteen.errors import FeaturesError, ParameterError
from umpteen.storage import OneOf, Shape, Sizes, storable
from umpteen.validation import Features, as_csr, unit_rows

_CHUNK = 2**20  # numbers of float64 held at a time
_UNSCALED = ("sparse", "tokens")
_FAR = 100.0  # deviations: beyond, a value of prediction would swamp all others


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Samples with few entries: those of i are `columns[offsets[i]:offsets[i + 1]]`."""

    offsets: Tensor  # (n + 1,), int64
    columns: Tensor  # (entries,), int64
    values: Tensor  # (entries,), float32

    @classmethod
    def of(cls, X: csr_matrix, device: torch.device | None = None) -> Self:
        """Make them from a CSR matrix."""
        arrays = X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(np.float32)
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def __len__(self) -> int:
        return len(self.offsets) - 1


@storable
@dataclass(frozen=True, eq=False)
class Inputs:
    """How rows become a batch.

    Sparse ones are brought to length 1, dense ones have each feature centered and brought to a
    deviation of 1, images each channel. Tokens are ids plus one. `center` and `scale` are empty for
    sparse ones and tokens.
    """

    kind: Annotated[str, OneOf("sparse", "dense", "images", "tokens")]
    center: Annotated[npt.NDArray[np.float64], Shape("scaled")]
    scale: Annotated[npt.NDArray[np.float64], Shape("scaled")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a scale for other features."""
        expected = 0 if self.kind in _UNSCALED else sizes.get("features", len(self.scale))
        if len(self.scale) != expected:
            yield f"has scales of {len(self.scale)} features, expected {expected}"

    @classmethod
    def learn(cls, X: Features, kind: str, n_channels: int | None = None) -> Self:
        """Learn the scales for an encoder of this `kind`; a channel is neighbouring features."""
        if kind == "tokens":
            _check_tokens(X.data if sparse.issparse(X) else X)
        if kind in _UNSCALED:
            return cls(kind, np.zeros(0), np.zeros(0))
        if kind not in ("dense", "images"):
            raise ParameterError(f"encoder: rows of numbers cannot become a batch of {kind}")
        groups = X.shape[1] if n_channels is None else n_channels
        center = _mean_of(_grouped(chunk, groups) for chunk in _chunks(X))
        spread = _mean_of((_grouped(chunk, groups) - center) ** 2 for chunk in _chunks(X))
        deviation = np.sqrt(spread)
        repeats = X.shape[1] // groups
        scale = np.where(deviation > 0, deviation, 1.0)
        return cls(kind, np.repeat(center.ravel(), repeats), np.repeat(scale.ravel(), repeats))

    def batch(self, rows: Features, device: torch.device) -> Any:
        """Return `SparseRows`, or a tensor `(n, n_features)`; of tokens, as many as are used."""
        if self.kind == "sparse":
            return SparseRows.of(_without_zeros(unit_rows(as_csr(rows))), device)
        if self.kind == "tokens":
            return _tokens(_dense(rows)).to(device)
        scaled = (_dense(rows) - self.center) / self.scale
        scaled = np.clip(scaled, -_FAR, _FAR).astype(np.float32)
        return torch.from_numpy(scaled).to(device)


def _check_tokens(values: npt.NDArray[Any]) -> None:
    if ((values < 0) | (values != np.floor(values))).any():
        raise FeaturesError(
            "this encoder takes token ids, but X has other numbers: use "
            "X = umpteen.text.Tokens('folder/of/the/model').fit_transform(texts)"
        )


def _tokens(rows: npt.NDArray[Any]) -> Tensor:
    """Token ids plus one, without the columns after the last token of the longest text."""
    _check_tokens(rows)
    used = np.flatnonzero(rows.any(axis=0))
    length = int(used[-1]) + 1 if len(used) else 1
    return torch.from_numpy(rows[:, :length].astype(np.int64))


def _without_zeros(X: Any) -> csr_matrix:
    """Entries of 0 would still count as touched for sparse Adam."""
    if X.data.all():
        return X  # type: ignore[no-any-return]
    X = X.copy()
    X.eliminate_zeros()
    return X  # type: ignore[no-any-return]


def _chunks(X: Features) -> Iterator[npt.NDArray[np.float64]]:
    size = max(1, _CHUNK // X.shape[1])
    for first in range(0, X.shape[0], size):
        yield _dense(X[first : first + size]).astype(np.float64)


def _grouped(chunk: npt.NDArray[np.float64], groups: int) -> npt.NDArray[np.float64]:
    return chunk.reshape(len(chunk), groups, -1)


def _mean_of(chunks: Iterator[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Mean over samples and members of a group, (groups, 1)."""
    total: Any = 0.0
    count = 0
    for chunk in chunks:
        total = total + chunk.sum(axis=(0, 2))
        count += chunk.shape[0] * chunk.shape[2]
    return np.asarray(total / count)[:, None]


def _dense(rows: Features) -> npt.NDArray[Any]:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
