"""The network on tensors: instances to label logits, pooled over bags.

One row per instance; the instances of a bag stand together, and `sizes` says how many each has.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from umpteen.neural.device import shared
from umpteen.validation import Features

Floats = npt.NDArray[np.float32]
Layers = Sequence[tuple[Tensor, Tensor]]  # weights (inputs, outputs) and biases (outputs,)


def instance_logits(x: Tensor, layers: Layers, n_concepts: int) -> Tensor:
    """Return logits, never negative: V2 of equation (7), (instances, labels)."""
    for weights, biases in layers[:-1]:
        x = _affine(x, weights, biases).relu()
    concepts = _affine(x, *layers[-1]).view(x.shape[0], n_concepts, -1)
    return concepts.amax(dim=1).relu()  # ReLU before or after the maximum is the same


def bag_logits(logits: Tensor, mask: Tensor | None, sizes: Tensor) -> Tensor:
    """Return the largest masked logit of each label in each bag, (bags, labels)."""
    masked = logits if mask is None else logits * mask
    return torch.segment_reduce(masked, "max", lengths=sizes, axis=0)


def as_tensor(X: Features, device: torch.device) -> Tensor:
    """Return the rows of `X` on the device; sparse ones stay sparse."""
    if not sparse.issparse(X):
        return torch.from_numpy(np.ascontiguousarray(X)).to(device)
    entries = X.tocoo()
    places = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    values = torch.from_numpy(entries.data.astype(np.float32))
    return torch.sparse_coo_tensor(
        places, values, X.shape, device=device, is_coalesced=True, check_invariants=False
    )


def draw_weights(
    n_inputs: int, widths: Sequence[int], scale: float, random: np.random.RandomState
) -> tuple[list[Floats], list[Floats]]:
    """Return initial weights and biases of such layers, uniform up to 1 / sqrt(inputs).

    The first layer's inputs are instances of length `scale`, mostly zeros if they are sparse.
    """
    weights: list[Floats] = []
    biases: list[Floats] = []
    for inputs, outputs in pairwise([n_inputs, *widths]):
        reach = inputs**-0.5 if weights else 1 / scale
        weights.append(random.uniform(-reach, reach, (inputs, outputs)).astype(np.float32))
        biases.append(random.uniform(-reach, reach, outputs).astype(np.float32))
    biases[-1] += 1  # a label whose logits are all below 0 would learn nothing
    return weights, biases


def as_layers(
    coefs: Sequence[Floats], intercepts: Sequence[Floats], device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """Return weights and biases as tensors of the device, without a copy if possible."""
    return [
        (shared(weights).to(device), shared(biases).to(device))
        for weights, biases in zip(coefs, intercepts, strict=True)
    ]


def _affine(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    if x.is_sparse:
        product: Tensor = torch.sparse.mm(x, weights)
        return product + biases
    return torch.addmm(biases, x, weights)
