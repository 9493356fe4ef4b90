"""SiameseXML: labels by their own texts, and by what each of them learned beyond its text."""

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, vstack
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import (
    AddsLabels,
    ExtremeClassifier,
    KnowsFeatures,
    LearnsFromLabelFeatures,
    RemovesLabels,
    TopK,
    is_able,
)
from umpteen.errors import FeaturesError, ParameterError
from umpteen.metrics.propensity import propensity_by_counts
from umpteen.neural.checkpoint import Keeper
from umpteen.neural.device import find_device
from umpteen.progress import Verbose
from umpteen.search.vectors import check_ids
from umpteen.siamese.boosted_judge import BoostedJudge
from umpteen.siamese.embedding import Goal
from umpteen.siamese.encoder import ACTIVATIONS
from umpteen.siamese.held_out import (
    LEAST_BESIDE_COMPANION,
    LEAST_SAMPLES,
    completed,
    held_out,
    learned_judge,
)
from umpteen.siamese.known import Known
from umpteen.siamese.label_features import (
    centroids_of,
    checked_label_features,
    complete,
    no_rows,
)
from umpteen.siamese.prediction import Answering, Judge, Judgement, Mixture
from umpteen.siamese.quadratic_judge import QuadraticJudge
from umpteen.siamese.tower import Tower
from umpteen.siamese.training import MODULES, Plan, Problem, train_tower
from umpteen.storage import Given, NotEmpty, Shape, Sizes, Within
from umpteen.storage.checkpoints import deciding_settings, fingerprint
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    as_csr,
    check_describes,
    check_features,
    check_labels,
    check_parameters,
    check_seed,
    unit_rows,
)

FloatArray = npt.NDArray[np.float32]

_TEMPERATURE = 0.05
_N_MINED = 4  # hard negatives kept per label, of which each draw takes one
_REFINE_BATCH = 256
_POSITIVE = Interval(Integral, 1, None, closed="left")
_COUNT = Interval(Integral, 0, None, closed="left")
_RATE = Interval(Real, 0, None, closed="neither")
_SHARE = Interval(Real, 0, 1, closed="both")
_NO_TAIL = (
    "tail has no effect: it needs learned weights, and these need "
    f"{LEAST_SAMPLES:,} samples ({LEAST_BESIDE_COMPANION:,} with a companion)"
)
_NOT_OF_THE_RESULT = (
    "alpha", "tail", "fuse_with", "fuse_weight", "search", "checkpoint", "checkpoint_every",
    "device", "n_jobs", "verbose",
)  # fmt: skip


class SiameseXML(
    LearnsFromLabelFeatures, AddsLabels, RemovesLabels, KnowsFeatures, ExtremeClassifier
):
    """Samples and labels in one space: for labels with texts of their own, also rare and new ones.

    After Dahiya et al. 2021. One encoder makes vectors of samples and of label features, so that a
    label is found by its text even if it has few samples or none. The `modules`:

    - `"embed"` (I): train the encoder on batches of labels, each with one of its samples, against
      the other samples of the batch: by a softmax over all, or (`loss="contrastive"`, the paper's)
      the hardest ones. With `mine_every`, every so many epochs a search among samples adds harder
      ones. Labels are drawn in proportion to frequency^`label_power`.
    - `"mine"` (II): for each sample the labels nearest by text and by centroid; without it,
      Modules III and IV learn from random negatives only.
    - `"refine"` (III): a vector per label, the sum of its text's and of a shift that is learned.
    - `"joint"` (IV): the same, with the vectors of features moving too.

    **Scores** are given to the labels nearest by the sum of their three vectors (twice `shortlist`
    of them), to those with the most words in common and to the most frequent ones (`shortlist` of
    each). A tenth of the samples (4,000 at the most) is held out; by them is learned what to make
    of the cosines to a label's own vector, its text and its centroid, of the words it shares with
    a sample, of its frequency and of the companion's score. Beside a companion, scores are the
    geometric mean of these chances and the companion's; alone they are learned to rank, and only
    scaled like chances.
    `tail` above 0 divides by propensity^`tail`, in favour of rare labels (0.5 to 1 for PSP@k).
    With fewer than 2,000 samples (20,000 with a companion), or `weights="fixed"` as in the paper,
    scores are `alpha` * cosine to the own vector + (1 - `alpha`) * mean of the other two, and
    `tail` has no effect.

    **Label features** are in the same vocabulary as `X`. A label without any gets the centroid
    of its samples in their place, and so do all labels if there are none; a label with neither
    features nor samples is never predicted. `add_labels` takes new ones without training.

    **Companion**: `fuse_with=LabelTree()` trains that as well, for candidates and scores of its
    own; with fixed weights, scores are (companion + `fuse_weight` * towers) / (1 + `fuse_weight`).

    Parameters
    ----------
    dim : length of vectors.
    epochs, batch_size, learning_rate : of Module I; an epoch has as many draws as there are labels
        or samples, whichever are more.
    refine_epochs, refine_learning_rate : of Modules III and IV.
    loss : `"softmax"` over the batch at a temperature of 0.05, or `"contrastive"`, the paper's.
    n_negatives : hardest negatives of a label in a batch, for the paper's loss.
    mine_every : epochs between searches for harder negatives, among 16,384 samples; 0 is never.
    skip_above : leave out negatives that are more similar to a label than this many times its own
        sample: many are relevant, only nobody said so. None keeps all.
    dropout : share of a row's entries that are left out while the encoder trains.
    start : where a label's vector begins, `"text"` (the paper's) or `"centroid"`, the text and the
        centroid of its samples.
    activation, residual : `"relu"` and True are the paper's encoder; `released` has the others.
    n_models : towers with other random starts, whose scores are averaged; the paper's -3 has 3.
    search : `"auto"` compares all labels with samples in a batch, and walks a graph for single
        ones where there are many labels; it may miss one that `"exact"` finds. `"hnsw"` always
        walks.
    checkpoint, checkpoint_every : as in `NeuralClassifier`.

    >>> X = csr_matrix([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], dtype=float)
    >>> texts = csr_matrix([[1, 0, 0, 0], [0, 0, 0, 1]], dtype=float)
    >>> model = SiameseXML(dim=16, random_state=0).fit(X, [[0], [0], [1]], label_features=texts)
    >>> model.predict_topk(X, k=1).labels.ravel()
    array([0, 0, 1], dtype=int32)
    >>> model.add_labels(label_features=[[0, 0, 1, 0]]).predict_topk([[0, 0, 1, 0]], k=1).labels
    array([[2]], dtype=int32)
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("checkpoint",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "dim": [_POSITIVE],
        "modules": [tuple, list],
        "epochs": [_COUNT],
        "refine_epochs": [_COUNT],
        "batch_size": [_POSITIVE],
        "learning_rate": [_RATE],
        "refine_learning_rate": [_RATE],
        "weights": [StrOptions({"learned", "fixed"})],
        "tail": [_SHARE],
        "alpha": [_SHARE],
        "loss": [StrOptions({"contrastive", "softmax"})],
        "n_negatives": [_POSITIVE],
        "skip_above": [_RATE, None],
        "label_power": [Interval(Real, 0, None, closed="left")],
        "mine_every": [_COUNT],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "shortlist": [_POSITIVE],
        "start": [StrOptions({"text", "centroid"})],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "residual": ["boolean"],
        "n_models": [_POSITIVE],
        "fuse_with": [ExtremeClassifier, None],
        "fuse_weight": [Interval(Real, 0, None, closed="left")],
        "search": [StrOptions({"auto", "exact", "hnsw"})],
        "checkpoint": [str, None],
        "checkpoint_every": [Interval(Real, 0, None, closed="left")],
        "device": [str],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    towers_: Annotated[list[Annotated[Tower, Given("features", "labels")]], NotEmpty()]
    companion_: Annotated[ExtremeClassifier, Given("features")] | None
    judge_: Judge | None  # None: fixed weights
    label_features_: Annotated[csr_matrix, Shape("labels", "features")]  # completed by centroids
    label_counts_: Annotated[npt.NDArray[np.int64], Shape("labels"), Within(0, 2**62)]
    n_samples_: Annotated[int, Within(1, 2**62)]
    history_: list[dict[str, list[float]]]  # of each tower, the losses of each module's epochs
    _known: Known  # of label_features_ and label_counts_, with what is derived of them

    def __init__(
        self,
        *,
        dim: int = 256,
        modules: tuple[str, ...] = ("embed", "mine", "refine"),
        epochs: int = 6,
        refine_epochs: int = 5,
        batch_size: int = 1024,
        learning_rate: float = 5e-3,
        refine_learning_rate: float = 2e-3,
        weights: str = "learned",
        tail: float = 0.0,
        alpha: float = 0.5,
        loss: str = "softmax",
        n_negatives: int = 4,
        skip_above: float | None = None,
        label_power: float = 0.7,
        mine_every: int = 0,
        dropout: float = 0.3,
        shortlist: int = 50,
        start: str = "centroid",
        activation: str = "relu",
        residual: bool = False,
        n_models: int = 1,
        fuse_with: ExtremeClassifier | None = None,
        fuse_weight: float = 0.1,
        search: str = "auto",
        checkpoint: str | None = None,
        checkpoint_every: float = 300.0,
        device: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.dim = dim
        self.modules = modules
        self.epochs = epochs
        self.refine_epochs = refine_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.refine_learning_rate = refine_learning_rate
        self.weights = weights
        self.tail = tail
        self.alpha = alpha
        self.loss = loss
        self.n_negatives = n_negatives
        self.skip_above = skip_above
        self.label_power = label_power
        self.mine_every = mine_every
        self.dropout = dropout
        self.shortlist = shortlist
        self.start = start
        self.activation = activation
        self.residual = residual
        self.n_models = n_models
        self.fuse_with = fuse_with
        self.fuse_weight = fuse_weight
        self.search = search
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Sizes and rates as the supplement prints them, and the released code's epochs; slow."""
        printed = {
            "dim": 300, "batch_size": 4096, "learning_rate": 5e-3, "refine_learning_rate": 5e-4,
            "epochs": 50, "refine_epochs": 20, "shortlist": 500, "weights": "fixed", "alpha": 0.9,
            "loss": "contrastive", "skip_above": None, "dropout": 0.0, "start": "text",
            "label_power": 0.45, "mine_every": 4, "residual": True, "activation": "relu",
        }  # fmt: skip
        return cls(**{**printed, **changes})

    @classmethod
    def released(cls, **changes: Any) -> Self:
        """The paper's, with some choices of its released code: GELU, no residual block, the one
        hardest negative of a batch and none mined, a higher rate."""
        code = {
            "activation": "gelu", "residual": False, "n_negatives": 1, "mine_every": 0,
            "learning_rate": 0.01, "refine_learning_rate": 2e-4,
        }  # fmt: skip
        return cls.paper(**{**code, **changes})

    def fit(self, X: Any, Y: Any, label_features: Any = None, token_vectors: Any = None) -> Self:
        """Learn from samples, their labels and the labels' own features `(n_labels, n_features)`.

        `token_vectors` `(n_features, dim)` are where the vectors of features begin, such as
        pretrained ones of words; by default they are random.
        """
        check_parameters(self)
        self._check_modules()
        find_device(self.device)
        checked, labels = self._check_fit_input(X, Y)
        texts = checked_label_features(label_features, checked.shape[1], labels.shape[1])
        table = self._check_token_vectors(token_vectors, checked.shape[1])
        X_known = as_csr(checked)
        whole = Problem.of(X_known, complete(texts, X_known, labels), labels)
        seed, mark = self._seed_and_mark(whole, table)
        self._check_fit(X, Y)
        held = self._held_out(whole, seed)
        part = whole if held is None else whole.rows(~held, texts)
        made = [
            train_tower(part, table, self._plan(number, mark), seed + number)
            for number in range(self.n_models)
        ]
        towers = [tower for tower, _ in made]
        judge = None
        search = {"method": self.search, "use": "single", "n_jobs": self.n_jobs}
        if held is not None:
            beside = self._fitted_companion(checked[~held], part.Y, label_features)
            known = Known(part.label_features, _counts(part.Y))
            asked = self._answering(towers, known, beside, beyond_vectors=True)
            judge = learned_judge(asked, whole.rows(held, texts))
            towers = [completed(tower, part, whole, **search) for tower in towers]
        else:
            towers = [tower.searched(**search) for tower in towers]
        self.companion_ = self._fitted_companion(X, Y, label_features)
        if self.tail and judge is None:
            warnings.warn(_NO_TAIL, stacklevel=2)
        self.judge_ = judge
        self.history_ = [losses for _, losses in made]
        self.n_samples_ = int(labels.shape[0])
        return self._with(towers, whole.label_features, _counts(labels))

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: parts with different numbers of labels or signs."""
        companion, judge = self.companion_, self.judge_
        if companion is not None and companion.n_labels_ > self.n_labels_:
            yield f"has {self.n_labels_} labels, and its companion {companion.n_labels_}"
        n_signs = 5 if companion is None else 7
        if isinstance(judge, QuadraticJudge) and len(judge.means) != n_signs:
            yield f"has {n_signs} signs, and its judge asks for {len(judge.means)}"
        if isinstance(judge, BoostedJudge) and judge.signs.max(initial=-1) >= n_signs:
            yield f"has {n_signs} signs, and its judge asks for {judge.signs.max() + 1}"

    def encode(self, X: Any) -> FloatArray:
        """Vectors of samples, or of label features: `(n, dim)`, of length 1, by the first tower."""
        X = as_csr(self._check_predict(X))
        encoder = self.towers_[0].encoder
        return encoder.lift(encoder.bags(X))

    @property
    def label_embeddings_(self) -> FloatArray:
        """Vectors of the labels' texts, in the space of `encode`: `(n_labels, dim)`."""
        self._check_fitted()
        tower = self.towers_[0]
        return tower.encoder.lift(tower.texts)

    @property
    def classifiers_of_labels_(self) -> FloatArray:
        """What each label's vector has become: `(n_labels, dim)`."""
        self._check_fitted()
        return self.towers_[0].classifiers

    def add_labels(
        self, X: Any = None, Y: Any = None, label_features: Any = None, *,
        negative_weight: float = 1.0,
    ) -> Self:  # fmt: skip
        """Add labels by their features, without training; they are numbered from `n_labels_` on.

        With samples `X` of them (`Y` has a column for each new label), they get centroids too,
        and a label without features is found by those. `negative_weight` has no effect, since
        nothing is trained. A companion does not know new labels: with
        learned weights the towers judge these alone, with fixed ones its score counts as 0.
        """
        self._check_fitted()
        if (X is None) != (Y is None):
            raise ParameterError("add_labels takes samples X and their labels Y, or neither")
        if label_features is None:
            if Y is None:
                raise ParameterError("add_labels needs label_features, or samples X and labels Y")
            label_features = no_rows(check_labels(Y).shape[1], self.n_features_in_)
        features = as_csr(
            check_features(
                label_features, n_features=self.n_features_in_, name="label_features",
                model=type(self).__name__,
            )
        )  # fmt: skip
        n_new = features.shape[0]
        if X is None:
            samples, labels = no_rows(0, self.n_features_in_), no_rows(0, n_new)
        else:
            samples = as_csr(self._check_predict(X))
            labels = check_labels(Y, n_samples=samples.shape[0])
            check_describes(features, labels.shape[1])
        features = complete(features, samples, labels)
        towers = [
            tower.with_labels(features, centroids_of(tower.encoder, samples, labels))
            for tower in self.towers_
        ]
        every = csr_matrix(vstack([self.label_features_, as_csr(unit_rows(features))]))
        return self._with(towers, every, np.concatenate([self.label_counts_, _counts(labels)]))

    def remove_labels(self, labels: Any) -> Self:
        """Forget labels: they are not predicted any more. The ids of the others stay."""
        self._check_fitted()
        ids = check_ids(labels, self.n_labels_)
        counts, kept = self.label_counts_.copy(), np.ones(self.n_labels_, np.float32)
        counts[ids] = 0  # no more among the most frequent, nor taken from the companion
        kept[ids] = 0  # nor found by words
        features = csr_matrix(diags(kept) @ self.label_features_)
        features.eliminate_zeros()
        towers = [tower.without_labels(ids) for tower in self.towers_]
        return self._with(towers, features, counts)

    def labels_with(self, X: Any) -> csr_matrix:
        """(samples, labels): which labels have a feature of a sample among their own, each as 1."""
        X = as_csr(self._check_predict(X))
        found = csr_matrix(abs(X) @ abs(self.label_features_).T)
        found.eliminate_zeros()
        found.sort_indices()
        found.data[:] = 1
        return found

    def _topk(self, X: Features, k: int) -> TopK:
        now = vars(self).copy()  # of one moment: another thread may add labels
        known = now.get("_known") or Known(now["label_features_"], now["label_counts_"])
        self.__dict__.setdefault("_known", known)  # if the model was just loaded
        way = self._way(known.counts)
        answering = self._answering(
            now["towers_"], known, now["companion_"], isinstance(way, Judgement)
        )
        return answering.topk(as_csr(X), k, way)

    def _with(
        self, towers: list[Tower], features: csr_matrix, counts: npt.NDArray[np.int64]
    ) -> Self:
        """Other labels, in one step."""
        self.__dict__.update(
            towers_=towers, label_features_=features, label_counts_=counts,
            n_labels_=len(counts), _known=Known(features, counts),
        )  # fmt: skip
        return self

    def _answering(
        self,
        towers: list[Tower],
        known: Known,
        companion: ExtremeClassifier | None,
        beyond_vectors: bool,
    ) -> Answering:
        return Answering(
            towers, known, int(self.shortlist), beyond_vectors, companion, self.n_jobs, self.verbose
        )

    def _way(self, counts: npt.NDArray[np.int64]) -> Mixture | Judgement:
        if self.judge_ is None or self.weights == "fixed":
            return Mixture(float(self.alpha), float(self.fuse_weight))
        if self.tail == 0:
            return Judgement(self.judge_, None)
        chances = propensity_by_counts(counts, self.n_samples_)
        return Judgement(self.judge_, (chances ** -float(self.tail)).astype(np.float32))

    def _held_out(self, whole: Problem, seed: int) -> npt.NDArray[np.bool_] | None:
        """Samples for the judge; None if there are too few, or weights are fixed."""
        if not self._learns_weights(whole.X.shape[0]):
            return None
        held = held_out(whole.X, seed)
        return held if whole.Y[held].nnz and whole.Y[~held].nnz else None

    def _learns_weights(self, n_samples: int) -> bool:
        least = LEAST_SAMPLES if self.fuse_with is None else LEAST_BESIDE_COMPANION
        return self.weights == "learned" and n_samples >= least

    def _plan(self, number: int, mark: str) -> Plan:
        goal = Goal(self.loss, _TEMPERATURE, int(self.n_negatives), self.skip_above)

        def keeper(module: str) -> Keeper:
            if self.checkpoint is None:
                return Keeper(None, self.checkpoint_every)
            folder = Path(self.checkpoint) / f"{number}-{module}"
            return Keeper(folder, self.checkpoint_every, mark)

        return Plan(
            modules=tuple(self.modules), dim=self.dim, activation=self.activation,
            residual=self.residual, dropout=self.dropout, goal=goal, epochs=self.epochs,
            batch_size=self.batch_size, learning_rate=self.learning_rate, power=self.label_power,
            mine_every=max(1, self.mine_every), n_mined=_N_MINED if self.mine_every else 0,
            refine_epochs=self.refine_epochs, refine_batch_size=_REFINE_BATCH,
            refine_learning_rate=self.refine_learning_rate, shortlist=self.shortlist,
            n_random=max(1, self.shortlist // 5), start=self.start, search=self.search,
            device=find_device(self.device), n_jobs=self.n_jobs, verbose=self.verbose,
            keeper=keeper,
        )  # fmt: skip

    def _seed_and_mark(self, problem: Problem, table: FloatArray | None) -> tuple[int, str]:
        seed = check_seed(self.random_state)
        if self.checkpoint is None:
            return seed, ""
        settings = deciding_settings(self, _NOT_OF_THE_RESULT, seed)
        given = np.zeros(0) if table is None else table
        settings["label_features"] = fingerprint(problem.label_features, given, {})
        settings["held_out"] = self._learns_weights(problem.X.shape[0])
        mark = fingerprint(problem.X, problem.Y, settings)
        if self.random_state is None:
            first = next((name for name in MODULES if name in self.modules and name != "mine"), "")
            found = Keeper(Path(self.checkpoint) / f"0-{first}", 0, mark).found if first else None
            seed = seed if found is None else found.seed
        return seed, mark

    def _fitted_companion(self, X: Any, Y: Any, label_features: Any) -> ExtremeClassifier | None:
        if self.fuse_with is None:
            return None
        companion = clone(self.fuse_with)
        more = {}
        if label_features is not None and is_able(companion, LearnsFromLabelFeatures):
            more["label_features"] = label_features
        return companion.fit(X, Y, **more)  # type: ignore[no-any-return]

    def _check_modules(self) -> None:
        unknown = [name for name in self.modules if name not in MODULES]
        if unknown or len(set(self.modules)) < len(self.modules):
            raise ParameterError(
                f"modules={tuple(self.modules)!r} is not possible: name each of {MODULES} once at "
                "the most"
            )

    def _check_token_vectors(self, vectors: Any, n_features: int) -> FloatArray | None:
        if vectors is None:
            return None
        table = check_features(vectors, name="token_vectors")
        if table.shape != (n_features, self.dim):
            raise FeaturesError(
                f"token_vectors has shape {table.shape}; expected {(n_features, self.dim)}: a row "
                "for each feature of X, and dim numbers in each"
            )
        return table.toarray() if isinstance(table, csr_matrix) else table


def _counts(Y: csr_matrix) -> npt.NDArray[np.int64]:
    return np.asarray(Y.getnnz(axis=0), np.int64)
