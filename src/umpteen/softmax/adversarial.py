"""AdversarialSoftmax: a softmax over very many classes, trained on a few of them at a time."""

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen import storage
from umpteen.base import ExtremeClassifier, TopK
from umpteen.errors import LabelsError, LabelsShapeError, ModelCorruptError, ParameterError
from umpteen.kernels import sampled_softmax as kernel
from umpteen.progress import Verbose, progress_bar
from umpteen.softmax.choices import OBJECTIVES, check_choices, noise_for
from umpteen.softmax.noise import Noise
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.softmax.parts import Judgement, Part, hold_out
from umpteen.softmax.prediction import Answers
from umpteen.softmax.starting import start_at_centroids, typical_length
from umpteen.softmax.training import Kept, Plan, State, train
from umpteen.softmax.weights import DenseScores, SparseScores, in_its_form
from umpteen.storage import Given, Shape
from umpteen.storage.checkpoints import deciding_settings, fingerprint, read_checkpoint
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    check_features,
    check_labels,
    check_seed,
    is_single_label,
)

_NOT_OF_THE_RESULT = (
    "checkpoint",
    "n_jobs",
    "verbose",
    "epochs",
    "max_seconds",
    "search",
    "beam_width",
)

DISCOUNTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

_POSITIVE = [Interval(Integral, 1, None, closed="left")]


class AdversarialSoftmax(ExtremeClassifier):
    """A linear softmax over thousands to millions of classes, trained at logarithmic cost.

    Instead of comparing a sample's class with all others, each step compares it with a few that are
    drawn: not any few, but classes that a small model of the data, `NoiseTree`, takes for probable
    (Bamler and Mandt 2020). So they are hard to tell from the right one, and a step teaches more.
    What the drawing does to the scores is known exactly, and is taken out.

    `AdversarialSoftmax.paper()` is the method as printed: negative sampling, whose scores are
    corrected in prediction (Eq. 5). By default, "sampled_softmax" weighs each drawn class by the
    inverse of its chance, in training: the better one on texts. The paper's baselines are one
    argument away: with `objective="negative_sampling"`, `noise="uniform"` or `"frequency"`; further
    `objective="nce"`, `"one_vs_each"` (Titsias 2016), `"augment_reduce"` (Ruiz et al. 2018), and
    `"softmax"`, which takes every class in every step.

    **Scores** of answers are probabilities that add up to 1 over all classes (with
    `search="beam"`: over the candidates), where frequent classes are discounted as
    `frequency_discount` says; `predict_log_proba` has them as the softmax has. A sample may have
    several labels: each visit of it draws one of them, and probabilities share 1 between them.

    **Features.** Where more than a third of all values are not zero, each class has a weight for
    each feature. Of sparser rows, a class has weights at the features of its own samples
    (`docs/softmax.md` says why), so that a model is about as large as its data.

    Parameters
    ----------
    noise : "tree", a `NoiseTree` with other settings, "frequency" or "uniform". "auto" is the tree,
        and "uniform" for the objectives that are defined with it.
    objective : what a step minimises, see above.
    n_negatives : classes drawn in a step.
    frequency_share : share of draws by frequency instead of the tree, which keeps the noise from
        being too sure of itself.
    shared : a batch's samples share their negatives, `n_negatives` for the whole batch (only
        "sampled_softmax").
    refresh_after : epochs after which the tree is grown again, along the directions in which the
        learned weights differ; never by default.
    regularizer : penalty on squared scores (Eq. 6), in which log-probabilities of the noise count.
    learning_rate, batch_size : of Adagrad. The rate is that for samples of unit length: those of
        another length (`feature_length_`) give the same answers with the same rate.
    centroid_scale : training starts at scores that are so many times the cosine of a sample and the
        centroid of a class; 0 starts at zero, as the paper does.
    frequency_discount : how much of the logarithm of a class's frequency is taken from its score
        when classes are ranked. A softmax that has seen few samples of a class holds it back by
        more than is good for the first answer. "auto" is what serves held-out samples best, 0 is
        the softmax itself.
    epochs, max_seconds : at most; training ends after `patience` epochs without a better precision
        on held-out samples (`validation_fraction`, at most 2,000), and the best epoch is kept, or
        the start if none was better. Below 20 samples none are held out. The tree is not counted in
        `max_seconds`, and only they make a result depend on the machine.
    search : "exact" compares all classes; "beam" the `2 * beam_width` classes that the tree finds.
        Both may be changed after `fit`.
    checkpoint : folder that receives the state after each epoch. `fit` with the same data and
        parameters goes on from there, to the same bits.

    Attributes
    ----------
    noise_ : what negatives are drawn from; `noise_.tree` is the fitted `NoiseTree`.
    scores_ : `weights` and `biases` of each class.
    counts_, feature_length_ : training samples of each class, and their length (the root mean
        square).
    frequency_discount_ : the one that is used.
    validation_scores_ : precision at 1 on the held-out samples after each epoch.

    >>> X = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]] * 5
    >>> model = AdversarialSoftmax().fit(X, [0, 1, 2, 0] * 5)
    >>> model.predict_topk([[0, 1, 0], [0, 0, 1]], k=1).labels.ravel()
    array([1, 2], dtype=int32)
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("checkpoint",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "noise": [StrOptions({"auto", "tree", "frequency", "uniform"}), NoiseTree],
        "objective": [StrOptions(set(OBJECTIVES))],
        "n_negatives": _POSITIVE,
        "frequency_share": [Interval(Real, 0, 1, closed="left")],
        "shared": ["boolean"],
        "refresh_after": [Interval(Integral, 1, None, closed="left"), None],
        "regularizer": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "centroid_scale": [Interval(Real, 0, None, closed="left")],
        "frequency_discount": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "batch_size": _POSITIVE,
        "epochs": _POSITIVE,
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "patience": _POSITIVE,
        "search": [StrOptions({"exact", "beam"})],
        "beam_width": _POSITIVE,
        "checkpoint": [str, PathLike, None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    noise_: Annotated[Noise, Given("features", "labels")]
    scores_: Annotated[DenseScores | SparseScores, Given("features", "labels")]
    counts_: Annotated[npt.NDArray[np.int64], Shape("labels")]
    feature_length_: float
    frequency_discount_: float
    validation_scores_: list[float]

    def __init__(
        self,
        *,
        noise: Any = "auto",
        objective: str = "sampled_softmax",
        n_negatives: int = 5,
        frequency_share: float = 0.3,
        shared: bool = False,
        refresh_after: int | None = None,
        regularizer: float = 1e-2,
        learning_rate: float = 0.3,
        centroid_scale: float = 10.0,
        frequency_discount: Any = "auto",
        batch_size: int = 100,
        epochs: int = 30,
        max_seconds: float | None = None,
        validation_fraction: float = 0.05,
        patience: int = 3,
        search: str = "exact",
        beam_width: int = 64,
        checkpoint: str | PathLike[str] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.noise = noise
        self.objective = objective
        self.n_negatives = n_negatives
        self.frequency_share = frequency_share
        self.shared = shared
        self.refresh_after = refresh_after
        self.regularizer = regularizer
        self.learning_rate = learning_rate
        self.centroid_scale = centroid_scale
        self.frequency_discount = frequency_discount
        self.batch_size = batch_size
        self.epochs = epochs
        self.max_seconds = max_seconds
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.search = search
        self.beam_width = beam_width
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """One negative from the tree alone, held back by 0.1, as in the paper's experiments."""
        printed = {
            "noise": NoiseTree(regularizer=0.1), "objective": "negative_sampling",
            "n_negatives": 1, "frequency_share": 0.0, "regularizer": 1e-3, "learning_rate": 0.01,
            "centroid_scale": 0.0, "frequency_discount": 0.0,
        }  # fmt: skip
        return cls(**{**printed, **changes})

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from one class per sample, or from samples with several labels."""
        X, Y = self._check_fit(X, Y)
        X = in_its_form(X)
        check_choices(self.objective, self._noise_kind(), self.shared, self.search)
        seed = check_seed(self.random_state)
        settings = deciding_settings(self, _NOT_OF_THE_RESULT, seed)
        mark = fingerprint(X, Y, settings) if self.checkpoint else ""
        sizes = {"features": int(X.shape[1]), "labels": int(Y.shape[1])}
        kept = read_checkpoint(self.checkpoint, Kept, mark, sizes) if self.checkpoint else None
        state = kept.state if kept else None
        seed = state.seed if state else seed
        training, judges = hold_out(X, Y, self.validation_fraction, seed)
        self.counts_, self.feature_length_ = training.counts, typical_length(training.X)
        if state is not None and len(state.bounds) != len(training):
            raise ModelCorruptError(
                f"the checkpoint in {str(self.checkpoint)!r} is of {len(state.bounds):,} samples, "
                f"and there are {len(training):,}: remove it to begin anew"
            )
        if state is None:
            noise, bounds = self._new_noise(training), np.full(len(training), float(Y.shape[1]))
            start = start_at_centroids(training.X, training.Y, float(self.centroid_scale))
            state = State(start, noise, bounds, seed, best_discount=self._fixed_discount or 0.0)
            if judges is not None and self.centroid_scale > 0:
                state.noted(self._judge(judges, state))
        plan = self.plan(self.n_labels_, self.feature_length_, self.refresh_after)
        return self._learn(state, training, judges, plan, mark)

    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> Self:
        """Go on learning from more samples, `epochs` times through them.

        The noise stays as it is, and so does the number of labels, which the first call sets: the
        columns of `Y`, or for a 1-D `Y` as many as `classes` names.
        """
        if not self.__sklearn_is_fitted__():
            return self._first_fit(X, Y, classes)
        X, Y = self._check_more(X, Y)
        scores = self.scores_.in_motion()
        if isinstance(scores, SparseScores):
            scores = scores.widened(X, Y)
        bounds = np.full(X.shape[0], float(self.n_labels_))
        seed = check_seed(self.random_state)
        state = State(scores, self.noise_, bounds, seed, best_discount=self.frequency_discount_)
        more = Part(X, Y)
        self.counts_ = self.counts_ + more.counts
        return self._learn(state, more, None, self.plan(self.n_labels_, self.feature_length_), "")

    def _first_fit(self, X: Any, Y: Any, classes: Any) -> Self:
        if classes is None or not is_single_label(Y):
            return self.fit(X, Y)
        n_labels = check_labels(classes, name="classes").shape[1]
        self.fit(X, check_labels(Y, n_labels=n_labels))
        self.single_label_ = True
        return self

    def predict_log_proba(self, X: Any, labels: Any = None) -> npt.NDArray[np.float32]:
        """log p(y|x) of one label per sample, `(n,)`, or of m given ones, `(n, m)`.

        Normalised over all labels, in blocks of rows. -inf for a label without training samples.
        """
        X = self._check_predict(X)
        if labels is None:
            raise LabelsError(
                f"which of the {self.n_labels_:,} labels? Pass labels=, one id per row or m of "
                "them; predict_topk gives the most probable ones"
            )
        ids = np.asarray(labels)
        if ids.ndim not in (1, 2) or len(ids) != X.shape[0]:
            raise LabelsShapeError(
                f"labels have shape {ids.shape}; expected ({X.shape[0]:,},), one label id for each "
                f"row of X, or ({X.shape[0]:,}, m)"
            )
        flat = check_labels(ids.ravel(), n_labels=self.n_labels_, name="labels").indices
        table = flat.astype(np.int32).reshape(ids.shape if ids.ndim == 2 else (-1, 1))
        return self._answers().log_proba(self._as_trained(X), table).reshape(ids.shape)

    def _topk(self, X: Features, k: int) -> TopK:
        if self.search == "beam":
            if self.noise_.tree is None:
                raise ParameterError('search="beam" needs noise="tree": there is no tree to search')
            return self._answers().among_candidates(self._as_trained(X), k, int(self.beam_width))
        return self._answers().exact(self._as_trained(X), k)

    def _every_label(self, X: Features) -> TopK:
        return self._answers().exact(self._as_trained(X), self.n_labels_)

    def _as_trained(self, X: Features) -> Features:
        return in_its_form(X, sparse=isinstance(self.scores_, SparseScores))

    def _answers(self, state: State | None = None) -> Answers:
        """Those of the fitted model, or of one in training."""
        scores, noise = (state.model, state.noise) if state else (self.scores_, self.noise_)
        corrected = self.objective == "negative_sampling"
        discount = 0.0 if state else self.frequency_discount_
        return Answers(scores, noise, self.counts_, corrected, discount, self.n_jobs)

    def _learn(
        self,
        state: State,
        training: Part,
        judges: Part | None,
        plan: Plan,
        mark: str,
    ) -> Self:
        """`mark` is the training's fingerprint, if it is to be written down."""

        validate = None if judges is None else partial(self._judge, judges)

        def write(state: State) -> None:
            storage.save(Kept(mark, state), str(self.checkpoint))

        with progress_bar("Training", plan.epochs, verbose=self.verbose) as bar:
            bar.advance(state.epoch)
            train(
                state, training.X, training.Y, plan, validate=validate,
                after_epoch=write if mark else None, bar=bar,
            )  # fmt: skip
        self.scores_ = state.best or state.model.at_rest()
        self.noise_ = state.best_noise or state.noise
        self.frequency_discount_ = state.best_discount
        self.validation_scores_ = state.validation_scores
        return self

    def _judge(self, judges: Part, state: State) -> Judgement:
        fixed = self._fixed_discount
        return judges.judge(self._answers(state), DISCOUNTS if fixed is None else (fixed,))

    @property
    def _fixed_discount(self) -> float | None:
        chosen = self.frequency_discount
        return None if isinstance(chosen, str) else float(chosen)

    def plan(self, n_labels: int, feature_length: float, refresh_after: int | None = None) -> Plan:
        """How training goes with these parameters."""
        kind = self._noise_kind()
        uniform = isinstance(kind, str) and kind == "uniform"
        rules = kernel.Rules(
            OBJECTIVES[self.objective], float(self.learning_rate), float(self.regularizer),
            int(self.batch_size), float(np.log(n_labels)) if uniform else 0.0,
            feature_length,
        )  # fmt: skip
        return Plan(
            rules=rules, full=self.objective == "softmax", n_negatives=int(self.n_negatives),
            shared=self.shared, epochs=int(self.epochs), max_seconds=self.max_seconds,
            patience=int(self.patience), refresh_after=refresh_after, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _noise_kind(self) -> Any:
        return noise_for(self.objective, self.noise)

    def _new_noise(self, training: Part) -> Noise:
        kind = self._noise_kind()
        if isinstance(kind, NoiseTree):
            tree = kind
        elif kind == "tree":
            tree = NoiseTree(n_jobs=self.n_jobs, verbose=self.verbose)
        else:
            uniform = kind == "uniform"
            return Noise.uniform(training.Y.shape[1]) if uniform else Noise.by_frequency(training.Y)
        return Noise.of_tree(tree, training.X, training.Y, float(self.frequency_share))

    def _check_more(self, X: Any, Y: Any) -> tuple[Features, csr_matrix]:
        X, Y = self._check_fit_input(X, Y)
        X = check_features(X, n_features=self.n_features_in_, model=type(self).__name__)
        if Y.shape[1] > self.n_labels_:
            raise LabelsError(
                f"Y has {Y.shape[1]:,} labels, and this model was made for {self.n_labels_:,}: "
                "fit anew to add labels"
            )
        Y = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], self.n_labels_))
        return in_its_form(X, sparse=isinstance(self.scores_, SparseScores)), Y
