"""Why a label got its score: the contributions of features, biases and steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import markup
from umpteen.kernels.beam import log_link
from umpteen.linear.label_texts import LabelTexts
from umpteen.linear.search import Search, best_leaf
from umpteen.linear.tree import Tree

_FEATURES_SHOWN = 12  # in a notebook


@dataclass(frozen=True)
class Step:
    """One decision on the path: `margin` is `bias` plus the sum of `contributions`.

    `node` is a number of the tree's hierarchy; `labels` are the labels below it; the step's
    share in the logarithm of the tree's score is `log_score`.
    """

    node: int
    labels: npt.NDArray[np.int32]
    features: npt.NDArray[np.int32]
    contributions: npt.NDArray[np.float64]
    bias: float
    margin: float
    log_score: float


@dataclass(frozen=True)
class Path:
    """The path through one tree: its score is exp of `log_trust` plus the steps' log-scores."""

    steps: list[Step]
    log_trust: float
    score: float


@dataclass(frozen=True)
class Explanation:
    """Where the score of one label for one sample comes from.

    `score` is the mean of the paths' scores over the trees. With label features it is either
    blended, `(mean + text_weight * cosine) / (1 + text_weight)`, or the probability of a ranker
    that learned from both (`is_ranked`). `covered` is the share of the label's features that the
    sample has.
    """

    label: int
    score: float
    paths: list[Path]
    cosine: float
    text_weight: float
    covered: float = 0.0
    is_ranked: bool = False

    def features(self) -> list[tuple[int, float]]:
        """Return the features with their contributions to the label's margin, largest first.

        Contributions to the margin in the leaf are averaged over the trees.
        """
        total: dict[int, float] = {}
        for path in self.paths:
            for feature, contribution in zip(
                path.steps[-1].features.tolist(), path.steps[-1].contributions, strict=True
            ):
                total[feature] = total.get(feature, 0.0) + float(contribution) / len(self.paths)
        return sorted(total.items(), key=lambda item: -abs(item[1]))

    def _repr_html_(self) -> str:
        caption = f"label {self.label}: {self.score:.3f}"
        largest = self.features()[:_FEATURES_SHOWN]
        return markup.notebook(markup.contributions(caption, ["feature", "contribution"], largest))


def explain_label(
    trees: Sequence[Tree], texts: LabelTexts | None, x: csr_matrix, label: int, search: Search
) -> Explanation:
    """Return the explanation of one label for the first row of `x`."""
    paths = [path for tree in trees if (path := _path(tree, x, label, search)) is not None]
    return _explained(paths, len(trees), texts, x, label)


def explain_newcomer(
    newcomers: Tree, tree: Tree, texts: LabelTexts | None, x: csr_matrix, label: int, search: Search
) -> Explanation:
    """Return that of a label outside the tree: the path to the best leaf, then its own step."""
    leaves, _ = best_leaf(tree, x[:1], search)
    above = [
        _step(tree, x, number, search.path_weight, search)
        for number in tree.hierarchy.path_to(int(leaves[0]))
    ]
    own = _path(newcomers, x, label, search)
    if own is None:  # it is not among them
        return _explained([], 1, texts, x, label)
    above_log = sum(step.log_score for step in above)
    path = Path([*above, *own.steps], own.log_trust, own.score * float(np.exp(above_log)))
    return _explained([path], 1, texts, x, label)


def _explained(
    paths: list[Path], n_trees: int, texts: LabelTexts | None, x: csr_matrix, label: int
) -> Explanation:
    mean = sum(path.score for path in paths) / n_trees
    weight = 0.0 if texts is None else texts.weight
    cosine = 0.0 if texts is None else texts.cosine(x[:1], label)
    score = (mean + weight * min(max(cosine, 0.0), 1.0)) / (1 + weight)
    if texts is None:
        return Explanation(label, score, paths, cosine, weight)
    covered, is_ranked = texts.covered(x[:1], label), texts.ranker is not None
    return Explanation(label, score, paths, cosine, weight, covered, is_ranked)


def keywords(trees: Sequence[Tree], label: int, k: int) -> list[tuple[int, float]]:
    """Return the features with the largest weights for a label in its leaf, averaged over trees."""
    total: dict[int, float] = {}
    for tree in trees:
        for child in tree.hierarchy.path(label)[-1:]:
            features, weights = tree.classifier(child)
            for feature, weight in zip(features.tolist(), weights.tolist(), strict=True):
                total[feature] = total.get(feature, 0.0) + weight / len(trees)
    ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return [(feature, weight) for feature, weight in ranked[:k] if weight > 0]


def _path(tree: Tree, x: csr_matrix, label: int, search: Search) -> Path | None:
    numbers = tree.hierarchy.path(label)
    if not numbers:
        return None
    below = tree.hierarchy.n_nodes
    steps = [_step(tree, x, n, 1.0 if n >= below else search.path_weight, search) for n in numbers]
    log_trust = float(tree.log_trust[numbers[-1] - below])
    log_score = log_trust + sum(step.log_score for step in steps)
    return Path(steps, log_trust, float(np.exp(log_score)))


def _step(tree: Tree, x: csr_matrix, number: int, weight: float, search: Search) -> Step:
    features, weights = tree.classifier(number)
    values = np.zeros(x.shape[1], np.float64)
    row = slice(x.indptr[0], x.indptr[1])
    values[x.indices[row]] = x.data[row]
    products = values[features] * weights
    used = np.flatnonzero(products)
    bias = float(tree.bias[number - 1])
    margin = bias + float(products.sum())
    return Step(
        node=number,
        labels=tree.hierarchy.labels_below(number),
        features=features[used],
        contributions=products[used],
        bias=bias,
        margin=margin,
        log_score=weight * float(log_link(np.float32(margin), search.logistic)),
    )
