"""AdversarialHead: adversarial softmax as the last layer of a network that learns, too."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn.functional import pad, softplus

from umpteen.errors import ModelCorruptError, ParameterError
from umpteen.kernels.noise import alias_table
from umpteen.kernels.noise_tree import NoiseArrays
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.labels import as_targets
from umpteen.neural.logits import LogitHead, Scorer
from umpteen.neural.losses import precise
from umpteen.neural.ranks import Ranks
from umpteen.neural.settled import SettledHead
from umpteen.neural.sizes import check_room, check_sizes
from umpteen.neural.targets import Targets
from umpteen.neural.topk import best_columns
from umpteen.softmax.frequency_tree import frequency_tree
from umpteen.softmax.noise_operator import log_noise_table, noise_visits
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.softmax.tree_faults import tree_faults
from umpteen.validation import check_k, check_number

OBJECTIVES = ("sampled_softmax", "negative_sampling")
_SPREAD = 0.01
_FAR = 1e4  # as in the kernels: no training sample goes beyond
_BLOCK_SCORES = 2**22
_TREE = ("tree_weights", "tree_biases", "label_of", "leaf_of")
_FREQUENCY = ("log_frequencies", "limit", "alias")
_REDUCTION = ("components", "offset", "scale")


class AdversarialHead(SettledHead, LogitHead):
    """A vector per class, of which a step touches a few: hard negatives, drawn by a noise tree.

    For one class per sample. Each sample is compared with `n_negatives` classes that are drawn
    from a model of the data, `umpteen.softmax.NoiseTree`, in O(log(n_labels)). At first, classes
    are drawn by frequency (`init_bias`). `fit_noise(features, labels)` fits the tree to the
    encoder's current features; call it again as these change, such as after epochs 1, 2, 4 and 8,
    as `NeuralClassifier` does.

    `objective="sampled_softmax"` weights negatives by the inverse of their probability, so that
    scores are those of a softmax. With "negative_sampling", as in the paper, scores are relative
    to the noise, and `topk` adds the noise's log-probabilities of all labels (Eq. 5). `topk` goes
    through all labels and is exact.

    Parameters
    ----------
    frequency_share : share of negatives that are drawn by frequency, also with a fitted tree. It
        keeps the noise from being overconfident.
    noise_dim : number of principal components of the features that the tree sees.
    regularizer : penalty on the squares of corrected scores (Eq. 6).
    sparse : whether only rows in use get gradients, as a sparse tensor: for SGD, SparseAdam or
        `umpteen.neural.RowAdam`.

    >>> head = AdversarialHead(8, 1000)
    >>> head.n_parameters
    9000
    """

    has_noise = True
    tree_weights: Tensor
    tree_biases: Tensor
    label_of: Tensor
    leaf_of: Tensor
    log_frequencies: Tensor
    components: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(
        self,
        in_features: int,
        n_labels: int,
        *,
        objective: str = "sampled_softmax",
        n_negatives: int = 20,
        frequency_share: float = 0.3,
        noise_dim: int = 16,
        regularizer: float = 0.0,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        self.in_features, self.n_labels = check_sizes(in_features, n_labels)
        check_room(n_labels * in_features)
        if objective not in OBJECTIVES:
            raise ParameterError(
                f"objective={objective!r} is not possible: use one of {OBJECTIVES}"
            )
        if not 0 <= frequency_share < 1:
            raise ParameterError(
                f"frequency_share={frequency_share!r} is not possible: from 0 to below 1"
            )
        self.loss_name = objective
        self.n_negatives = check_k(n_negatives, "n_negatives")
        self.frequency_share = float(frequency_share)
        self.regularizer = check_number(regularizer, "regularizer")
        self.noise_dim = min(check_k(noise_dim, "noise_dim"), in_features)
        self.table = nn.Embedding(n_labels, in_features, sparse=sparse)
        nn.init.normal_(self.table.weight, std=_SPREAD)
        self.bias = nn.Embedding(n_labels, 1, sparse=sparse)
        nn.init.zeros_(self.bias.weight)
        for name in (*_TREE, *_FREQUENCY):
            self.register_buffer(name, None)
        self.register_buffer("components", torch.zeros(in_features, self.noise_dim))
        self.register_buffer("offset", torch.zeros(self.noise_dim))
        self.register_buffer("scale", torch.zeros(self.noise_dim))
        self._draw_by(np.full(n_labels, 1 / n_labels))

    def settings(self) -> dict[str, Any]:
        return {"n_labels": self.n_labels, "objective": self.loss_name,
                "frequency_share": self.frequency_share, "noise_dim": self.noise_dim}  # fmt: skip

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        labels, logs = self._visits(features, targets.classes)
        scores = precise(torch.bmm(self.table(labels), features.to(self.table.weight)[:, :, None]))
        return self._compared(scores[:, :, 0] + self.bias(labels)[:, :, 0], labels, logs)

    def losses_of_share(
        self, features: Tensor, targets: Targets, smoothing: float, ranks: Ranks
    ) -> Tensor:
        """Return what `losses` returns, if each rank has the rows of some labels.

        Rank 0 draws: others may round probabilities differently.
        """
        classes, shape = targets.classes, (len(features), 1 + self.n_negatives)
        if ranks.rank == 0:
            labels, logs = self._visits(features, classes)
        else:
            labels, logs = classes.new_empty(shape), self.scale.new_empty(shape)
        ranks.copy_first((labels, logs))

        def score(samples: Tensor, rows: Tensor) -> Tensor:
            products = self.table(rows)[:, 0] * features.to(self.table.weight)[samples]
            scores: Tensor = products.sum(1, keepdim=True) + self.bias(rows)[:, 0]
            return precise(scores)

        return self._compared(ranks.scores(labels, score), labels, logs)

    def _visits(self, features: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """The class of each sample and its negatives, and their log-probabilities."""
        seed = torch.randint(2**62, ())
        visits: tuple[Tensor, Tensor] = noise_visits(
            self._reduced(features), classes, seed, self._noise(), self.frequency_share,
            self.n_negatives,
        )  # fmt: skip
        return visits

    def _compared(self, scores: Tensor, labels: Tensor, logs: Tensor) -> Tensor:
        """The losses of samples by the scores of what they visit, `(n, 1 + n_negatives)`."""
        own, others = scores[:, 0], scores[:, 1:]
        if self.loss_name == "negative_sampling":
            losses, final = softplus(-own) + softplus(others).mean(1), scores + logs
        else:
            weighted = others - logs[:, 1:] - math.log(self.n_negatives)
            weighted = weighted.masked_fill(labels[:, 1:] == labels[:, :1], -torch.inf)
            both, final = torch.cat([own[:, None], weighted], dim=1), scores
            losses = both.logsumexp(1) - own
        if self.regularizer:
            squares = final.square()
            losses = losses + self.regularizer * (squares[:, 0] + squares[:, 1:].mean(1))
        return losses

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the frequencies that classes are drawn by at first; return the head itself."""
        frequencies = frequencies_of(counts, n_samples, self.n_labels)
        frequencies = frequencies / frequencies.sum()
        self._draw_by(frequencies.numpy())
        relative = self.loss_name == "negative_sampling"  # scores are relative to the noise
        set_bias(self.bias.weight, frequencies.log() * (not relative))
        return self

    def fit_noise(self, features: Tensor, labels: Any, **options: Any) -> Self:
        """Fit the noise tree to features of training samples; return the head itself.

        `labels` have the forms of `forward`; `options` are of `umpteen.softmax.NoiseTree`. Some
        tens of thousands of samples are enough. Frequencies stay those of `init_bias`.
        """
        if isinstance(features, Tensor):
            features = features.detach().to(self.table.weight.dtype)
        rows = self._rows(features).float()
        targets = as_targets(labels, features.shape[:-1], self.n_labels, -100, rows.device)
        counted = slice(None) if targets.counted is None else targets.counted.cpu().numpy()
        classes = targets.classes.cpu().numpy()[counted]
        given = csr_matrix(
            (np.ones(len(classes)), classes, np.arange(len(classes) + 1)),
            shape=(len(classes), self.n_labels),
        )
        tree = NoiseTree(**{"dim": self.noise_dim, "verbose": False, **options})
        self._take(tree.fit(rows.cpu().numpy()[counted], given))
        return self

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return self.best_of_share(features, k, Ranks())

    def best_of_share(self, features: Tensor, k: int, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """Return the best rows of this rank, and their scores."""
        if self.loss_name == "sampled_softmax":
            return super().best_of(features, k)
        return self._by_blocks(lambda rows: best_columns(self._corrected(rows, ranks), k), features)

    def best_log_proba_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if self.loss_name == "sampled_softmax":
            return super().best_log_proba_of(features, k)
        return self._by_blocks(lambda rows: best_columns(self._normalised(rows), k), features)

    def log_proba_of(self, features: Tensor, labels: Tensor) -> Tensor:
        if self.loss_name == "sampled_softmax":
            return super().log_proba_of(features, labels)
        found: tuple[Tensor] = self._by_blocks(
            lambda rows, asked: (self._normalised(rows).gather(1, asked),), features, labels
        )
        return found[0]

    @property
    def n_rows(self) -> int:
        return len(self.table.weight)

    def scorer(self, features: Tensor) -> Scorer:
        def score(first: int, last: int) -> Tensor:
            return features @ self.table.weight[first:last].T + self.bias.weight[first:last, 0]

        return score

    def _by_blocks(
        self, answer: Callable[..., tuple[Tensor, ...]], *tensors: Tensor
    ) -> tuple[Any, ...]:
        """The answers for all rows, few enough at a time to hold the scores of all labels."""
        n_rows = max(1, _BLOCK_SCORES // self.n_labels)
        blocks = zip(*(each.split(n_rows) for each in tensors), strict=True)
        return tuple(map(torch.cat, zip(*(answer(*block) for block in blocks), strict=True)))

    def _corrected(self, rows: Tensor, ranks: Ranks) -> Tensor:
        """Scores of all labels with the noise added (Eq. 5), `(n, labels of the rank)`."""
        scores = precise(self.scorer(rows)(0, self.n_rows))
        logs = log_noise_table(self._reduced(rows), self._noise(), self.frequency_share)
        return scores + logs[:, ranks.labels]

    def _normalised(self, rows: Tensor) -> Tensor:
        return self._corrected(rows, Ranks()).log_softmax(1)

    def _reduced(self, features: Tensor) -> Tensor:
        """Return what the tree sees, `(n, noise_dim)`: a draw and its probability agree exactly.

        Training in float16 has infinite features now and then. With NaN, draws would end where no
        class is.
        """
        with torch.autocast(features.device.type, enabled=False):
            rows = features.detach().float() @ self.components
        return ((rows - self.offset) * self.scale).nan_to_num(0.0).clamp(-_FAR, _FAR)

    def _noise(self) -> list[Tensor]:
        return [getattr(self, name) for name in (*_TREE, *_FREQUENCY)]

    def _draw_by(self, frequencies: npt.NDArray[np.float64]) -> None:
        """Draw by frequency, whatever the features are."""
        self._set(_TREE, frequency_tree(frequencies, self.noise_dim))
        logs = np.log(frequencies).astype(np.float32)
        self._set(_FREQUENCY, (logs, *alias_table(frequencies)))
        self.scale.zero_()

    def _take(self, tree: NoiseTree) -> None:
        reduction, missing = tree.reduction_, self.noise_dim - tree.weights_.shape[1]
        arrays = tree.arrays
        self._set(_TREE, arrays._replace(weights=np.pad(arrays.weights, ((0, 0), (0, missing)))))
        for name in _REDUCTION:
            values = torch.from_numpy(getattr(reduction, name)).float()
            getattr(self, name).copy_(pad(values, (0, missing)))

    def _set(self, names: tuple[str, ...], arrays: Any) -> None:
        for name, array in zip(names, arrays, strict=True):
            setattr(self, name, torch.from_numpy(array).to(self.scale.device))

    def _apply(self, *arguments: Any, **options: Any) -> Self:
        """Go to another device or type; the noise keeps its precision, which draws need."""
        before = dict(self.named_buffers())
        super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]
        for name, buffer in self.named_buffers():
            if buffer.dtype != before[name].dtype:
                setattr(self, name, before[name].to(buffer.device))
        return self

    def _load_from_state_dict(self, state: Any, prefix: str, *more: Any) -> None:
        """Refuse trees and tables that would make the kernel read elsewhere in memory."""
        given = {}
        for name in (*_TREE, *_FREQUENCY, *_REDUCTION):
            own, values = getattr(self, name), state.get(prefix + name)
            if isinstance(values, Tensor) and values.shape == own.shape:  # else PyTorch refuses it
                given[name] = values.to(own.dtype)
        for fault in self._faults(given):
            raise ModelCorruptError(f"{prefix}{fault} in these weights: get their file again")
        super()._load_from_state_dict(state, prefix, *more)

    def _faults(self, given: dict[str, Tensor]) -> Iterator[str]:
        limits = {"label_of": (-1, self.n_labels), "alias": (0, self.n_labels),
                  "leaf_of": (0, len(self.label_of))}  # fmt: skip
        for name, values in given.items():
            if name in limits:
                fits = (values >= limits[name][0]) & (values < limits[name][1])
            else:
                fits = values.isfinite() | (name == "tree_biases")  # inf where all goes right
            if not bool(fits.all()):
                yield f"{name} is damaged"
        if all(name in given for name in _TREE):
            tree = NoiseArrays(*(given[name].cpu().numpy() for name in _TREE))
            yield from (f"the noise tree {fault}" for fault in tree_faults(tree))
