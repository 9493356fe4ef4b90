"""LabelTree: the default classifier."""

from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen import scratch
from umpteen.base import Estimates, ExplainsByWeights, LearnsRoughly, MatchesLabelNames, TopK
from umpteen.linear.chunks import plan_chunks
from umpteen.linear.explanation import Explanation, explain_label, explain_newcomer, keywords
from umpteen.linear.label_changes import LabelChanges
from umpteen.linear.label_texts import LabelTexts, NameFeatures
from umpteen.linear.recipe import PLAIN, TreeRecipe, upgrade_from_1
from umpteen.linear.resources import Estimate, check_budget, estimate_fit
from umpteen.linear.search import (
    Answer,
    Search,
    merged,
    score_candidates,
    search_newcomers,
    search_trees,
)
from umpteen.linear.training import Solver, learn_trust, train_tree
from umpteen.linear.tree import Tree
from umpteen.linear.weighing import ValidatedTexts, choose
from umpteen.progress import Verbose, progress_bar
from umpteen.splitting import validation_split
from umpteen.storage import storable
from umpteen.trees import Hierarchy, grow, label_representation
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    as_csr,
    check_features,
    check_k,
    check_label,
    check_rows,
)

_MOST_EXPLAINED = 100  # labels among which the probability of one is looked for
_TEXT_WEIGHT = 0.1  # of label features, where there are too few samples to choose it
_ROUGH_COST, _ROUGH_TOLERANCE = 0.2, 1.5  # for labels with errors
_ANY_NUMBER = 2**31 - 1


def _at_least(kind: type, least: float) -> Interval:
    return Interval(kind, least, None, closed="left")


@storable(version=2, upgrades={1: upgrade_from_1})
class LabelTree(MatchesLabelNames, ExplainsByWeights, LearnsRoughly, Estimates, LabelChanges):
    """Linear classifiers in a tree of labels: accurate, fast, small, and with explanations.

    Similar labels share a leaf. From the root down, classifiers decide which nodes a sample
    belongs to, and in the leaves which labels. Prediction is a beam search that follows the
    `beam_width` best nodes per layer, so its cost grows with the logarithm of the number of labels.
    This is the family of Parabel (Prabhu et al. 2018), Bonsai (Khandagale et al. 2020) and
    XR-Linear (Yu et al. 2022); with a single leaf it is DiSMEC (Babbar and Schölkopf 2017). The
    classmethods `parabel`, `bonsai`, `xr_linear` and `one_vs_all` are these special cases.

    The defaults differ from them; each was chosen on validation splits of three real data sets
    (benchmarks/results/choices.md has figures). There is one wide, shallow tree. Leaves also learn
    from hard negatives, samples that the layers above would send to them by mistake
    (`hard_negatives` of the recipe), and the probabilities on the path count less (`path_weight`).
    Positives count twice. Scores of labels that were often wrong in training are lowered a little
    (`trust`).

    **Scores** are in (0, 1]: a label's own probability times its trust, times the probabilities
    on its path to the power `path_weight`. For the logistic loss a probability is the sigmoid of
    the margin z; the squared hinge has none, and exp(-max(0, 1 - z)^3) with a slight slope up to
    z = 2 ranks best. Scores rank labels and samples well but are not calibrated.

    **Label features** (`fit(..., label_features=)`) are features of the label texts in the same
    vocabulary as `X`. They shape the tree (`label_text_share`), and they count in the score: either
    by their cosine to the sample, `(tree + w * cosine) / (1 + w)`, or by a ranker that learns from
    the tree and the texts. Which of the two, and the weight w (`label_text_weight`), is chosen on a
    validation split. Labels without samples can then be found, too.

    Parameters
    ----------
    branching : maximum number of children of an inner node.
    max_leaf : maximum number of labels of a leaf.
    n_trees : number of trees, with different random starts, whose scores are averaged.
    beam_width : number of nodes that beam search keeps per layer in prediction.
    cost, positive_weight : penalty of errors, and its factor for positives. Higher values fit rare
        labels better and make larger models. The cost is meant for rows of `X` of length 1; for
        other rows it is adjusted to their mean square, so the scale of `X` matters little. The cost
        "auto" is 1, except in a `Tagger`, which chooses both on part of the texts.
    prune : smallest weight that is kept, for rows of `X` of length 1, and in proportion for
        others; with 0.05, models are 1.5 times as large and no better; with 0.2, they are a third
        to a half smaller.
    recipe : a `umpteen.linear.TreeRecipe` with settings that few users change: loss, stopping, hard
        negatives, weights of path and label texts. `set_params` and the classmethods take
        `recipe__loss` and so on.
    max_memory : bytes that training may need on top of the data. If the estimate exceeds it, `fit`
        raises `MemoryBudgetError` before it starts.
    n_jobs : number of threads; any number gives the same bits.

    >>> X = csr_matrix([[1, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=float)
    >>> model = LabelTree().fit(X, [[0], [0, 1], [2]])
    >>> model.predict_topk(X, k=1).labels.ravel()
    array([0, 0, 2], dtype=int32)
    """

    _recipe_class: ClassVar[type[TreeRecipe]] = TreeRecipe
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "branching": [_at_least(Integral, 2)],
        "max_leaf": [_at_least(Integral, 1)],
        "n_trees": [_at_least(Integral, 1)],
        "beam_width": [_at_least(Integral, 1)],
        "cost": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "positive_weight": [Interval(Real, 0, None, closed="neither")],
        "prune": [_at_least(Real, 0)],
        "recipe": [TreeRecipe, None],
        "max_memory": [_at_least(Real, 0), None],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        *,
        branching: int = 512,
        max_leaf: int = 96,
        n_trees: int = 1,
        beam_width: int = 8,
        cost: float | str = 0.5,
        positive_weight: float = 2.0,
        prune: float = 0.1,
        recipe: TreeRecipe | None = None,
        max_memory: float | None = None,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        verbose: Verbose = "auto",
    ) -> None:
        self.branching = branching
        self.max_leaf = max_leaf
        self.n_trees = n_trees
        self.beam_width = beam_width
        self.cost = cost
        self.positive_weight = positive_weight
        self.prune = prune
        self.recipe = recipe
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def for_texts(cls, **changes: Any) -> Self:
        """Return a tree with the costs that were best for words and bigrams on four data sets."""
        return cls().set_params(**{"cost": 1.0, "positive_weight": 1.0, **changes})

    @classmethod
    def xr_linear(cls, **changes: Any) -> Self:
        """Return PECOS's XR-Linear: a 16-ary tree, negatives from the same node only."""
        plain = {
            "branching": 16, "max_leaf": 100, "beam_width": 10, "cost": 1.0,
            "positive_weight": 1.0, "recipe": PLAIN,
        }  # fmt: skip
        return cls().set_params(**{**plain, **changes})

    @classmethod
    def parabel(cls, **changes: Any) -> Self:
        """Return Parabel: three balanced binary trees."""
        return cls.xr_linear(**{"branching": 2, "n_trees": 3, **changes})

    @classmethod
    def bonsai(cls, **changes: Any) -> Self:
        """Return Bonsai: three shallow trees with up to a hundred children per node."""
        return cls.xr_linear(**{"branching": 100, "n_trees": 3, **changes})

    @classmethod
    def one_vs_all(cls, **changes: Any) -> Self:
        """Return DiSMEC: no tree; every label learns from every sample, which is slow."""
        return cls.xr_linear(**{"max_leaf": _ANY_NUMBER, **changes})

    def fit(
        self, X: Any, Y: Any, label_features: Any = None, label_names: NameFeatures | None = None
    ) -> Self:
        """Learn from samples and their labels, and from features of the labels if given.

        If labels have several names, `label_names` has features of each name, in addition to
        `label_features`.
        """
        self._fit(X, Y, label_features, None, label_names)
        return self

    def fit_validated(
        self, X: Any, Y: Any, validation: Any, k: int = 20, label_features: Any = None,
        label_names: NameFeatures | None = None,
    ) -> TopK:  # fmt: skip
        """Fit on all samples, and return unbiased answers to the validation split.

        The trees are first trained without the samples of `validation`, then training continues
        with them. So both models together cost little more than one.
        """
        X, k = check_features(X), check_k(k)
        validation = check_rows(validation, X.shape[0], "validation")
        return self._fit(X, Y, label_features, validation, label_names, k)

    def validate(
        self, X: Any, Y: Any, validation: Any, k: int = 5, label_features: Any = None,
        label_names: NameFeatures | None = None,
    ) -> TopK:  # fmt: skip
        """Return answers to the samples of `validation` from a model trained on the others.

        Use it to compare settings: the model is not kept. It takes less time than `fit_validated`.
        A ranker of label texts learns from one half of these samples and is applied to the other.
        """
        trial: Self = clone(self)
        X, Y = trial._check_fit(X, Y)
        split = check_rows(validation, X.shape[0], "validation")
        texts = trial._check_label_features(label_features, label_names, Y)
        X, k = as_csr(X), min(check_k(k), trial.n_labels_)
        seeds = check_random_state(self.random_state).randint(_ANY_NUMBER, size=self.n_trees)
        rest = as_csr(scratch.rows_at(X, ~split)), Y[~split]
        trial.trees_ = [trial._fit_tree(*rest, texts, int(seed), None)[0] for seed in seeds]
        trial.newcomers_, trial.label_texts_ = None, texts
        if texts is None or self._used_recipe().label_text_weight != "auto":
            return trial._topk(X[split], k)
        return trial._choose(texts, X, Y, trial.trees_, split, k, n_folds=2).answers

    def _fit(
        self, X: Any, Y: Any, label_features: Any, validation: npt.NDArray[np.bool_] | None,
        label_names: NameFeatures | None = None, k: int = 20,
    ) -> TopK:  # fmt: skip
        """Fit on all samples; return answers to the validation split, without having seen it."""
        X, Y = self._check_fit(X, Y)
        texts = self._check_label_features(label_features, label_names, Y)
        if self.max_memory is not None:
            check_budget(self.estimate(X, Y), self.max_memory)
        X = as_csr(X)
        seeds = check_random_state(self.random_state).randint(_ANY_NUMBER, size=self.n_trees)
        to_weigh = texts if self._used_recipe().label_text_weight == "auto" else None
        given = validation is not None
        if validation is None and to_weigh is not None:
            validation = validation_split(X, Y, int(seeds[0]))
        both = [self._fit_tree(X, Y, texts, int(seed), validation) for seed in seeds]
        trial = copy(self)
        self.trees_ = [tree for tree, _ in both]
        trial.trees_ = [without or tree for tree, without in both]
        self.newcomers_ = trial.newcomers_ = self.label_texts_ = trial.label_texts_ = None
        k = min(k, self.n_labels_)
        if to_weigh is not None and validation is not None and Y[~validation].nnz:
            chosen = self._choose(to_weigh, X, Y, trial.trees_, validation, k)
            self.label_texts_ = chosen.texts
            return chosen.answers
        self.label_texts_ = trial.label_texts_ = texts
        return trial._topk(X[validation if given else slice(0)], k)

    def predict_topk(self, X: Any, k: int = 5, beam_width: int | None = None) -> TopK:
        """Return the `k` best labels of each sample; a wider beam looks at more of the tree."""
        k = check_k(k)
        if beam_width is not None:
            beam_width = check_k(beam_width, name="beam_width")
        X = self._check_predict(X)
        return self._topk(X, min(k, self.n_labels_), beam_width)

    def explain(self, x: Any, label: int) -> Explanation:
        """Explain a label's score for one sample by the contributions of features, step by step.

        Contributions add up to the score of `predict_topk` if its beam search reaches the label. A
        label that the beam search misses is explained as well.
        """
        x = as_csr(self._check_one(x))
        label = check_label(label, self.n_labels_)
        texts, search = self.label_texts_, self._search()
        if self.newcomers_ is not None and label in self.newcomers_.hierarchy.label_order:
            found = explain_newcomer(self.newcomers_, self.trees_[0], texts, x, label, search)
        else:
            found = explain_label(self.trees_, texts, x, label, search)
        if not found.is_ranked:
            return found
        top = self._topk(x, min(_MOST_EXPLAINED, self.n_labels_))
        return replace(found, score=float(top.scores[top.labels == label].sum()))

    def label_keywords(self, label: int, k: int = 10) -> list[tuple[int, float]]:
        """Return the `k` features with the largest weights for a label in its leaf."""
        self._check_fitted()
        label = check_label(label, self.n_labels_)
        later = self.newcomers_
        if later is not None and label in later.hierarchy.label_order:
            return keywords([later], label, check_k(k))
        return keywords(self.trees_, label, check_k(k))

    def roughly(self) -> Self:
        """Return an unfitted copy for labels that are full of errors.

        It is regularised more and trained for less time. In `Eagle`, it ranks the samples of a
        group better, in a fifth of the time (benchmarks/results/aggregated_choices.md).
        """
        return clone(self).set_params(  # type: ignore[no-any-return]
            cost=_ROUGH_COST * (1.0 if isinstance(self.cost, str) else self.cost),
            recipe__tolerance=max(_ROUGH_TOLERANCE, self._used_recipe().tolerance),
            recipe__hard_negatives=0, recipe__trust=False,
        )  # fmt: skip

    def estimate(self, X: Any, Y: Any) -> Estimate:
        """Estimate memory, model size and time of `fit(X, Y)` from training a few of its nodes."""
        X, Y = self._check_fit_input(X, Y)
        rows = label_representation(as_csr(X), Y, n_jobs=self.n_jobs)
        return estimate_fit(
            as_csr(X), Y, rows, lambda rows: self._grow(rows, Y, 0), self._solver(0), self.n_trees,
            self.n_jobs,
        )  # fmt: skip

    def _topk(self, X: Features, k: int, beam_width: int | None = None) -> TopK:
        X, search = as_csr(X), self._search(beam_width)
        if self.label_texts_ is None:
            return TopK(*self._find(X, k, search))
        best = self._find(X, max(k, self.label_texts_.n_asked), search)
        return TopK(*self.label_texts_.combine(X, best, k, self.n_jobs))

    def _scores_of(self, X: Features, candidates: csr_matrix) -> npt.NDArray[np.float32]:
        texts = self.label_texts_
        if self.newcomers_ is not None or (texts is not None and texts.is_used):
            return super()._scores_of(X, candidates)
        return score_candidates(self.trees_, as_csr(X), candidates, self._search())

    def _every_label(self, X: Features) -> TopK:
        widest = max(tree.hierarchy.n_nodes for tree in self.trees_)
        return self._topk(X, self.n_labels_, beam_width=widest)

    def _find(self, X: csr_matrix, k: int, search: Search) -> Answer:
        """The best of the trees and of the labels that came later."""
        best = search_trees(self.trees_, X, k, search)
        if self.newcomers_ is None:
            return best
        return merged(best, search_newcomers(self.newcomers_, self.trees_[0], X, k, search))

    def _fit_tree(
        self, X: csr_matrix, Y: csr_matrix, texts: LabelTexts | None, seed: int,
        validation: npt.NDArray[np.bool_] | None,
    ) -> tuple[Tree, Tree | None]:  # fmt: skip
        features = None if texts is None else texts.features
        recipe = self._used_recipe()
        hierarchy = self._grow(  # of rows without a name, so that training has the memory
            label_representation(X, Y, features, recipe.label_text_share, n_jobs=self.n_jobs),
            Y, seed,
        )  # fmt: skip
        n_chunks = len(plan_chunks(hierarchy.first_child).chunk_node)
        with progress_bar("Training", n_chunks, self.verbose) as bar:
            tree, trial = train_tree(
                X, Y, hierarchy, self._solver(seed), self.n_jobs, bar, validation
            )
        if recipe.trust:
            learn_trust(tree, X, Y, self._search(), hierarchy.label_order)
            if trial is not None:
                trial.log_trust[:] = tree.log_trust
        return tree, trial

    def _grow(self, rows: csr_matrix, Y: csr_matrix, seed: int) -> Hierarchy:
        placed = (np.diff(rows.indptr) > 0) | (np.bincount(Y.indices, minlength=Y.shape[1]) > 0)
        return grow(
            rows, labels=np.flatnonzero(placed).astype(np.int32), branching=self.branching,
            max_leaf=self.max_leaf, seed=seed, n_jobs=self.n_jobs, verbose=self.verbose,
        )  # fmt: skip

    def _choose(
        self, texts: LabelTexts, X: csr_matrix, Y: csr_matrix, trees: list[Tree],
        validation: npt.NDArray[np.bool_], k: int, n_folds: int = 5,
    ) -> ValidatedTexts:  # fmt: skip
        """Decide by a validation split, which `trees` have not seen, how label texts count."""
        best = search_trees(trees, X[validation], max(k, texts.n_candidates), self._search())
        return choose(texts, X, Y, validation, best, k, self.n_jobs, n_folds)

    def _search(self, beam_width: int | None = None) -> Search:
        recipe, width = self._used_recipe(), int(beam_width or self.beam_width)
        return Search(width, float(recipe.path_weight), recipe.loss == "logistic", self.n_jobs)

    def _solver(self, seed: int, negative_weight: float = 1.0) -> Solver:
        recipe = self._used_recipe()
        cost = negative_weight * (1.0 if isinstance(self.cost, str) else float(self.cost))
        positive_weight = float(self.positive_weight / negative_weight)
        return Solver.of(recipe, cost, positive_weight, float(self.prune), seed)

    def _check_label_features(
        self, label_features: Any, names: NameFeatures | None, Y: csr_matrix
    ) -> LabelTexts | None:
        if label_features is None:
            return None
        features = check_features(
            label_features, n_features=self.n_features_in_, name="label_features"
        )
        counts = np.bincount(Y.indices, minlength=self.n_labels_)
        weight = self._used_recipe().label_text_weight
        texts = LabelTexts.of(features, counts, names)
        return replace(texts, weight=_TEXT_WEIGHT if isinstance(weight, str) else float(weight))
