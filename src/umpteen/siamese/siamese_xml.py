"""SiameseXML: labels by their own texts, and by what each of them learned beyond its text."""

import warnings
from collections.abc import Iterator
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen import storage
from umpteen.base import (
    AddsLabels,
    ExtremeClassifier,
    HasRecipe,
    KnowsFeatures,
    RemovesLabels,
    StartsFromTokenVectors,
    TopK,
)
from umpteen.metrics.propensity import LabelCounts, label_worth
from umpteen.neural.device import find_device
from umpteen.progress import Verbose
from umpteen.ranking import QuadraticRanker
from umpteen.search.vectors import check_ids
from umpteen.siamese.companion import Companion, FusedScores
from umpteen.siamese.evidence import Scoring
from umpteen.siamese.fitting import Fitting, counts_of, split_share, tower_settings
from umpteen.siamese.known_labels import KnownLabels
from umpteen.siamese.label_features import (
    checked_label_features,
    checked_new_labels,
    checked_token_vectors,
    complete,
)
from umpteen.siamese.lexical import LexicalIndex, index_of
from umpteen.siamese.prediction import ByWorth, FixedWeights, LearnedWeights, Predictor
from umpteen.siamese.recipe import (
    PAPER,
    RELEASED,
    SiameseRecipe,
    upgrade_from_1,
    upgrade_from_2,
    upgrade_from_3,
    upgrade_from_4,
)
from umpteen.siamese.resuming import seed_and_mark
from umpteen.siamese.tower import Tower
from umpteen.siamese.training import TrainingSet
from umpteen.siamese.weighing import FEWEST_SAMPLES, ValidationEvidence
from umpteen.siamese.words import WordClassifiers
from umpteen.splitting import validation_split
from umpteen.storage import Given, NotEmpty, Shape, Sizes, Within
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    as_csr,
    check_k,
    check_rows,
)

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

_N_COLUMNS, _N_NEWCOMER_COLUMNS = 5, 2  # of evidence, without what some models do not have
_NO_TAIL = (
    f"tail has no effect without learned weights, which need {FEWEST_SAMPLES:,} samples, and a "
    "validation split with labels"
)


@storage.storable(
    version=5,
    upgrades={1: upgrade_from_1, 2: upgrade_from_2, 3: upgrade_from_3, 4: upgrade_from_4},
)
class SiameseXML(
    StartsFromTokenVectors, AddsLabels, RemovesLabels, KnowsFeatures, HasRecipe, ExtremeClassifier
):
    """A classifier that embeds samples and label texts in one space, for rare and new labels.

    The method was published by Dahiya et al. (2021). One encoder computes vectors of samples and of
    label features, so a label can be found by its text even if it has few samples or none. The
    modules are:

    - I, `"embed"`: trains the encoder on batches of labels, each with one of its samples, against
      the other samples of the batch.
    - II, `"mine"`: finds the nearest labels of each sample, by text and by centroid. Without it,
      Modules III and IV learn from random negatives only.
    - III, `"refine"`: learns a classifier per label, which starts between its text and its
      centroid. Beside it, each label learns a sparse linear classifier on the features themselves,
      for which the label's text is one more sample.
    - IV, `"joint"`: does the same while the vectors of features are trained, too. It is left out
      if answers on the validation split are better without it.

    **Scores.** Candidates are the nearest labels by the sum of their three vectors, the labels that
    share the most informative words with the sample, and the most frequent labels. A ranker
    combines the label's two classifiers, the cosines to its text and to its centroid, shared words
    (also compared with the label that shares most) and frequency. It learns on a validation split,
    with towers that were not trained on it: a tenth of the samples, or 1,000 if that is more, but
    at most a quarter. Scores are scaled to (0, 1). Then the towers are trained again on all
    samples. Labels without samples have a ranker of their own, which learns from labels that were
    hidden, and ranks them as high as is possible for at most 0.2 % of nDCG@5 on the split. With
    fewer than 2,000 samples, or `recipe__weights="fixed"`, the weights are those of the paper.

    **Label features** use the same vocabulary as `X`. A label without features is represented by
    the centroid of its samples, and so are all labels if `fit` gets no label features. A label
    with neither features nor samples is never predicted. `add_labels` adds labels without training.

    To combine it with a tree, use `umpteen.Ensemble([SiameseXML(), LabelTree()])`.

    Parameters
    ----------
    dim : dimension of the vectors.
    epochs, learning_rate : of Module I; an epoch has as many draws as there are labels or samples,
        whichever are more.
    tail : above 0, scores are divided by propensity^`tail`, in favour of rare labels; try 0.5 to 1
        for PSP@k. It needs learned weights, and may be changed after `fit`.
    n_models : number of towers, with different random starts, whose cosines are averaged; the
        paper's SiameseXML-3 has 3.
    search : `"auto"` compares samples in a batch with all labels, and uses a graph search for
        single samples if there are many labels; it may miss a label that `"exact"` finds, so that a
        few lists differ from those of a batch. `"hnsw"` always uses the graph.
    recipe : a `umpteen.siamese.SiameseRecipe` with settings that few users change; `paper` and
        `released` return models with other recipes.
    checkpoint : folder to which training is saved every few minutes, and continued from.
    device : "auto" is a GPU if there is one, else "cpu".

    >>> X = csr_matrix([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], dtype=float)
    >>> texts = csr_matrix([[1, 0, 0, 0], [0, 0, 0, 1]], dtype=float)
    >>> model = SiameseXML(dim=16, random_state=0).fit(X, [[0], [0], [1]], label_features=texts)
    >>> model.predict_topk(X, k=1).labels.ravel()
    array([0, 0, 1], dtype=int32)
    >>> model.add_labels(label_features=[[0, 0, 1, 0]]).predict_topk([[0, 0, 1, 0]], k=1).labels
    array([[2]], dtype=int32)
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("checkpoint",)
    _recipe_class: ClassVar[type[SiameseRecipe]] = SiameseRecipe
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "dim": [Interval(Integral, 1, None, closed="left")],
        "epochs": [Interval(Integral, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "tail": [Interval(Real, 0, 1, closed="both")],
        "n_models": [Interval(Integral, 1, None, closed="left")],
        "search": [StrOptions({"auto", "exact", "hnsw"})],
        "recipe": [SiameseRecipe, None],
        "checkpoint": [str, None],
        "device": [str],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    towers_: Annotated[list[Annotated[Tower, Given("features", "labels")]], NotEmpty()]
    ranker_: QuadraticRanker | None  # None: fixed weights
    word_classifiers_: Annotated[WordClassifiers, Given("features", "labels")] | None
    newcomer_ranker_: QuadraticRanker | None  # of labels without samples; None: as of the others
    companion_: Annotated[Companion, Given("features")] | None  # only in models of version 0.1
    label_features_: Annotated[csr_matrix, Shape("labels", "features")]  # completed by centroids
    learned_texts_: Annotated[csr_matrix, Shape("learned labels", "features")] | None
    label_counts_: Annotated[npt.NDArray[np.int64], Shape("labels"), Within(0, 2**62)]
    n_samples_: Annotated[int, Within(1, 2**62)]
    history_: list[dict[str, list[float]]]  # of each tower, the losses of each module's epochs
    _lexical: LexicalIndex  # of label_features_ and label_counts_
    _learned: LexicalIndex | None  # of learned_texts_

    def __init__(
        self,
        *,
        dim: int = 256,
        epochs: int = 6,
        learning_rate: float = 5e-3,
        tail: float = 0.0,
        n_models: int = 1,
        search: str = "auto",
        recipe: SiameseRecipe | None = None,
        checkpoint: str | None = None,
        device: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.dim = dim
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.tail = tail
        self.n_models = n_models
        self.search = search
        self.recipe = recipe
        self.checkpoint = checkpoint
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return a model with the supplement's sizes and rates, and the released code's epochs.

        `changes` are parameters, or settings of the recipe such as `recipe__batch_size`.
        """
        model = cls(dim=300, learning_rate=5e-3, epochs=50, recipe=PAPER)
        return model.set_params(**changes)

    @classmethod
    def released(cls, **changes: Any) -> Self:
        """Return the paper's settings with some, but not all, choices of its released code.

        These are GELU, no residual block, only the hardest negative of a batch, no mined negatives
        in Module I, no random negatives in Module III, and other learning rates. The notes on the
        paper, `papers/siamese`, list what else the released code does; among other things, it has
        a residual block in Module III, a term for centroids in the loss of Module I, label vectors
        that are smoothed by random walks, and scores that are combined by exp and sigmoid.
        """
        return cls.paper(**{**RELEASED, **changes})

    def fit(self, X: Any, Y: Any, label_features: Any = None, token_vectors: Any = None) -> Self:
        """Learn from samples, their labels and label features `(n_labels, n_features)`.

        `token_vectors` `(n_features, dim)` are the initial vectors of features, such as pretrained
        word vectors; rows of zeros, and by default all, are random.
        """
        self._fit(X, Y, label_features, token_vectors, None)
        return self

    def fit_validated(
        self, X: Any, Y: Any, validation: Any, k: int = 20, label_features: Any = None,
        token_vectors: Any = None,
    ) -> TopK:  # fmt: skip
        """Fit, and return answers to the validation split from a model that was not trained on it.

        If weights are learned, this costs no more than `fit`: the answers come from the towers that
        weights are learned with, and the weights of an answer are learned on the other half of the
        split.
        """
        k = check_k(k)
        checked, labels = self._check_fit_input(X, Y)
        split = check_rows(validation, checked.shape[0], "validation")
        if self._learns_weights(checked.shape[0]) and labels[~split].nnz:
            evidence = self._fit(X, Y, label_features, token_vectors, split)
            answers = evidence.answers(min(k, self.n_labels_)) if evidence else None
            if answers is not None:
                return answers
        trial = clone(self).fit(checked[~split], labels[~split], label_features, token_vectors)
        self.fit(X, Y, label_features, token_vectors)
        found: TopK = trial.predict_topk(checked[split], k)
        return found

    def _fit(
        self, X: Any, Y: Any, label_features: Any, token_vectors: Any, split: Mask | None
    ) -> ValidationEvidence | None:
        """Fit on all samples, with weights learned from a validation split if there are enough."""
        find_device(self.device)
        checked, labels = self._check_fit_input(X, Y)
        texts = checked_label_features(label_features, checked.shape[1], labels.shape[1])
        table = checked_token_vectors(token_vectors, checked.shape[1], self.dim)
        rows = as_csr(checked)
        whole = TrainingSet.of(rows, complete(texts, rows, labels), labels)
        learns = self._learns_weights(rows.shape[0])
        seed, mark = seed_and_mark(self, whole, table, split, learns)
        if split is None and learns:
            share = split_share(rows.shape[0])
            split = validation_split(whole.X, labels, seed, fraction=share, copies_together=True)
        self._check_fit(X, Y)
        fitting = Fitting(
            partial(tower_settings, self, mark), self._used_recipe(), self.n_models, self.n_jobs,
            self.verbose, texts, table, seed,
        )  # fmt: skip
        fitted = fitting.run(whole, split)
        if self.tail and fitted.ranker is None:
            warnings.warn(_NO_TAIL, stacklevel=3)
        self.ranker_, self.newcomer_ranker_ = fitted.ranker, fitted.newcomer_ranker
        self.companion_, self.learned_texts_ = None, fitted.learned_texts
        self.__dict__.pop("_learned", None)
        self.history_ = [each.losses for each in fitted.towers]
        self.n_samples_ = int(labels.shape[0])
        search = {"method": self.search, "use": "single", "n_jobs": self.n_jobs}
        towers = [each.tower.searched(**search) for each in fitted.towers]
        counts = counts_of(labels)
        self._set_labels(KnownLabels(towers, whole.label_features, counts, fitted.words))
        return fitted.evidence

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a number of labels or columns that does not fit."""
        if self.companion_ is not None and self.companion_.classifier.n_labels_ > self.n_labels_:
            yield f"has {self.n_labels_} labels, and its companion more"
        n_columns = _N_COLUMNS + (self.word_classifiers_ is not None)
        n_columns += self.learned_texts_ is not None
        rankers = (self.ranker_, n_columns), (self.newcomer_ranker_, _N_NEWCOMER_COLUMNS)
        for ranker, expected in rankers:
            if ranker is not None and len(ranker.means) != expected:
                yield f"has a ranker of {len(ranker.means)} columns; expected {expected}"
        if len({tower.biases is None for tower in self.towers_}) > 1:
            yield "has towers of cosines and others of log-odds"

    def encode(self, X: Any) -> FloatArray:
        """Return the first tower's unit vectors of samples or label features, `(n, dim)`."""
        X = as_csr(self._check_predict(X))
        encoder = self.towers_[0].encoder
        return encoder.lift(encoder.bags(X))

    @property
    def label_embeddings_(self) -> FloatArray:
        """Vectors of the label texts, in the space of `encode`: `(n_labels, dim)`."""
        self._check_fitted()
        tower = self.towers_[0]
        return tower.encoder.lift(tower.texts)

    @property
    def classifiers_of_labels_(self) -> FloatArray:
        """The learned vector of each label, `(n_labels, dim)`; of length 1 if it is a cosine."""
        self._check_fitted()
        return self.towers_[0].classifiers

    def add_labels(
        self, X: Any = None, Y: Any = None, label_features: Any = None, *,
        negative_weight: float = 1.0,
    ) -> Self:  # fmt: skip
        """Add labels by their features, without training; they are numbered from `n_labels_` on.

        With samples `X` (`Y` has a column for each new label), new labels get centroids, too, and a
        label without features is found by its centroid. `negative_weight` has no effect, since
        nothing is trained.
        """
        self._check_fitted()
        features, samples, labels = checked_new_labels(self, X, Y, label_features)
        return self._set_labels(self._labels.added(features, samples, labels, self.n_samples_))

    def remove_labels(self, labels: Any) -> Self:
        """Remove labels: they are not predicted any more. The ids of the others stay."""
        self._check_fitted()
        ids = check_ids(labels, self.n_labels_)
        return self._set_labels(self._labels.removed(ids))

    def labels_with(self, X: Any) -> csr_matrix:
        """Return `(n, n_labels)` with a 1 for each label that shares a feature with the sample."""
        X = as_csr(self._check_predict(X))
        found = csr_matrix(abs(X) @ abs(self.label_features_).T)
        found.eliminate_zeros()
        found.sort_indices()
        found.data[:] = 1
        return found

    def _topk(self, X: Features, k: int) -> TopK:
        now = vars(self).copy()  # of one moment: another thread may add labels
        lexical = now.get("_lexical") or LexicalIndex(now["label_features_"], now["label_counts_"])
        self.__dict__.setdefault("_lexical", lexical)  # if the model was just loaded
        is_learned = self._has_learned_weights()
        words, learned = None, None
        if is_learned:
            words = now["word_classifiers_"]
            learned = now.get("_learned") or index_of(now["learned_texts_"], lexical)
            self.__dict__.setdefault("_learned", learned)
        companion = now["companion_"]
        predictor = Predictor(
            now["towers_"], lexical, words, learned, int(self._used_recipe().shortlist), is_learned,
            None if companion is None else companion.classifier, self.n_jobs, self.verbose,
        )  # fmt: skip
        return predictor.topk(as_csr(X), k, self._scoring(lexical.counts))

    @property
    def _labels(self) -> KnownLabels:
        return KnownLabels(
            self.towers_, self.label_features_, self.label_counts_, self.word_classifiers_
        )

    def _set_labels(self, labels: KnownLabels) -> Self:
        """Have other labels, in one step."""
        self.__dict__.update(
            towers_=labels.towers, label_features_=labels.features, label_counts_=labels.counts,
            word_classifiers_=labels.words, n_labels_=len(labels.counts),
            _lexical=LexicalIndex(labels.features, labels.counts),
        )  # fmt: skip
        return self

    def _scoring(self, counts: npt.NDArray[np.int64]) -> Scoring:
        alpha, learned = float(self._used_recipe().alpha), self._has_learned_weights()
        scoring: Scoring
        if self.companion_ is not None:
            scoring = FusedScores(self.companion_, alpha, learned, counts)
        elif self.ranker_ is None or not learned:
            scoring = FixedWeights(alpha)
        else:
            scoring = LearnedWeights(self.ranker_, self.newcomer_ranker_)
        worth = label_worth(LabelCounts(counts, self.n_samples_), self.tail) if learned else None
        return scoring if worth is None else ByWorth(scoring, worth)

    def _has_learned_weights(self) -> bool:
        trees = None if self.companion_ is None else self.companion_.trees
        fixed = self._used_recipe().weights == "fixed"
        return not fixed and (self.ranker_ is not None or trees is not None)

    def _learns_weights(self, n_samples: int) -> bool:
        return self._used_recipe().weights == "learned" and n_samples >= FEWEST_SAMPLES
