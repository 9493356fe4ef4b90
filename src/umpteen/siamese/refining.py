"""Modules III and IV: every label learns how far its classifier is from its text.

w_l = N(E(z_l) + eta_l). With eta_l = 0, a label's score is what Module I made of its text; from
there training only moves on. In Module III the vectors of features stay as they are, in Module IV
they move as well.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn.functional import normalize

from umpteen.metrics.hits import found_in
from umpteen.neural import SparseRows
from umpteen.siamese.encoder import Encoder
from umpteen.siamese.loss import PairLoss

LOSS = PairLoss(c=0.75, d=3.0)
_MOST_POSITIVES = 20  # of a sample in one batch

Ids = npt.NDArray[np.int64]
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SampleBatch:
    """Samples, and for each the labels to compare it with, as places in `labels`."""

    samples: Ids  # (n,)
    labels: Ids  # (m,) each once
    places: Tensor  # (n, width)
    relevant: Tensor  # (n, width) bool
    negative: Tensor  # (n, width) bool; neither where there is no label


class Refiner(nn.Module):
    """The encoder and a shift of each label's vector, in Module III or IV.

    `sample_bags` and `label_bags` are f of all samples and labels; with `rows`, the features of
    both, f is computed anew and the vectors of features learn too.
    """

    sample_bags: Tensor
    label_bags: Tensor

    def __init__(
        self,
        encoder: Encoder,
        sample_bags: Tensor,
        label_bags: Tensor,
        shifts: Tensor,
        rows: tuple[csr_matrix, csr_matrix] | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        encoder.table.weight.requires_grad_(rows is not None)
        self.shifts = nn.Embedding.from_pretrained(shifts, freeze=False, sparse=True)
        self.rows = rows
        self.register_buffer("sample_bags", sample_bags, persistent=False)
        self.register_buffer("label_bags", label_bags, persistent=False)

    def loss(self, batch: SampleBatch, _: Any = None) -> Tensor:
        """Return the mean over samples of the loss of all relevant labels and the negatives."""
        samples = self.encoder.lift(self._bags(0, batch.samples))  # (n, dim)
        vectors = self.classifiers(batch.labels)[batch.places]  # (n, width, dim)
        cosines = torch.einsum("nd,nwd->nw", samples, vectors)
        positives = LOSS.of_positives(cosines) * batch.relevant
        negatives = LOSS.of_negatives(cosines) * batch.negative
        return (positives + negatives).sum() / len(samples)

    def classifiers(self, labels: Ids) -> Tensor:
        """Return w of some labels."""
        texts = self.encoder.lift(self._bags(1, labels))
        return normalize(texts + self.shifts(torch.from_numpy(labels).to(texts.device)))

    def _bags(self, of_labels: int, ids: Ids) -> Tensor:
        fixed = self.label_bags if of_labels else self.sample_bags
        if self.rows is None:
            return fixed[torch.from_numpy(ids).to(fixed.device)]
        return self.encoder.bags(SparseRows.of(self.rows[of_labels][ids], fixed.device))


class SampleBatches:
    """Batches of samples for the trainer, with their labels, hard negatives and random ones."""

    def __init__(
        self, Y: csr_matrix, hard: IntArray, *, n_random: int, device: torch.device
    ) -> None:
        self.labelled = np.flatnonzero(np.diff(Y.indptr))
        self.Y, self.hard = Y, hard
        self.seen = np.unique(Y.indices)
        self.n_random, self.device = n_random, device

    def __len__(self) -> int:
        return len(self.labelled)

    def n_batches(self, size: int) -> int:
        """Return the number of batches of an epoch."""
        return -(-len(self) // size)

    def batches(self, epoch: int, settings: Any) -> list[tuple[Ids, list[int]]]:
        """Return the samples of each batch, and the seed of what is drawn for them."""
        order = np.random.default_rng([settings.seed, epoch]).permutation(self.labelled)
        blocks = np.array_split(order, self.n_batches(settings.batch_size))
        return [(part, [settings.seed, epoch, number]) for number, part in enumerate(blocks)]

    def batch(self, drawn: tuple[Ids, list[int]]) -> tuple[SampleBatch, None]:
        """Return the labels that each sample of a batch is compared with."""
        samples, seed = drawn
        random = np.random.default_rng(seed)
        own = self._own(samples, random)
        others = self.seen[random.integers(len(self.seen), size=(len(samples), self.n_random))]
        others = np.where(found_in(self.Y[samples], others), -1, others)
        table = np.concatenate([own, self.hard[samples], others], axis=1)
        filled = np.where(table >= 0, table, table.max())  # where there is none, any will do
        labels, places = np.unique(filled, return_inverse=True)
        relevant = np.zeros(table.shape, bool)
        relevant[:, : own.shape[1]] = own >= 0
        return SampleBatch(
            samples,
            labels.astype(np.int64),
            self._tensor(places.reshape(table.shape)),
            self._tensor(relevant),
            self._tensor((table >= 0) & ~relevant),
        ), None

    def precision(self) -> AbstractContextManager[Any]:
        """Return a context of full precision."""
        return nullcontext()

    def _own(self, samples: Ids, random: np.random.Generator) -> IntArray:
        """Relevant labels; of very many, some that follow one another from a random one on."""
        counts = np.diff(self.Y.indptr)[samples][:, None]
        width = np.arange(min(_MOST_POSITIVES, int(counts.max())))
        first = (random.random(counts.shape) * counts).astype(np.int64)
        places = self.Y.indptr[samples][:, None] + (first + width) % counts
        return np.where(width < counts, self.Y.indices[places], -1)

    def _tensor(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
