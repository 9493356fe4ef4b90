"""Head: the contract of every last layer, and the checks that all of them share."""

from abc import ABC, abstractmethod
from itertools import chain
from numbers import Real
from typing import Any, Self

import torch
from torch import Tensor, nn

from umpteen.errors import FeaturesError, ParameterError
from umpteen.neural.labels import as_targets, asked_labels, check_ignored, check_place
from umpteen.neural.targets import Targets
from umpteen.validation import check_k

_REDUCTIONS = ("mean", "sum", "none")
_OTHER_WIDTH = "give the encoder that many outputs"
_LARGEST = 1e30  # of features: float32 ends at 3e38, and sums of products need room


class Head(nn.Module, ABC):
    """The last layer of a network and its loss: `head(features, labels)` is what to minimise.

    It takes the place of `torch.nn.Linear` and `torch.nn.CrossEntropyLoss` in any training loop:

        loss = head(encoder(batch), labels)
        best, scores = head.topk(encoder(batch), k=5)

    A head is made for `in_features` features and `n_labels` labels, numbered from 0. Everything
    that its answers depend on is in its `state_dict`; a state of a different head raises an error.

    A subclass implements `losses` and `best_of`, both for features `(n, in_features)`. It must not
    keep anything of size samples x labels: `best_of` goes through all labels by blocks.
    """

    in_features: int
    n_labels: int
    predicts_sets: bool = False  # has `best_set`, the likeliest set of labels
    has_noise: bool = False  # has `fit_noise`, for the negatives that it draws
    loss_name: str = ""  # label smoothing is possible where it is "softmax"

    @abstractmethod
    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        """Return the loss of each sample, `(n,)`, whose mean is to be minimised."""

    @abstractmethod
    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the `k` best labels and their scores, `(n, k)`; `k` is at most `n_labels`."""

    def forward(
        self,
        features: Tensor,
        labels: Any,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Tensor:
        """Return the loss of features `(..., in_features)`, such as `(batch, tokens, features)`.

        The keywords are those of `torch.nn.functional.cross_entropy`. If no sample counts, the
        mean is 0.

        Parameters
        ----------
        labels : one class id per sample, `(...)`; or several ids, `(..., m)`, padded with
            `ignore_index`; or an indicator `(..., n_labels)`, boolean or float, or sparse, of
            PyTorch or SciPy, `(n, n_labels)`; or `Targets`.
        ignore_index : samples of this class do not count. Among several ids it is padding: a
            sample with no other id has no labels.
        label_smoothing : share of the target that is spread over all classes (over those that a
            step compares), for `loss="softmax"`.
        reduction : "mean" or "sum" over the samples, or "none".
        """
        rows, targets, sizes = self._batch(
            features, labels, ignore_index, label_smoothing, reduction
        )
        losses = self.losses(rows, targets, label_smoothing) if len(rows) else rows.sum(1)
        if targets.counted is not None:
            losses = losses.where(targets.counted, 0.0)
        if reduction == "none":
            return self._own(losses, sizes).view(features.shape[:-1])
        return reduced(losses, targets, reduction)

    @torch.no_grad()
    def topk(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the `k` best labels and their scores, both of shape `(..., min(k, n_labels))`.

        As in `umpteen.TopK`: best first, ties to the lowest id; unused places hold label -1 with
        score -inf.
        """
        rows, k = self._rows(features), min(check_k(k), self.n_labels)
        labels, scores = self.best_of(rows, k)
        return _possible(labels, scores, (*features.shape[:-1], k))

    @torch.no_grad()
    def topk_log_proba(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return what `topk` returns, with logarithms of probabilities as scores.

        They mean the same for all heads. If each sample has one class, these are the probabilities
        of classes, which add up to 1. With several labels, it is the probability that the sample
        has the label. With `loss="pick_all_labels"`, labels share a probability of 1.
        """
        rows, k = self._rows(features), min(check_k(k), self.n_labels)
        labels, scores = self.best_log_proba_of(rows, k)
        return _possible(labels, scores, (*features.shape[:-1], k))

    @torch.no_grad()
    def log_proba(self, features: Tensor, labels: Any) -> Tensor:
        """Return the log-probabilities of given labels, in their shape; see `topk_log_proba`.

        For features `(..., in_features)`, `labels` are ids: one for each sample, `(...)`, or
        several, `(..., m)`.
        """
        rows = self._rows(features)
        asked = asked_labels(labels, features.shape[:-1], self.n_labels, features.device)
        width = 1 if asked.shape == features.shape[:-1] else asked.shape[-1]
        found = self.log_proba_of(rows, asked.reshape(len(rows), width))
        return checked_scores(found).view(asked.shape)

    def best_log_proba_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the `k` best labels and their log-probabilities; here, these are the scores."""
        return self.best_of(features, k)

    def log_proba_of(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the log-probabilities of labels, `(n, m)`; here by sorting all labels."""
        found, scores = self.best_log_proba_of(features, self.n_labels)
        table = scores.new_full((len(scores), self.n_labels + 1), -torch.inf)
        columns = found.where(
            found >= 0, self.n_labels
        )  # unused places go to a column of their own
        return table.scatter(1, columns, scores).gather(1, labels)

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set biases so that each label's initial probability is its frequency; return the head.

        `counts` has the number of training samples of each label, `(n_labels,)`. `n_samples` is
        the number of samples, by default the sum of `counts`: one class per sample. Otherwise a
        head first has to learn how rare most labels are. A head without biases does not change.

        Heads that compare several labels by a softmax give each its share of all labels. A product
        begins with the frequencies of digits. A softmax over shared groups of `SamplingHead` and a
        squared error of `EtfHead` begin with labels that are all alike.
        """
        return self

    def shard(self) -> "Head":
        """Return the head with its labels divided among the ranks of `torch.distributed`.

        All ranks call it, before they make an optimizer. Each then holds the rows of some labels,
        and the weights are those of rank 0; `umpteen.neural.ShardedHead` has the rest. The head
        itself is used up. In a process alone, nothing changes.
        """
        from umpteen.neural.ranks import Ranks
        from umpteen.neural.sharded import ShardedHead

        return ShardedHead(self) if Ranks.here().are_many else self

    def unshard(self) -> "Head":
        """Return a plain head with all labels; all ranks call it. This one is plain already."""
        return self

    @property
    def n_parameters(self) -> int:
        """Return the number of trainable parameters."""
        return sum(each.numel() for each in self.parameters() if each.requires_grad)

    def _batch(
        self, features: Tensor, labels: Any, ignore_index: int, smoothing: float, reduction: str
    ) -> tuple[Tensor, Targets, list[int]]:
        """Return what `losses` takes, and how many of these samples each process gave."""
        rows, targets = self._checked(features, labels, ignore_index, smoothing, reduction)
        return rows, targets, [len(rows)]

    def _own(self, losses: Tensor, sizes: list[int]) -> Tensor:
        """The losses of this process's own samples."""
        return losses

    def _checked(
        self, features: Tensor, labels: Any, ignore_index: int, smoothing: float, reduction: str
    ) -> tuple[Tensor, Targets]:
        """The arguments of `forward` as features `(n, in_features)` and their targets."""
        if reduction not in _REDUCTIONS:
            raise ParameterError(f"reduction={reduction!r} is not possible: use {_REDUCTIONS}")
        self._check_smoothing(smoothing)
        check_ignored(ignore_index)
        rows = self._rows(features, training=True)
        leading = features.shape[:-1]
        return rows, as_targets(labels, leading, self.n_labels, ignore_index, features.device)

    def _rows(self, features: Tensor, *, training: bool = False) -> Tensor:
        """Features of any leading shape as `(n, in_features)`."""
        if not isinstance(features, Tensor):
            raise FeaturesError(
                f"features are a {type(features).__name__}; expected a tensor of PyTorch: "
                "torch.as_tensor(features)"
            )
        if features.dim() < 2 or features.shape[-1] != self.in_features:
            fits = tuple(features.shape) == (self.in_features,)
            raise FeaturesError(
                f"features have shape {tuple(features.shape)}; this head was made for "
                f"(n, {self.in_features}): "
                + ("pass one sample as features[None]" if fits else _OTHER_WIDTH)
            )
        self._check_type(features)
        self._check_finite(features, training)
        return features.reshape(-1, self.in_features)

    def _check_type(self, features: Tensor) -> None:
        """Refuse what the weights cannot be multiplied by."""
        if features.layout != torch.strided:
            raise FeaturesError("features are a sparse tensor: pass features.to_dense()")
        own = chain(self.parameters(), self.buffers())  # a fixed layer has no parameters
        weight = next((each for each in own if each.is_floating_point()), features)
        check_place(features, weight.device, "features", FeaturesError)
        weights = weight.dtype
        cast = torch.is_autocast_enabled(features.device.type) and torch.float64 not in (
            features.dtype, weights,
        )  # fmt: skip
        if not features.is_floating_point() or (features.dtype != weights and not cast):
            raise FeaturesError(
                f"features are {features.dtype}, but the weights of this head are {weights}: pass "
                f"features.to({weights}), or give the head the type of the features, head.to(...)"
            )

    def _check_finite(self, features: Tensor, training: bool) -> None:
        """Refuse NaN and what overflows, but not in a graph that is being compiled.

        In training with float16, infinite features are expected now and then: a gradient scaler
        leaves out such steps.
        """
        if torch.compiler.is_compiling() or (training and features.dtype == torch.float16):
            return
        if features.numel() and not float(features.detach().abs().amax()) <= _LARGEST:
            raise FeaturesError(
                f"features have values that are NaN or infinite, or beyond {_LARGEST:g}: look at "
                "the encoder's inputs, or use a lower learning rate"
            )

    def _check_smoothing(self, smoothing: float) -> None:
        if not isinstance(smoothing, Real) or not 0 <= smoothing < 1:
            raise ParameterError(
                f"label_smoothing={smoothing!r} is not possible: expected 0 or more, less than 1"
            )
        if smoothing and self.loss_name != "softmax":
            raise ParameterError(
                f'label_smoothing={smoothing!r} needs loss="softmax", but this '
                f"{type(self).__name__} has the loss {self.loss_name!r}: leave it out"
            )


def reduced(losses: Tensor, targets: Targets, reduction: str) -> Tensor:
    """Return the sum or the mean of the losses of the samples that count."""
    if reduction == "sum":
        return losses.sum()
    if targets.counted is None:
        return losses.sum() / max(1, len(losses))
    return losses.sum() / targets.counted.sum().clamp(min=1)


def _possible(labels: Tensor, scores: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return answers in this shape, with label -1 wherever the score is -inf."""
    scores = checked_scores(scores)
    return labels.where(scores > -torch.inf, -1).view(shape), scores.view(shape)


def checked_scores(scores: Tensor) -> Tensor:
    """Return scores; refuse those that are NaN or overflow, which do not order labels."""
    if not torch.compiler.is_compiling() and not bool((scores < torch.inf).all()):
        raise FeaturesError(
            f"scores overflow, as features or weights are too large for {scores.dtype}: scale the "
            "encoder's outputs, look for weights that are not finite, or use float32 if they are "
            "in half precision"
        )
    return scores


def softmax_or_bce(single_label: bool) -> str:
    """Return the name of the loss that suits one class per sample, or several labels."""
    return "softmax" if single_label else "bce"
