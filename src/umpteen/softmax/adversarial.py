"""AdversarialSoftmax: a softmax over very many classes, trained on a few of them at a time."""

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen import storage
from umpteen.base import ExtremeClassifier, HasRecipe, TopK
from umpteen.errors import LabelsError, ModelCorruptError, ParameterError
from umpteen.kernels import sampled_softmax as kernel
from umpteen.progress import Verbose, progress_bar
from umpteen.softmax.calibration import calibrate
from umpteen.softmax.initial_weights import (
    centroid_scores,
    initial_scale,
    root_mean_square_length,
)
from umpteen.softmax.noise import Noise
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.softmax.prediction import NOT_CALIBRATED, Answers, Calibration
from umpteen.softmax.settings import (
    OBJECTIVES,
    SoftmaxRecipe,
    check_combination,
    resolve_noise,
    upgrade_from_1,
    upgrade_from_2,
    upgrade_from_3,
)
from umpteen.softmax.split import Samples, ValidationScore, split_samples
from umpteen.softmax.training import Checkpoint, Schedule, State, train
from umpteen.softmax.weights import DenseScores, SparseScores, in_its_form
from umpteen.storage import Given, Shape, Within
from umpteen.storage.checkpoints import deciding_settings, fingerprint, read_checkpoint
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    check_asked_labels,
    check_features,
    check_labels,
    check_seed,
    is_single_label,
)

_NOT_OF_THE_RESULT = ("checkpoint", "n_jobs", "verbose", "epochs", "beam_width", "recipe")

_START_KEPT = (
    "no epoch of training was better than the start at centroids, whose precision at 1 on the "
    "validation split is {:.3f}: the start was kept. Try a smaller learning_rate, or more samples"
)

DISCOUNTS: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

_POSITIVE = [Interval(Integral, 1, None, closed="left")]


@storage.storable(version=4, upgrades={1: upgrade_from_1, 2: upgrade_from_2, 3: upgrade_from_3})
class AdversarialSoftmax(HasRecipe, ExtremeClassifier):
    """A linear softmax over thousands to millions of classes, trained at logarithmic cost.

    Instead of comparing a sample's class with all others, each step compares it with a few random
    classes, the negatives, and corrects for how likely these were to be drawn.

    By default, negatives of sparse rows are drawn by frequency. Those of dense rows are drawn from
    a small model of the data, `NoiseTree`, which prefers hard negatives. On dense rows it was one
    to two points more accurate on average; on words it was no better than frequency noise, and
    slower (`papers/adversarial/README.md` has the figures). The loss is a "sampled_softmax",
    which weights each negative by the inverse of its probability.

    `AdversarialSoftmax.paper()` is the method of Bamler and Mandt (2020): the tree alone, and
    negative sampling, whose scores are corrected in prediction (Eq. 5).

    The paper's baselines are one argument away: `objective="negative_sampling"` with
    `noise="uniform"` or `"frequency"`, `objective="nce"`, `"one_vs_each"` (Titsias 2016),
    `"augment_reduce"` (Ruiz et al. 2018), and `"softmax"`, which uses every class in every step.

    **Scores** are probabilities that add up to 1 over all classes (with `beam_width`: over the
    candidates). They are calibrated: a temperature, a weight of the classes' frequencies and a
    bend are fitted to the validation split. `predict_log_proba` returns the logarithms of the same
    probabilities. A sample may have several labels: each visit draws one of them, and they share
    the total probability of 1.

    **Features.** If more than a third of all values are non-zero, each class has a weight for each
    feature. For sparser rows, a class has weights only for the features of its own samples
    (`docs/softmax.md` says why), so a model is about as large as its data.

    Parameters
    ----------
    noise : "frequency", "uniform", "tree", or a `NoiseTree` with other settings. "auto" is
        "frequency" for sparse rows, "tree" for dense rows, and "uniform" for the objectives that
        are defined with it.
    objective : the loss of a step, see above.
    n_negatives : number of classes drawn in a step.
    learning_rate : learning rate of Adagrad for samples of unit length. Other samples are scaled
        (`feature_length_`), so the scale of `X` does not matter.
    epochs : maximum number of passes over the samples; the recipe sets early stopping.
    frequency_discount : `predict_topk` subtracts `frequency_discount` times the logarithm of a
        class's frequency from its calibrated score. This favours rare classes, but the first class
        may no longer be the most probable one. "auto" is the value with the best precision on the
        validation split.
    recipe : a `umpteen.softmax.SoftmaxRecipe` with training settings that few users change: batch
        size, regulariser, early stopping, time limit. `set_params` takes `recipe__batch_size` and
        so on.
    beam_width : None compares all classes; a number searches the noise tree with a beam of that
        width, and compares the `2 * beam_width` classes that it finds. May be changed after `fit`.
    checkpoint : folder to which the state is written after each epoch. `fit` with the same data
        and parameters continues from it, to the same bits.

    Attributes
    ----------
    noise_ : the noise that negatives are drawn from; `noise_.tree` is the fitted `NoiseTree`, if
        any.
    scores_ : `weights` and `biases` of each class.
    counts_, feature_length_ : number of training samples of each class, and the length of samples
        (root mean square).
    frequency_discount_ : the discount that is used.
    temperature_, prior_weight_, bend_ : the calibration. Scores s are divided by `temperature_`;
        then `prior_weight_` times the logarithm of the class's frequency is added, and `bend_`
        times log(1 + abs(s)) with the sign of s, which makes large scores count less.
    validation_scores_ : precision at 1 on the validation split: of the initial weights, if they
        start at centroids, and after each epoch.

    >>> X = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]] * 5
    >>> model = AdversarialSoftmax().fit(X, [0, 1, 2, 0] * 5)
    >>> model.predict_topk([[0, 1, 0], [0, 0, 1]], k=1).labels.ravel()
    array([1, 2], dtype=int32)
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("checkpoint",)
    _recipe_class: ClassVar[type[SoftmaxRecipe]] = SoftmaxRecipe
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "noise": [StrOptions({"auto", "tree", "frequency", "uniform"}), NoiseTree],
        "objective": [StrOptions(set(OBJECTIVES))],
        "n_negatives": _POSITIVE,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "epochs": _POSITIVE,
        "frequency_discount": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "recipe": [SoftmaxRecipe, None],
        "beam_width": [Interval(Integral, 1, None, closed="left"), None],
        "checkpoint": [str, PathLike, None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    noise_: Annotated[Noise, Given("features", "labels")]
    scores_: Annotated[DenseScores | SparseScores, Given("features", "labels")]
    counts_: Annotated[npt.NDArray[np.int64], Shape("labels")]
    feature_length_: Annotated[float, Within(1e-60, 1e60)]
    frequency_discount_: float
    temperature_: Annotated[float, Within(1e-3, 1e3)]
    prior_weight_: Annotated[float, Within(-1e3, 1e3)]
    bend_: Annotated[float, Within(-1e3, 1e3)]
    validation_scores_: list[float]

    def __init__(
        self,
        *,
        noise: Any = "auto",
        objective: str = "sampled_softmax",
        n_negatives: int = 5,
        learning_rate: float = 0.3,
        epochs: int = 30,
        frequency_discount: Any = 0.0,
        recipe: SoftmaxRecipe | None = None,
        beam_width: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.noise = noise
        self.objective = objective
        self.n_negatives = n_negatives
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.frequency_discount = frequency_discount
        self.recipe = recipe
        self.beam_width = beam_width
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the method of the paper: one negative from a tree with regulariser 0.1."""
        printed = {
            "noise": NoiseTree(regularizer=0.1), "objective": "negative_sampling",
            "n_negatives": 1, "learning_rate": 0.01, "frequency_discount": 0.0,
            "recipe": SoftmaxRecipe(
                regularizer=1e-3, centroid_scale=0.0, frequency_share=0.0, calibrate=False
            ),
        }  # fmt: skip
        return cls(**{**printed, **changes})

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from one class per sample, or from samples with several labels."""
        X, Y = self._check_fit(X, Y)
        X = in_its_form(X)
        check_combination(self.objective, self._noise_for(X), self.beam_width)
        recipe, seed = self._used_recipe(), check_seed(self.random_state)
        settings = deciding_settings(self, _NOT_OF_THE_RESULT, seed)
        settings["recipe"] = replace(recipe, max_seconds=None)
        mark = fingerprint(X, Y, settings) if self.checkpoint else ""
        sizes = {"features": int(X.shape[1]), "labels": int(Y.shape[1])}
        found = (
            read_checkpoint(self.checkpoint, Checkpoint, mark, sizes) if self.checkpoint else None
        )
        state = found.state if found else None
        seed = state.seed if state else seed
        training, validation = split_samples(X, Y, recipe.validation_fraction, seed)
        self.counts_ = training.counts
        self.feature_length_ = root_mean_square_length(training.X)
        if state is not None and len(state.bounds) != len(training):
            raise ModelCorruptError(
                f"the checkpoint in {str(self.checkpoint)!r} has {len(state.bounds):,} samples, "
                f"but there are {len(training):,}: remove it to start again"
            )
        if state is None:
            noise, bounds = self._new_noise(training), np.full(len(training), float(Y.shape[1]))
            scale, penalty_factor = initial_scale(recipe.centroid_scale, training, validation)
            start = centroid_scores(training.X, training.Y, scale)
            state = State(start, noise, bounds, seed, penalty_factor=penalty_factor)
            if validation is not None and scale > 0:
                state.record(self._validate(validation, state))
        self._learn(state, training, validation, mark)
        if state.start_is_best:
            warnings.warn(_START_KEPT.format(state.start_score), stacklevel=2)
        return self

    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> Self:
        """Continue training on more samples, for `epochs` passes.

        The noise and the number of labels do not change. The first call sets the number of labels:
        the columns of `Y`, or, for a 1-D `Y`, the number of `classes`.
        """
        if not self.__sklearn_is_fitted__():
            return self._first_fit(X, Y, classes)
        X, Y = self._check_more(X, Y)
        scores = self.scores_.trainable()
        if isinstance(scores, SparseScores):
            scores = scores.widened(X, Y)
        bounds = np.full(X.shape[0], float(self.n_labels_))
        seed = check_seed(self.random_state)
        state = State(scores, self.noise_, bounds, seed, best_discount=self.frequency_discount_)
        more = Samples(X, Y)
        self.counts_ = self.counts_ + more.counts
        return self._learn(state, more, None, "", self._calibration)

    def _first_fit(self, X: Any, Y: Any, classes: Any) -> Self:
        if classes is None or not is_single_label(Y):
            return self.fit(X, Y)
        n_labels = check_labels(classes, name="classes").shape[1]
        self.fit(X, check_labels(Y, n_labels=n_labels))
        self.single_label_ = True
        return self

    def predict_log_proba(self, X: Any, labels: Any = None) -> npt.NDArray[np.float32]:
        """Return log p(y|x) of one label per sample, `(n,)`, or of m given ones, `(n, m)`.

        It is normalised over all labels; -inf for a label without training samples.
        """
        X = self._check_predict(X)
        asked = check_asked_labels(labels, X.shape[0], self.n_labels_)
        found = self._answers().log_proba(self._as_trained(X), asked)
        return found.reshape(np.shape(labels))

    def _topk(self, X: Features, k: int) -> TopK:
        if self.beam_width is not None:
            if self.noise_.tree is None:
                raise ParameterError(
                    f"beam_width={self.beam_width} needs a tree to search, and this model was "
                    'fitted without one: fit with noise="tree", or set beam_width=None'
                )
            return self._answers().among_candidates(self._as_trained(X), k, int(self.beam_width))
        return self._answers().exact(self._as_trained(X), k)

    def _every_label(self, X: Features) -> TopK:
        return self._answers().exact(self._as_trained(X), self.n_labels_)

    def _as_trained(self, X: Features) -> Features:
        return in_its_form(X, sparse=isinstance(self.scores_, SparseScores))

    def _answers(self, state: State | None = None) -> Answers:
        """Return how the fitted model answers, or one in training."""
        if state:
            return self._plain_answers(state.model, state.noise)
        return replace(
            self._plain_answers(self.scores_, self.noise_), discount=self.frequency_discount_,
            calibration=self._calibration,
        )  # fmt: skip

    @property
    def _calibration(self) -> Calibration:
        return Calibration(1 / self.temperature_, self.prior_weight_, self.bend_)

    def _plain_answers(self, scores: DenseScores | SparseScores, noise: Noise) -> Answers:
        corrected = self.objective == "negative_sampling"
        return Answers(scores, noise, self.counts_, corrected, 0.0, self.n_jobs)

    def _learn(
        self,
        state: State,
        training: Samples,
        validation: Samples | None,
        mark: str,
        calibration: Calibration | None = None,
    ) -> Self:
        """Train on; `mark` is the training's fingerprint if checkpoints are written, or empty."""
        schedule = self._schedule(training.X)
        validate = None if validation is None else partial(self._validate, validation)

        def write(state: State) -> None:
            storage.save(Checkpoint(mark, state), str(self.checkpoint))

        with progress_bar("Training", schedule.epochs, verbose=self.verbose) as bar:
            bar.advance(state.epoch)
            train(
                state, training.X, training.Y, schedule, validate=validate,
                after_epoch=write if mark else None, bar=bar,
            )  # fmt: skip
        self.scores_ = state.best or state.model.compact()
        self.noise_ = state.noise
        fixed = self._fixed_discount
        self.frequency_discount_ = state.best_discount if fixed is None else fixed
        start = [state.start_score] if state.start_score >= 0 else []
        self.validation_scores_ = start + state.validation_scores
        if validation is not None and self._used_recipe().calibrate:
            plain = self._plain_answers(self.scores_, self.noise_)
            calibration = calibrate(plain, validation.X, validation.Y)
            if fixed is None:  # on top of the calibration, which weighs frequencies already
                calibrated = replace(plain, calibration=calibration)
                self.frequency_discount_ = validation.evaluate(calibrated, DISCOUNTS).discount
        sharpness, self.prior_weight_, self.bend_ = calibration or NOT_CALIBRATED
        self.temperature_ = 1 / sharpness
        return self

    def _validate(self, validation: Samples, state: State) -> ValidationScore:
        """Return the precision with the best discount where one is chosen, or will be in effect.

        The calibration weighs frequencies only after training: an epoch is not worse because its
        scores do not yet.
        """
        fixed, discounts = self._fixed_discount, DISCOUNTS
        if fixed is not None and (fixed or not self._used_recipe().calibrate):
            discounts = (fixed,)
        return validation.evaluate(self._answers(state), discounts)

    @property
    def _fixed_discount(self) -> float | None:
        chosen = self.frequency_discount
        return None if isinstance(chosen, str) else float(chosen)

    def _schedule(self, X: Features) -> Schedule:
        noise, recipe = self._noise_for(X), self._used_recipe()
        uniform = isinstance(noise, str) and noise == "uniform"
        rules = kernel.Rules(
            OBJECTIVES[self.objective], float(self.learning_rate), float(recipe.regularizer),
            int(recipe.batch_size), float(np.log(self.n_labels_)) if uniform else 0.0,
            self.feature_length_,
        )  # fmt: skip
        return Schedule(
            rules=rules, full=self.objective == "softmax", n_negatives=int(self.n_negatives),
            epochs=int(self.epochs), max_seconds=recipe.max_seconds,
            patience=int(recipe.patience), n_jobs=self.n_jobs,
        )  # fmt: skip

    def _noise_for(self, X: Features) -> Any:
        return resolve_noise(self.objective, self.noise, X)

    def _new_noise(self, training: Samples) -> Noise:
        noise = self._noise_for(training.X)
        if isinstance(noise, str) and noise == "tree":
            noise = NoiseTree(n_jobs=self.n_jobs, verbose=self.verbose)
        share = float(self._used_recipe().frequency_share)
        return Noise.of(noise, training.X, training.Y, share)

    def _check_more(self, X: Any, Y: Any) -> tuple[Features, csr_matrix]:
        X, Y = self._check_fit_input(X, Y)
        X = check_features(X, n_features=self.n_features_in_, model=type(self).__name__)
        if Y.shape[1] > self.n_labels_:
            raise LabelsError(
                f"Y has {Y.shape[1]:,} labels, but this model was fitted with {self.n_labels_:,}: "
                "fit again to add labels"
            )
        Y = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], self.n_labels_))
        return in_its_form(X, sparse=isinstance(self.scores_, SparseScores)), Y
