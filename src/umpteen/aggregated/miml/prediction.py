"""Answers of a trained network, block by block."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix

from umpteen.aggregated.miml.mask import affinities, assignment_mask
from umpteen.aggregated.miml.network import (
    Layers,
    as_layers,
    as_tensor,
    bag_logits,
    instance_logits,
)
from umpteen.base import TopK
from umpteen.kernels.topk import dense_topk
from umpteen.neural.device import find_device, one_thread
from umpteen.validation import Features, unit_rows

if TYPE_CHECKING:
    from umpteen.aggregated.miml.classifier import CoAttentionMIML

_BLOCK_VALUES = 2**21  # of concepts, 8 MB per thread


@dataclass(frozen=True)
class BagScorer:
    """What prediction needs of a `CoAttentionMIML`, on its device."""

    layers: Layers
    n_concepts: int
    temperature: float
    labels: npt.NDArray[np.int32]
    embeddings: Features  # of these labels
    device: torch.device

    @classmethod
    def of(cls, model: "CoAttentionMIML") -> "BagScorer":
        """Return the weights of a fitted model as tensors."""
        device = find_device(model.device)
        n_concepts = model.intercepts_[-1].size // len(model.seen_labels_)
        layers = as_layers(model.coefs_, model.intercepts_, device)
        embeddings = model.label_embeddings_
        if len(model.seen_labels_) < model.n_labels_:
            embeddings = embeddings[model.seen_labels_]
        return cls(layers, n_concepts, model.temperature, model.seen_labels_, embeddings, device)

    def blocks(self, bags: csr_matrix) -> list[slice]:
        """Return ranges of bags with few enough instances; a bag is never divided."""
        rows = max(_BLOCK_VALUES // (self.n_concepts * len(self.labels)), 1)
        ends = np.searchsorted(bags.indptr, np.arange(rows, bags.nnz + rows, rows), side="left")
        cuts = np.unique(np.clip([0, *ends, bags.shape[0]], 0, bags.shape[0])).tolist()
        return [slice(*cut) for cut in pairwise(cuts)] or [slice(0, 0)]

    def topk(self, X: Features, bags: csr_matrix, k: int) -> TopK:
        """Return the answer for some bags."""
        filled = np.diff(bags.indptr) > 0
        labels = np.full((bags.shape[0], k), -1, np.int32)
        scores = np.full((bags.shape[0], k), -np.inf, np.float32)
        if filled.any():
            places, scores[filled] = dense_topk(self.probabilities(X, bags[filled]), k)
            labels[filled] = np.where(places >= 0, self.labels[places], -1)
        return TopK(labels, scores)

    def probabilities(self, X: Features, bags: csr_matrix) -> npt.NDArray[np.float32]:
        """Return the softmax over the labels seen in training, (bags, labels); no bag is empty."""
        units = unit_rows(X[bags.indices])
        sizes = np.diff(bags.indptr).astype(np.int64)
        mask = None
        if self.temperature and sizes.max() > 1:
            found = affinities(units, self.embeddings)
            mask = torch.from_numpy(assignment_mask(found, sizes, self.temperature))
            mask = mask.to(self.device)
        with one_thread(), torch.no_grad():
            logits = instance_logits(as_tensor(units, self.device), self.layers, self.n_concepts)
            pooled = bag_logits(logits, mask, torch.from_numpy(sizes).to(self.device))
            return pooled.softmax(dim=1).cpu().numpy()
