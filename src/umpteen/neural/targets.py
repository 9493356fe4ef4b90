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

    One class per sample is the case in which every sample has one label; `one_each` says that this
    is known. Samples that are not `counted` do not count in a loss, whatever their labels are.

    >>> targets = Targets.of(csr_matrix([[0, 1, 1], [1, 0, 0]]))
    >>> targets.rows, targets.labels
    (tensor([0, 0, 1]), tensor([1, 2, 0]))
    """

    offsets: Tensor  # (n + 1,), int64
    labels: Tensor  # (pairs,), int64
    counted: Tensor | None = None  # (n,), bool; None: all of them
    one_each: bool = False

    @classmethod
    def of(cls, Y: csr_matrix, device: torch.device | None = None) -> Self:
        """Make them from a sparse indicator with sorted indices, `(n, n_labels)`."""
        offsets = torch.from_numpy(Y.indptr.astype(np.int64))
        labels = torch.from_numpy(Y.indices.astype(np.int64))
        return cls(offsets.to(device), labels.to(device))

    @classmethod
    def of_classes(cls, classes: Tensor, ignore_index: int | None = None) -> Self:
        """Make them from one class per sample, `(n,)`; samples of `ignore_index` do not count.

        These get the class of another sample, so that they bring none of their own into a step.
        """
        offsets = torch.arange(len(classes) + 1, device=classes.device)
        if ignore_index is None or not len(classes):
            return cls(offsets, classes, one_each=True)
        counted = classes != ignore_index
        classes = classes.where(counted, classes.where(counted, 0).max())
        return cls(offsets, classes, counted, one_each=True)

    @classmethod
    def of_padded(cls, labels: Tensor, ignore_index: int) -> Self:
        """Make them from rows of label ids, `(n, m)`, filled up with `ignore_index`.

        An id that stands twice in a row counts once.
        """
        labels = labels.sort(dim=1).values
        real = labels != ignore_index
        real[:, 1:] &= labels.diff(dim=1) != 0
        return cls(_offsets(real.sum(1)), labels[real])

    @classmethod
    def of_indicator(cls, relevant: Tensor) -> Self:
        """Make them from a dense indicator `(n, n_labels)`, not 0 where a label is relevant."""
        _, labels = relevant.nonzero(as_tuple=True)
        return cls(_offsets(relevant.count_nonzero(dim=1)), labels)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Tensor:
        """Return the number of labels of each sample, `(n,)`."""
        return self.offsets.diff()

    @property
    def rows(self) -> Tensor:
        """Return the sample of each pair, `(pairs,)`."""
        samples = torch.arange(len(self), device=self.labels.device)
        return samples if self.one_each else torch.repeat_interleave(samples, self.counts)

    @property
    def classes(self) -> Tensor:
        """Return the one class of each sample, `(n,)`, for losses that need exactly one."""
        if self.one_each:
            return self.labels
        if len(self.labels) != len(self) or bool((self.counts != 1).any()):
            raise LabelsError(
                "this loss needs exactly one class per sample, but the batch has "
                f'{len(self.labels):,} labels on {len(self):,} samples: use loss="bce" (FullHead, '
                "CascadeHead, SamplingHead), or give one class for each sample"
            )
        return self.labels


def _offsets(counts: Tensor) -> Tensor:
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))
