"""What a batch of samples should be given: its labels, as tensors."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from umpteen.errors import LabelsError


@dataclass(frozen=True, eq=False)
class Targets:
    """The labels of a batch: those of sample i are `labels[offsets[i]:offsets[i + 1]]`, sorted.

    One class per sample is the case in which every sample has one label.

    >>> targets = Targets.of(csr_matrix([[0, 1, 1], [1, 0, 0]]))
    >>> targets.rows, targets.labels
    (tensor([0, 0, 1]), tensor([1, 2, 0]))
    """

    offsets: Tensor  # (n + 1,), int64
    labels: Tensor  # (pairs,), int64

    @classmethod
    def of(cls, Y: csr_matrix, device: torch.device | None = None) -> Self:
        """Make them from a sparse indicator with sorted indices, `(n, n_labels)`."""
        offsets = torch.from_numpy(Y.indptr.astype(np.int64))
        labels = torch.from_numpy(Y.indices.astype(np.int64))
        return cls(offsets.to(device), labels.to(device))

    @classmethod
    def of_classes(cls, classes: Tensor) -> Self:
        """Make them from one class per sample, `(n,)`."""
        return cls(torch.arange(len(classes) + 1, device=classes.device), classes)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Tensor:
        """Return the number of labels of each sample, `(n,)`."""
        return self.offsets.diff()

    @property
    def rows(self) -> Tensor:
        """Return the sample of each pair, `(pairs,)`."""
        return torch.repeat_interleave(
            torch.arange(len(self), device=self.labels.device), self.counts
        )

    @property
    def classes(self) -> Tensor:
        """Return the one class of each sample, `(n,)`, for losses that need exactly one."""
        if len(self.labels) != len(self) or bool((self.counts != 1).any()):
            raise LabelsError(
                "this loss needs exactly one class per sample, but the batch has "
                f"{len(self.labels):,} labels on {len(self):,} samples: choose a loss for several "
                "labels, or fit on a 1-D array of classes"
            )
        return self.labels
