"""Modules III and IV: every label learns a classifier of its own.

With cosines, as in the paper, w_l = N(E(z_l) + eta_l) and the score is <E(x), w_l>: the label
learns how far it is from its text. With logistic scores, s (<E(x), w_l> + b_l), w_l is free and
begins at the text; its length and the bias can say that a label is frequent, which no cosine can.
In Module III the vectors of features stay as they are, in Module IV they move as well.
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

from umpteen.neural import SparseRows
from umpteen.siamese.encoder import Encoder
from umpteen.siamese.loss import Likelihood, LogisticLoss, PairLoss
from umpteen.siamese.tower import SCALE

_MOST_POSITIVES = 20  # of a sample in one batch

Ids = npt.NDArray[np.int64]
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SampleBatch:
    """Samples, and the labels to compare them with, as places in `labels`.

    A weight is the number of pairs that one stands for; 0 is a pair that is not compared.
    """

    samples: Ids  # (n,)
    labels: Ids  # (m,) each once
    own: Tensor  # (n, most positives) places of relevant labels
    own_weights: Tensor
    hard: Tensor  # (n, hard negatives)
    hard_weights: Tensor
    drawn: Tensor  # (r,) random negatives that all samples share
    drawn_weights: Tensor  # (n, r)


@dataclass(frozen=True, eq=False)
class Starts:
    """Where Module III begins: eta_l and no biases, or w_l and b_l of logistic scores.

    The initial bias is the log-odds of the label's frequency: a label of which a sample tells
    nothing has the probability of its share of all samples.
    """

    vectors: Tensor  # (n_labels, dim)
    biases: Tensor | None  # (n_labels, 1)


class Refiner(nn.Module):
    """The encoder and a vector of each label, in Module III or IV.

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
        starts: Starts,
        likelihood: PairLoss,
        rows: tuple[csr_matrix, csr_matrix] | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        encoder.table.weight.requires_grad_(rows is not None)
        self.vectors = nn.Embedding.from_pretrained(starts.vectors, freeze=False, sparse=True)
        self.biases: nn.Embedding | None = None
        self.likelihood: Likelihood = likelihood
        if starts.biases is not None:
            self.biases = nn.Embedding.from_pretrained(starts.biases, freeze=False, sparse=True)
            self.likelihood = LogisticLoss()
        self.rows = rows
        self.register_buffer("sample_bags", sample_bags, persistent=False)
        self.register_buffer("label_bags", label_bags, persistent=False)

    def loss(self, batch: SampleBatch, _: Any = None) -> Tensor:
        """Return the mean over samples of the loss of relevant labels and negatives, by weight."""
        samples = self.encoder.lift(self._bags(0, batch.samples))  # (n, dim)
        vectors, biases = self.classifiers(batch.labels)
        near = torch.cat([batch.own, batch.hard], dim=1)  # (n, width)
        scores = torch.einsum("nd,nwd->nw", samples, vectors[near]) + biases[near]
        own, hard = scores.split([batch.own.shape[1], batch.hard.shape[1]], dim=1)
        drawn = samples @ vectors[batch.drawn].T + biases[batch.drawn]  # (n, r)
        total = (self.likelihood.of_positives(own) * batch.own_weights).sum()
        total = total + (self.likelihood.of_negatives(hard) * batch.hard_weights).sum()
        total = total + (self.likelihood.of_negatives(drawn) * batch.drawn_weights).sum()
        return total / len(samples)

    def classifiers(self, labels: Ids) -> tuple[Tensor, Tensor]:
        """Return w (n, dim) and b (n,) of some labels; scores are <E(x), w> + b."""
        ids = torch.from_numpy(labels).to(self.label_bags.device)
        vectors = self.vectors(ids)
        if self.biases is not None:
            return SCALE * vectors, SCALE * self.biases(ids)[:, 0]
        texts = self.encoder.lift(self._bags(1, labels))
        return normalize(texts + vectors), torch.zeros(len(labels), device=texts.device)

    def learned(self) -> Starts:
        """Return the vectors and biases as they are now."""
        biases = None if self.biases is None else self.biases.weight.detach()
        return Starts(self.vectors.weight.detach(), biases)

    def _bags(self, of_labels: int, ids: Ids) -> Tensor:
        fixed = self.label_bags if of_labels else self.sample_bags
        if self.rows is None:
            return fixed[torch.from_numpy(ids).to(fixed.device)]
        return self.encoder.bags(SparseRows.of(self.rows[of_labels][ids], fixed.device))


class SampleBatches:
    """Batches of samples for the trainer, with their labels, hard negatives and random ones.

    Random negatives are drawn once for all samples of a batch, each label by itself with its own
    chance, so that none is drawn twice. If `corrected`, a pair weighs 1 / chance: then the
    expected loss is that of all labels. A label that is relevant to a sample or among its hard
    negatives, which are compared anyway, is not its random negative.
    """

    def __init__(
        self, Y: csr_matrix, hard: IntArray, *, n_random: int, corrected: bool, device: torch.device
    ) -> None:
        self.labelled = np.flatnonzero(np.diff(Y.indptr))
        self.Y, self.hard, self.device = Y, hard, device
        self.seen = np.unique(Y.indices)
        counts = Y.getnnz(axis=0)[self.seen]
        shares = np.sqrt(counts) if corrected else np.ones(len(counts))
        self.chances = np.minimum(1, n_random * shares / max(1.0, shares.sum()))
        self.corrected = corrected

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
        own, hard = self._own(samples, random), self.hard[samples]
        places = np.flatnonzero(random.random(len(self.seen)) < self.chances)
        shared = self.seen[places]
        filled = (np.where(table >= 0, table, self.seen[0]) for table in (own, hard))
        tables = [*filled, shared]
        labels = np.unique(np.concatenate([table.ravel() for table in tables]))
        own_place, hard_place, drawn_place = (np.searchsorted(labels, table) for table in tables)
        n_own = np.diff(self.Y.indptr)[samples][:, None] if self.corrected else 1
        own_weights = np.maximum(1, n_own / max(1, own.shape[1])) * (own >= 0)
        return SampleBatch(
            samples, labels.astype(np.int64),
            self._tensor(own_place), self._numbers(own_weights),
            self._tensor(hard_place), self._numbers(hard >= 0),
            self._tensor(drawn_place), self._numbers(self._weights(samples, hard, places)),
        ), None  # fmt: skip

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

    def _weights(self, samples: Ids, hard: IntArray, places: Ids) -> npt.NDArray[np.float64]:
        """(samples, random negatives): 1 / chance, or 1; 0 where a label is compared anyway."""
        shared = self.seen[places]
        each = 1 / self.chances[places] if self.corrected else np.ones(len(places))
        weights = np.tile(each, (len(samples), 1))
        weights[self.Y[samples][:, shared].toarray() != 0] = 0
        rows, columns = np.nonzero(np.isin(hard, shared))
        weights[rows, np.searchsorted(shared, hard[rows, columns])] = 0
        return weights

    def _numbers(self, array: npt.NDArray[Any]) -> Tensor:
        return self._tensor(array.astype(np.float32))

    def _tensor(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
