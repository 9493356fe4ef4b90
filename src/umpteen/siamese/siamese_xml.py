"""SiameseXML: labels by their own texts, and by what each of them learned beyond its text."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, vstack
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
from umpteen.errors import FeaturesError, ParameterError
from umpteen.metrics.propensity import LabelCounts, label_worth
from umpteen.neural.checkpoint import Keeper
from umpteen.neural.device import find_device
from umpteen.progress import Verbose
from umpteen.ranking import QuadraticRanker
from umpteen.search.vectors import check_ids
from umpteen.siamese.companion import Companion, FusedScores
from umpteen.siamese.evidence import Scoring
from umpteen.siamese.label_features import (
    centroids_of,
    checked_label_features,
    complete,
    no_rows,
)
from umpteen.siamese.lexical import LexicalIndex
from umpteen.siamese.prediction import ByWorth, FixedWeights, LearnedWeights, Predictor
from umpteen.siamese.recipe import (
    MODULES,
    SiameseRecipe,
    upgrade_from_1,
    upgrade_from_2,
    upgrade_from_3,
    upgrade_from_4,
)
from umpteen.siamese.tower import Tower, log_odds
from umpteen.siamese.training import TowerSettings, TrainedTower, TrainingSet, train_tower
from umpteen.siamese.weighing import FEWEST_SAMPLES, ValidationEvidence, hidden_pairs, newcomers
from umpteen.siamese.words import WordClassifiers
from umpteen.splitting import validation_split
from umpteen.storage import Given, NotEmpty, Shape, Sizes, Within
from umpteen.storage.checkpoints import deciding_settings, fingerprint
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    as_csr,
    check_describes,
    check_features,
    check_k,
    check_labels,
    check_rows,
    check_seed,
    unit_rows,
)

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

_N_COLUMNS, _N_NEWCOMER_COLUMNS = 5, 2  # of evidence, without what some models do not have
_SPLIT, _SPLIT_SAMPLES, _LARGEST_SPLIT = 0.1, 1_000, 0.25  # shares, and samples to learn weights of
_NO_TAIL = f"tail has no effect without learned weights, which need {FEWEST_SAMPLES:,} samples"
_NOT_OF_THE_RESULT = ("tail", "search", "checkpoint", "device", "n_jobs", "verbose")


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
    hidden, and ranks them as high as costs no nDCG@5 on the split. With fewer than 2,000 samples,
    or `recipe__weights="fixed"`, the weights are those of the paper.

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
        printed = SiameseRecipe(
            modules=("embed", "mine", "refine"), batch_size=4096, refine_learning_rate=5e-4,
            refine_epochs=20, joint_epochs=20, shortlist=500, n_hard=500, n_random=100, alpha=0.9,
            weights="fixed", loss="contrastive", likelihood=(0.9, 1.5),
            refine_likelihood=(0.75, 3.0),
            dropout=0.0, start="text", classifier="cosine", label_power=0.45, n_negatives=4,
            mine_every=4, residual=True, activation="relu", word_classifiers=False,
        )  # fmt: skip
        model = cls(dim=300, learning_rate=5e-3, epochs=50, recipe=printed)
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
        code = {
            "recipe__activation": "gelu", "recipe__residual": False, "recipe__n_negatives": 1,
            "recipe__mine_every": 0, "recipe__n_random": 0, "recipe__refine_learning_rate": 2e-4,
            "learning_rate": 0.01,
        }  # fmt: skip
        return cls.paper(**{**code, **changes})

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
        table = self._check_token_vectors(token_vectors, checked.shape[1])
        rows = as_csr(checked)
        whole = TrainingSet.of(rows, complete(texts, rows, labels), labels)
        seed, mark = self._seed_and_mark(whole, table, split)
        if split is None and self._learns_weights(rows.shape[0]):
            share = _split_share(rows.shape[0])
            split = validation_split(whole.X, labels, seed, fraction=share, copies_together=True)
        self._check_fit(X, Y)
        evidence, self.ranker_, self.newcomer_ranker_, self.companion_ = None, None, None, None
        words, learned = None, None
        recipe = self._used_recipe()
        if split is not None:
            evidence, keeps_joint = self._validated(whole, split, texts, table, seed, mark)
            self.ranker_ = evidence.ranker()
            self.newcomer_ranker_ = evidence.newcomer_ranker(self.ranker_)
            if not keeps_joint:
                modules = tuple(name for name in recipe.modules if name != "joint")
                recipe = replace(recipe, modules=modules)
        if self.tail and self.ranker_ is None:
            warnings.warn(_NO_TAIL, stacklevel=3)
        made = self._trained_towers(whole, table, recipe, "whole", seed, mark)
        if self.ranker_ is not None:
            words = self._trained_words(whole, texts, made, seed)
            learned = _learned_texts(whole)
        search = {"method": self.search, "use": "single", "n_jobs": self.n_jobs}
        self.history_ = [each.losses for each in made]
        self.n_samples_ = int(labels.shape[0])
        self.learned_texts_ = None if learned is None else learned.features
        self._learned = learned
        towers = [each.tower.searched(**search) for each in made]
        self._set_labels(towers, whole.label_features, _counts(labels), words)
        return evidence

    def _validated(
        self, whole: TrainingSet, split: Mask, texts: csr_matrix, table: FloatArray | None,
        seed: int, mark: str,
    ) -> tuple[ValidationEvidence, bool]:  # fmt: skip
        """The evidence of towers without the split, and whether Module IV made it better.

        Some labels are hidden from these towers, so that the split shows what is known of labels
        that have no samples yet.
        """
        hidden = newcomers(whole.Y[~split], texts, seed)
        part = whole.rows(~split, texts, hidden)
        made = self._trained_towers(part, table, self._used_recipe(), "part", seed, mark)
        counts, Y = _counts(part.Y), csr_matrix(whole.Y[split])
        lexical = LexicalIndex(part.label_features, counts)
        words = self._trained_words(part, texts, made, seed)
        learned = _learned_texts(part)

        def evidence(towers: list[Tower]) -> ValidationEvidence:
            predictor = self._predictor(towers, lexical, words, learned, beyond_vectors=True)
            further = hidden_pairs(predictor, part.X, csr_matrix(whole.Y[~split]), hidden)
            return ValidationEvidence.of(predictor, whole.X[split], Y, counts, hidden, further)

        found = evidence([each.tower for each in made])
        earlier = [each.before_joint for each in made if each.before_joint is not None]
        if not earlier:
            return found, True
        before = evidence(earlier)
        better = found.quality() > before.quality()
        return (found if better else before), better

    def _trained_towers(
        self, data: TrainingSet, table: FloatArray | None, recipe: SiameseRecipe, stage: str,
        seed: int, mark: str,
    ) -> list[TrainedTower]:  # fmt: skip
        return [
            train_tower(
                data, table, self._settings(recipe, f"{stage}-{number}", mark), seed + number
            )
            for number in range(self.n_models)
        ]

    def _trained_words(
        self, data: TrainingSet, texts: csr_matrix, made: list[TrainedTower], seed: int
    ) -> WordClassifiers | None:
        """The labels' classifiers of single words, with the hard negatives of all towers."""
        recipe = self._used_recipe()
        if not recipe.word_classifiers:
            return None
        hard = [each.hard for each in made]
        own = as_csr(unit_rows(texts)) if recipe.texts_as_samples else None
        return WordClassifiers.fitted(data.X, data.Y, hard, seed, self.n_jobs, self.verbose, own)

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
        features, counts = complete(features, samples, labels), _counts(labels)
        odds = log_odds(counts, self.n_samples_)
        towers = [
            tower.with_labels(features, centroids_of(tower.encoder, samples, labels), odds)
            for tower in self.towers_
        ]
        every = csr_matrix(vstack([self.label_features_, as_csr(unit_rows(features))]))
        words = self.word_classifiers_
        if words is not None:
            words = words.with_labels(as_csr(unit_rows(samples)), labels)
        return self._set_labels(towers, every, np.concatenate([self.label_counts_, counts]), words)

    def remove_labels(self, labels: Any) -> Self:
        """Remove labels: they are not predicted any more. The ids of the others stay."""
        self._check_fitted()
        ids = check_ids(labels, self.n_labels_)
        counts, kept = self.label_counts_.copy(), np.ones(self.n_labels_, np.float32)
        counts[ids] = 0  # no more among the most frequent
        kept[ids] = 0  # nor found by words
        features = csr_matrix(diags(kept) @ self.label_features_)
        features.eliminate_zeros()
        towers = [tower.without_labels(ids) for tower in self.towers_]
        return self._set_labels(towers, features, counts, self.word_classifiers_)

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
        words, learned = now["word_classifiers_"] if is_learned else None, None
        if is_learned and now["learned_texts_"] is not None:
            learned = now.get("_learned") or _index_of(now["learned_texts_"])
            self.__dict__.setdefault("_learned", learned)
        predictor = self._predictor(
            now["towers_"], lexical, words, learned, is_learned, now["companion_"]
        )
        return predictor.topk(as_csr(X), k, self._scoring(lexical.counts))

    def _set_labels(
        self, towers: list[Tower], features: csr_matrix, counts: npt.NDArray[np.int64],
        words: WordClassifiers | None,
    ) -> Self:  # fmt: skip
        """Have other labels, in one step."""
        self.__dict__.update(
            towers_=towers, label_features_=features, label_counts_=counts, word_classifiers_=words,
            n_labels_=len(counts), _lexical=LexicalIndex(features, counts),
        )  # fmt: skip
        return self

    def _predictor(
        self,
        towers: list[Tower],
        lexical: LexicalIndex,
        words: WordClassifiers | None,
        learned: LexicalIndex | None,
        beyond_vectors: bool,
        companion: Companion | None = None,
    ) -> Predictor:
        n_each = min(int(self._used_recipe().shortlist), len(lexical.counts))
        return Predictor(
            towers, lexical, words, learned, n_each, beyond_vectors,
            None if companion is None else companion.classifier, self.n_jobs, self.verbose,
        )  # fmt: skip

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

    def _settings(self, recipe: SiameseRecipe, name: str, mark: str) -> TowerSettings:
        def keeper(module: str) -> Keeper:
            if self.checkpoint is None:
                return Keeper(None, recipe.checkpoint_every)
            folder = Path(self.checkpoint) / f"{name}-{module}"
            return Keeper(folder, recipe.checkpoint_every, mark)

        return TowerSettings(
            recipe=recipe, dim=self.dim, epochs=self.epochs, learning_rate=self.learning_rate,
            search=self.search, device=find_device(self.device), n_jobs=self.n_jobs,
            verbose=self.verbose, keeper=keeper,
        )  # fmt: skip

    def _seed_and_mark(
        self, data: TrainingSet, table: FloatArray | None, split: Mask | None
    ) -> tuple[int, str]:
        """The seed, and a fingerprint of everything that decides what towers learn."""
        seed = check_seed(self.random_state)
        if self.checkpoint is None:
            return seed, ""
        settings = deciding_settings(self, _NOT_OF_THE_RESULT, seed)
        recipe = self._used_recipe()
        settings["recipe"] = replace(recipe, alpha=0.5, weights="fixed", checkpoint_every=0)
        given = np.zeros(0) if table is None else table
        settings["label_features"] = fingerprint(data.label_features, given, {})
        drawn = np.array(self._learns_weights(data.X.shape[0]))
        settings["split"] = fingerprint(drawn if split is None else split, given, {})
        mark = fingerprint(data.X, data.Y, settings)
        if self.random_state is None:
            names = (name for name in MODULES if name in recipe.modules and name != "mine")
            first = next(names, "")
            stage = "part" if split is not None or drawn else "whole"
            folder = Path(self.checkpoint) / f"{stage}-0-{first}"
            found = Keeper(folder, 0, mark).found if first else None
            seed = seed if found is None else found.seed
        return seed, mark

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


def _split_share(n_samples: int) -> float:
    """The share of the samples that weights are learned from; few are too few to learn from."""
    return max(_SPLIT, min(_LARGEST_SPLIT, _SPLIT_SAMPLES / n_samples))


def _learned_texts(data: TrainingSet) -> LexicalIndex:
    """The words of labels with samples."""
    return _index_of(csr_matrix(data.label_features[data.Y.getnnz(axis=0) > 0]))


def _index_of(texts: csr_matrix) -> LexicalIndex:
    return LexicalIndex(texts, np.zeros(texts.shape[0], np.int64))


def _counts(Y: csr_matrix) -> npt.NDArray[np.int64]:
    return np.asarray(Y.getnnz(axis=0), np.int64)
