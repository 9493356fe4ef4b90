"""Losses of logits whose columns are split over ranks: no rank ever has those of all labels."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import softplus

from umpteen.neural.losses import precise
from umpteen.neural.ranks import Ranks
from umpteen.neural.targets import Targets


@dataclass(frozen=True, eq=False)
class SplitLogits:
    """This rank's columns of the logits of a batch; the functions are those of `losses`.

    Ranks exchange a few numbers for each sample: the highest logit, the sum of exponentials, and
    the logits of the relevant labels.
    """

    logits: Tensor  # (n, columns of this rank)
    rows: Tensor  # (pairs of this rank,): samples with a relevant label in these columns
    columns: Tensor  # (pairs of this rank,): which one
    n_columns: int  # of all ranks
    ranks: Ranks

    @classmethod
    def of_labels(
        cls, logits: Tensor, targets: Targets, n_labels: int, ranks: Ranks
    ) -> "SplitLogits":
        """Make them from the logits of all labels that the rank holds."""
        held = ranks.holds(targets.labels)
        columns = targets.labels[held] // ranks.world
        return cls(precise(logits), targets.rows[held], columns, n_labels, ranks)

    def softmax(self, smoothing: float = 0.0) -> Tensor:
        """Return the cross-entropy of the one class of each sample."""
        normalizers = self.ranks.logsumexp(self.logits)
        losses = normalizers - self._relevant()
        if smoothing:
            mean = self.ranks.total(self.logits.sum(1)) / self.n_columns
            losses = (1 - smoothing) * losses + smoothing * (normalizers - mean)
        return losses

    def pick_all_labels(self, counts: Tensor) -> Tensor:
        """Return the sum of the cross-entropies of the labels of each sample, of so many."""
        return counts * self.ranks.logsumexp(self.logits) - self._relevant()

    def bce(self) -> Tensor:
        """Return the binary cross-entropy, summed over the labels."""
        return self.ranks.total(softplus(self.logits).sum(1)) - self._relevant()

    def _relevant(self) -> Tensor:
        """The sum of the logits of each sample's relevant labels."""
        sums = self.logits.new_zeros(len(self.logits))
        return self.ranks.total(sums.index_add(0, self.rows, self.logits[self.rows, self.columns]))
