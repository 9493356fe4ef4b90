"""What training makes small: losses of bags, given the logits of their instances."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

from umpteen.aggregated.miml.network import bag_logits


@dataclass(frozen=True)
class Target:
    """The labels of bags, an entry for each label of a bag."""

    bags: Tensor  # (entries,)
    labels: Tensor  # (entries,)
    counts: Tensor  # (entries,) how often the label is in the bag

    @classmethod
    def of(cls, counts: csr_matrix, device: torch.device) -> "Target":
        """Make it from a table of counts (bags, labels)."""
        bags = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        arrays = (bags, counts.indices.astype(np.int64), counts.data.astype(np.float32))
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def per_bag(self, losses: Tensor, n_bags: int) -> Tensor:
        """Return the mean over bags of the count-weighted mean of a bag's entries."""
        totals = torch.zeros(n_bags, device=losses.device).index_add(0, self.bags, self.counts)
        return (losses * self.counts / totals[self.bags]).sum() / n_bags


def of_list(logits: Tensor, mask: Tensor | None, sizes: Tensor, target: Target) -> Tensor:
    """Return the cross-entropy of labels that are drawn from the softmax of their bag's logits."""
    pooled = log_softmax(bag_logits(logits, mask, sizes), dim=1)
    return target.per_bag(-pooled[target.bags, target.labels], len(sizes))


def of_assigned(logits: Tensor, mask: Tensor | None, sizes: Tensor, target: Target) -> Tensor:
    """Return the cross-entropy of the instances that the labels of their bag fall on.

    A label that is c times in a bag falls on the c instances with its largest masked logits, the
    first of which is where the bag's own logit comes from; there its unmasked logit competes with
    those of the other labels, as it will in prediction.
    """
    masked = (logits if mask is None else logits * mask).detach()
    rows, entries = assigned(masked.cpu().numpy(), sizes.cpu().numpy(), target)
    log_probabilities = log_softmax(logits, dim=1)[rows, target.labels[entries]]
    bags, n_bags = target.bags[entries], len(sizes)
    totals = torch.bincount(bags, minlength=n_bags)
    return -(log_probabilities / totals[bags]).sum() / n_bags


def of_sigmoid(logits: Tensor, mask: Tensor | None, sizes: Tensor, target: Target) -> Tensor:
    """Return the binary cross-entropy of the presence of each label in each bag.

    Logits are never negative, so they are compared with the logarithm of the number of labels: a
    label whose logit is 0 has about the probability 1 / labels. Counts are not used.
    """
    pooled = bag_logits(logits, mask, sizes)
    present = torch.zeros_like(pooled)
    present[target.bags, target.labels] = 1
    margins = pooled - math.log(pooled.shape[1])
    return binary_cross_entropy_with_logits(margins, present, reduction="sum") / len(sizes)


def assigned(
    masked: npt.NDArray[np.float32], sizes: npt.NDArray[np.int64], target: Target
) -> tuple[Tensor, Tensor]:
    """Return for each entry of `target` its best instances: pairs of row and entry.

    As many as the label is in the bag, at most all of it; equal logits go to the first row.
    """
    bags, labels = target.bags.cpu().numpy(), target.labels.cpu().numpy()
    of_entry = sizes[bags]  # candidates of each entry
    entries = np.repeat(np.arange(len(bags)), of_entry)
    place = np.arange(len(entries)) - np.repeat(np.cumsum(of_entry) - of_entry, of_entry)
    rows = (np.cumsum(sizes) - sizes)[bags[entries]] + place
    best_first = np.lexsort((-masked[rows, labels[entries]], entries))
    chosen = best_first[place < target.counts.cpu().numpy()[entries]]
    device = target.bags.device
    return torch.from_numpy(rows[chosen]).to(device), torch.from_numpy(entries[chosen]).to(device)


Loss = Callable[[Tensor, Tensor | None, Tensor, Target], Tensor]
LOSSES: dict[str, Loss] = {"list": of_list, "assigned": of_assigned, "sigmoid": of_sigmoid}
