"""The noise model of adversarial softmax: a probabilistic decision tree over classes."""

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen import parallel, storage
from umpteen.base import TopK
from umpteen.errors import (
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    NotFittedError,
    ParameterError,
)
from umpteen.kernels.noise_beam import beam_topk
from umpteen.kernels.noise_fit import ClassSamples
from umpteen.kernels.noise_table import log_prob_table
from umpteen.kernels.noise_tree import NoiseArrays, draw_rows, log_prob_rows
from umpteen.progress import Verbose, progress_bar
from umpteen.softmax.reduction import Reduction
from umpteen.softmax.tree_faults import tree_faults
from umpteen.softmax.tree_fitting import choose_regularizers, depth_of, grow, samples_by_class
from umpteen.storage import Given, Index, Shape, Size, Sizes, Within
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    check_features,
    check_k,
    check_labels,
    check_parameters,
    check_seed,
)

_BLOCK_ROWS = 1024
_BLOCK_SCORES = 2**22  # log-probabilities of all classes in a block: 16 MB, a few per thread

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]
Answer = TypeVar("Answer")


@storage.storable
class NoiseTree(BaseEstimator):
    """A cheap model p(y|x) over very many classes: drawing from it costs O(dim * log(classes)).

    A balanced binary tree with a class at every leaf (Section 3 of Bamler and Mandt 2020). Each
    node sends a sample right with probability sigmoid(w.z + b), where z are `dim` features of the
    sample at unit variance. Nodes are fitted from the root down. Each node alternates between
    Newton ascent on w and b, and sending those half of the classes right that gain most by it (Eq.
    9), until hardly a class changes sides or for `max_rounds` (1 keeps the initial split, along the
    direction in which class means differ most). A node with more than 16,384 samples fits w and b
    to every second of them, or third and so on.

    Probabilities of all classes add up to 1. A class without samples has a small probability.

    Parameters
    ----------
    dim : number of features that the tree sees.
    directions : what these features are. "principal" are principal components, as in the paper;
        "discriminant" are the directions in which class means differ most. If features vary for
        other reasons, such a tree predicts much better, but its draws are not always better
        negatives (`papers/adversarial/README.md`).
    regularizer : `regularizer * (|w|^2 + b^2)` is subtracted from a node's log-likelihood. With
        larger values, probabilities are closer to one another. "auto" chooses a value for each
        level by the likelihood of a validation split, a fifth of the samples, and then fits to all
        samples. This takes a sixth to a third of the time of `fit`.
    max_rounds : maximum number of alternations between weights and sides at a node.

    Attributes
    ----------
    weights_, biases_ : weights and biases of the nodes, numbered as in a heap from 1.
    label_of_ : the class of each leaf, -1 for none.
    leaf_of_ : the leaf of each class.
    reduction_ : the map from a sample's features to those that the tree sees.
    log_likelihood_ : mean over the training samples.
    n_rounds_ : alternations of each node.
    regularizers_ : the regularizer of each level.

    >>> tree = NoiseTree(dim=1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 2])
    >>> tree.topk([[0.0], [3.0]], k=2).labels
    array([[0, 1],
           [2, 1]], dtype=int32)
    >>> tree.sample([[3.0]], 8, rng=0)
    array([[2, 1, 1, 2, 2, 2, 2, 2]], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "dim": [Interval(Integral, 1, None, closed="left")],
        "directions": [StrOptions({"principal", "discriminant"})],
        "regularizer": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    n_features_in_: Annotated[int, Size("features")]
    n_classes_: Annotated[int, Size("labels"), Within(1, 2**31)]
    reduction_: Annotated[Reduction, Given("features", "dim")]
    weights_: Annotated[FloatArray, Shape("leaves", "dim")]
    biases_: Annotated[FloatArray, Shape("leaves")]
    label_of_: Annotated[IntArray, Shape("leaves"), Within(-1, "labels")]
    leaf_of_: Annotated[IntArray, Shape("labels"), Index("leaves")]
    log_likelihood_: float
    n_rounds_: IntArray
    regularizers_: npt.NDArray[np.float64]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a tree that is not full, or leads to no class."""
        if len(self.label_of_).bit_count() != 1:
            yield f"has {len(self.label_of_)} leaves, expected a power of two"
        yield from tree_faults(self.arrays)

    def __init__(
        self,
        *,
        dim: int = 16,
        directions: Literal["principal", "discriminant"] = "principal",
        regularizer: float | Literal["auto"] = "auto",
        max_rounds: int = 20,
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.dim = dim
        self.directions = directions
        self.regularizer = regularizer
        self.max_rounds = max_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, n_classes: int | None = None) -> Self:
        """Learn from one class id per sample; set `n_classes` if the last classes have no samples.

        `y` may also hold several labels per sample, in the forms of `Y` elsewhere: every pair of
        a sample and a label counts as one sample. O(samples * dim^2 * log(classes)) per round.
        """
        check_parameters(self)
        X = check_features(X)
        if X.shape[0] == 0:
            raise FeaturesError(f"X has no rows (shape={X.shape}): there is nothing to learn")
        if n_classes is not None:
            n_classes = check_k(n_classes, name="n_classes")
        labels = check_labels(y, n_samples=X.shape[0], n_labels=n_classes, name="y")
        if labels.nnz == 0:
            raise LabelsError("y has no label at all; there is nothing to learn")
        reduction = self._reduction(X, labels)
        samples = samples_by_class(reduction(X, self.n_jobs), labels)
        regularizers = self._regularizers(samples)
        with progress_bar("Growing", len(regularizers), verbose=self.verbose) as bar:
            grown = grow(samples, regularizers, self.max_rounds, self.n_jobs, bar)
        self.n_features_in_, self.n_classes_ = int(X.shape[1]), int(labels.shape[1])
        self.reduction_ = reduction
        self.weights_, self.biases_, self.label_of_, self.leaf_of_ = grown.arrays
        self.log_likelihood_ = self._mean_log_prob(samples)
        self.n_rounds_, self.regularizers_ = grown.n_rounds, regularizers
        return self

    def _reduction(self, X: Features, labels: csr_matrix) -> Reduction:
        seed = check_seed(self.random_state)
        if self.directions == "principal":
            return Reduction.of(X, self.dim, seed)
        return Reduction.between_classes(X, labels, self.dim, seed)

    def _regularizers(self, samples: ClassSamples) -> npt.NDArray[np.float64]:
        depth = depth_of(len(samples.start) - 1)
        if self.regularizer != "auto":
            return np.full(depth, self.regularizer, np.float64)
        seed = check_seed(self.random_state)
        with progress_bar("Choosing the regularizer", depth, verbose=self.verbose) as bar:
            return choose_regularizers(samples, seed, self.n_jobs, bar)

    def _mean_log_prob(self, samples: ClassSamples) -> float:
        classes = np.repeat(np.arange(self.n_classes_, dtype=np.int32), np.diff(samples.start))
        tree = NoiseArrays(self.weights_, self.biases_, self.label_of_, self.leaf_of_)
        blocks = self._by_rows(
            lambda rows: log_prob_rows(tree, samples.rows[rows], classes[rows, None]), len(classes)
        )
        return float(np.concatenate(blocks).mean(dtype=np.float64))

    def sample(self, X: Any, n: int = 1, rng: Any = None) -> IntArray:
        """Draw `n` classes for each sample, independently, `(n_samples, n)`.

        `rng`: a numpy Generator, or a seed for one.
        """
        return self.sample_with_log_prob(X, n, rng)[0]

    def sample_with_log_prob(
        self, X: Any, n: int = 1, rng: Any = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the classes that `sample` draws, and their log-probabilities."""
        reduced, n, seed, tree = self.reduce(X), check_k(n, "n"), _seed_of(rng), self.arrays
        blocks = self._by_rows(
            lambda rows: draw_rows(tree, reduced[rows], n, seed, rows.start), len(reduced)
        )
        return np.concatenate([block[0] for block in blocks]), np.concatenate(
            [block[1] for block in blocks]
        )

    def log_prob(self, X: Any, y: Any) -> FloatArray:
        """Return log p(y|x): of one class per sample, `(n,)`, or of m given ones, `(n, m)`."""
        reduced, tree = self.reduce(X), self.arrays
        ids = self._check_ids(y, len(reduced))
        table = ids if ids.ndim == 2 else ids[:, None]
        blocks = self._by_rows(
            lambda rows: log_prob_rows(tree, reduced[rows], table[rows]), len(reduced)
        )
        return np.concatenate(blocks).reshape(ids.shape)

    def log_prob_all(self, X: Any) -> Iterator[tuple[slice, FloatArray]]:
        """Yield log p(y|x) of all classes, some rows at a time: `(rows, table)` in order.

        >>> tree = NoiseTree().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
        >>> for rows, table in tree.log_prob_all([[0.0], [2.0]]):
        ...     print(rows, np.exp(table).sum(axis=1).round(5))
        slice(0, 2, None) [1. 1.]
        """
        reduced, tree = self.reduce(X), self.arrays
        blocks = _blocks(len(reduced), max(1, _BLOCK_SCORES // self.n_classes_))
        tables = parallel.run_ahead(
            lambda rows: log_prob_table(tree, reduced[rows]), blocks, n_jobs=self.n_jobs
        )
        return zip(blocks, tables, strict=True)

    def topk(self, X: Any, k: int = 5, beam_width: int = 64) -> TopK:
        """Return the `k` most probable classes and their log-probabilities, by beam search.

        The search keeps `beam_width` (at least `k`) nodes per level. It is exact if `beam_width` is
        at least half the number of leaves, which is the number of classes rounded up to a power of
        two.
        """
        reduced, k, tree = self.reduce(X), min(check_k(k), self.n_classes_), self.arrays
        width = min(max(k, check_k(beam_width, "beam_width")), max(1, len(self.label_of_) // 2))
        blocks = self._by_rows(lambda rows: beam_topk(tree, reduced[rows], k, width), len(reduced))
        top = TopK.concatenate([TopK(*block) for block in blocks])
        return TopK(np.where(top.scores == -np.inf, -1, top.labels), top.scores)

    def reduce(self, X: Any) -> FloatArray:
        """Return the features z that the tree sees, `(n, dim)`; fewer if `X` has a lower rank."""
        self._check_fitted()
        X = check_features(X, n_features=self.n_features_in_, model=type(self).__name__)
        return self.reduction_(X, self.n_jobs)

    @property
    def arrays(self) -> NoiseArrays:
        """What the kernels take, together with rows of `reduce`."""
        self._check_fitted()
        return NoiseArrays(self.weights_, self.biases_, self.label_of_, self.leaf_of_)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree to a folder; `umpteen.load` loads it."""
        storage.save(self, path)

    def _by_rows(self, function: Callable[[slice], Answer], n_rows: int) -> list[Answer]:
        return parallel.run(function, _blocks(n_rows, _BLOCK_ROWS), n_jobs=self.n_jobs)

    def _check_ids(self, y: Any, n_samples: int) -> IntArray:
        ids = np.asarray(y)
        if ids.ndim not in (1, 2) or len(ids) != n_samples:
            raise LabelsShapeError(
                f"y has shape {ids.shape}; expected ({n_samples:,},), one class id for each row "
                f"of X, or ({n_samples:,}, m)"
            )
        checked = check_labels(ids.ravel(), n_labels=self.n_classes_, name="y")
        return np.asarray(checked.indices, np.int32).reshape(ids.shape)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_rounds_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                "this NoiseTree is not fitted yet: call fit(X, y) first, "
                "or umpteen.load a saved one"
            )


def _blocks(n_rows: int, size: int) -> list[slice]:
    """Cut rows into blocks; no rows are one empty block."""
    starts = range(0, max(n_rows, 1), size)
    return [slice(start, min(start + size, n_rows)) for start in starts]


def _seed_of(rng: Any) -> int:
    try:
        return int(np.random.default_rng(rng).integers(2**63))
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"rng={rng!r} is not possible ({error}): pass a numpy Generator or a seed"
        ) from None
