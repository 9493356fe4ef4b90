"""Module I: labels and samples that belong together get vectors that point the same way.

Batches are of labels, not of samples, each with one of its samples: a rare label is drawn almost
as often as a frequent one, and the samples of the other labels are its negatives.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix, vstack
from torch import Tensor, nn

from umpteen.metrics.hits import found_in
from umpteen.neural import SparseRows
from umpteen.search import LabelIndex
from umpteen.siamese.encoder import Encoder
from umpteen.siamese.loss import PairLoss, contrastive, softmax
from umpteen.siamese.shortlist import first_chosen

_TEMPERATURE = 0.05
_POOL = 16_384  # samples that are searched for hard negatives
_SPARE = 8  # candidates per label beyond those wanted, as some turn out relevant
_BLOCK = 2048

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelBatch:
    """Labels, each once, with one relevant sample and one that was mined (-1 for none)."""

    labels: Ids
    samples: Ids
    mined: Ids


class PairNetwork(nn.Module):
    """The encoder in Module I, with the hard negatives mined so far."""

    mined: Tensor  # (n_labels, n_mined) samples, -1 for none
    mined_in: Tensor  # the epoch in which that was

    def __init__(
        self, encoder: Encoder, n_labels: int, n_mined: int, *,
        kind: str, likelihood: PairLoss, n_hardest: int,
    ) -> None:  # fmt: skip
        super().__init__()
        self.encoder, self.kind = encoder, kind
        self.likelihood, self.n_hardest = likelihood, n_hardest
        self.register_buffer("mined", torch.full((n_labels, n_mined), -1))
        self.register_buffer("mined_in", torch.tensor(-1))

    def loss(self, rows: SparseRows, relevant: Tensor, owners: Tensor) -> Tensor:
        """Return the loss of n labels, their n samples and m mined ones; `relevant` is (n, n + m).

        `owners` (m,) are the places of the labels for which samples were mined. In the softmax,
        such a sample is a negative of the other labels as well.
        """
        n_labels = len(relevant)
        vectors = self.encoder(rows)
        cosines = vectors[:n_labels] @ vectors[n_labels:].T  # (n, n + m)
        if self.kind == "softmax":
            return softmax(cosines, ~relevant, _TEMPERATURE)
        mined = torch.full((n_labels,), torch.nan, device=cosines.device)
        columns = torch.arange(n_labels, cosines.shape[1], device=cosines.device)
        mined = mined.index_copy(0, owners, cosines[owners, columns])
        online, own = cosines[:, :n_labels], relevant[:, :n_labels]
        return contrastive(online, own, ~own, self.likelihood, self.n_hardest, mined)


class LabelBatches:
    """Batches of labels for the trainer: as many draws per epoch as there are labels or samples.

    A label is drawn in proportion to its number of samples to the power `power`. Every
    `mine_every` epochs, samples that are near a label without being relevant are looked up.
    """

    def __init__(
        self,
        X: csr_matrix,
        label_features: csr_matrix,
        Y: csr_matrix,
        network: PairNetwork,
        *,
        power: float,
        mine_every: int,
        device: torch.device,
        n_jobs: int | None,
    ) -> None:
        self.X, self.label_features, self.network = X, label_features, network
        self.samples_of = csr_matrix(Y.T)  # (labels, samples)
        self.counts = np.diff(self.samples_of.indptr)
        shares = self.counts / max(1, self.counts.max(initial=0))  # no power of these overflows
        weights = np.where(self.counts > 0, shares**power, 0.0)
        self.chances = weights / weights.sum()
        self.mine_every, self.device, self.n_jobs = mine_every, device, n_jobs

    def __len__(self) -> int:
        return max(int(np.count_nonzero(self.counts)), self.X.shape[0])

    def n_batches(self, size: int) -> int:
        """Return the number of batches of an epoch."""
        return -(-len(self) // size)

    def batches(self, epoch: int, settings: Any) -> list[LabelBatch]:
        """Return the batches of an epoch, which depend on the seed and what was mined alone."""
        random = np.random.default_rng([settings.seed, epoch])
        self._mine_if_due(epoch, random)
        labels = random.choice(len(self.chances), len(self), p=self.chances)
        blocks = np.array_split(labels, self.n_batches(settings.batch_size))
        return [self._draw(np.unique(block), random) for block in blocks]

    def batch(self, drawn: LabelBatch) -> tuple[SparseRows, Tensor, Tensor]:
        """Return what `PairNetwork.loss` takes: rows of labels, their samples and mined ones."""
        owners = np.flatnonzero(drawn.mined >= 0)
        samples = np.concatenate([drawn.samples, drawn.mined[owners]])
        rows = vstack([self.label_features[drawn.labels], self.X[samples]], format="csr")
        made = self._relevant(drawn.labels, samples), owners
        relevant, of = (torch.from_numpy(array).to(self.device) for array in made)
        return SparseRows.of(rows, self.device), relevant, of

    def precision(self) -> AbstractContextManager[Any]:
        """Return a context of full precision: small products gain nothing from half precision."""
        return nullcontext()

    def _draw(self, labels: Ids, random: np.random.Generator) -> LabelBatch:
        place = (random.random(len(labels)) * self.counts[labels]).astype(np.int64)
        samples = self.samples_of.indices[self.samples_of.indptr[labels] + place]
        n_mined = self.network.mined.shape[1]
        mined = np.full(len(labels), -1, np.int64)
        if n_mined and int(self.network.mined_in) >= 0:
            column = random.integers(n_mined, size=len(labels))
            mined = self.network.mined.cpu().numpy()[labels, column]
        return LabelBatch(labels, samples.astype(np.int64), mined)

    def _relevant(self, labels: Ids, samples: Ids) -> npt.NDArray[np.bool_]:
        """(labels, samples): a sample that is relevant to a label is never its negative."""
        kinds, places = np.unique(samples, return_inverse=True)
        return np.asarray(self.samples_of[labels][:, kinds].toarray() > 0)[:, places]

    def _mine_if_due(self, epoch: int, random: np.random.Generator) -> None:
        """An epoch that is continued finds what it mined in the checkpoint."""
        n_mined = self.network.mined.shape[1]
        due = epoch > 0 and epoch % self.mine_every == 0 and int(self.network.mined_in) != epoch
        pool = np.sort(random.permutation(self.X.shape[0])[:_POOL])
        if n_mined and due:
            index = LabelIndex(self._encode(self.X[pool]), method="exact", n_jobs=self.n_jobs)
            relevant = csr_matrix(self.samples_of[:, pool])
            blocks = [
                self._nearest(index, relevant, slice(first, first + _BLOCK), n_mined)
                for first in range(0, len(self.counts), _BLOCK)
            ]
            places = np.concatenate(blocks)
            self.network.mined = torch.from_numpy(np.where(places >= 0, pool[places], -1)).to(
                self.device
            )
            self.network.mined_in = torch.tensor(epoch, device=self.device)

    def _nearest(self, index: LabelIndex, relevant: csr_matrix, rows: slice, n: int) -> Ids:
        """Return places of the n nearest samples that are not relevant; -1 if there are fewer."""
        near = index.topk(self._encode(self.label_features[rows]), n + _SPARE)
        places = near.padded(n).labels
        wrong = (places >= 0) & ~found_in(relevant[rows], places)
        return first_chosen(places, wrong, n).astype(np.int64)

    def _encode(self, X: csr_matrix) -> npt.NDArray[np.float32]:
        encoder = self.network.encoder
        was_training = encoder.training
        encoder.eval()
        with torch.no_grad():
            blocks = [
                encoder(SparseRows.of(X[first : first + _BLOCK], self.device)).cpu().numpy()
                for first in range(0, X.shape[0], _BLOCK)
            ]
        encoder.train(was_training)
        return np.concatenate(blocks)
