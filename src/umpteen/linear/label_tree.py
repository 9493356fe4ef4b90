"""LabelTree: the strong, fast default."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions

from umpteen.base import ExtremeClassifier, TopK
from umpteen.linear.search import Search, search_trees
from umpteen.linear.training import Solver, learn_trust, train_tree
from umpteen.linear.tree import Tree, plan_chunks
from umpteen.progress import Verbose, progress_bar
from umpteen.trees import grow, label_representation
from umpteen.validation import Features, check_k, check_parameters


class LabelTree(ExtremeClassifier):
    """Linear classifiers in a tree of labels: strong, fast, small, explainable."""

    _parameter_constraints = {  # noqa: RUF012  scikit-learn's name
        "branching": [Interval(Integral, 2, None, closed="left")],
        "max_leaf": [Interval(Integral, 1, None, closed="left")],
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
        "cost": [Interval(Real, 0, None, closed="neither")],
        "positive_weight": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions({"squared_hinge", "logistic"})],
        "tolerance": [Interval(Real, 0, None, closed="neither")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "prune": [Interval(Real, 0, None, closed="left")],
        "path_weight": [Interval(Real, 0, None, closed="left")],
        "trust": ["boolean"],
        "hard_negatives": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None],
        "random_state": ["random_state"],
        "verbose": ["boolean", StrOptions({"auto"})],
    }

    trees_: list[Tree]

    def __init__(
        self,
        *,
        branching: int = 512,
        max_leaf: int = 96,
        n_trees: int = 1,
        beam_width: int = 8,
        cost: float = 0.5,
        positive_weight: float = 2.0,
        loss: str = "squared_hinge",
        tolerance: float = 0.3,
        max_epochs: int = 20,
        prune: float = 0.1,
        hard_negatives: int = 10,
        path_weight: float = 0.35,
        trust: bool = True,
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
        self.loss = loss
        self.tolerance = tolerance
        self.max_epochs = max_epochs
        self.prune = prune
        self.hard_negatives = hard_negatives
        self.path_weight = path_weight
        self.trust = trust
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, Y: Any) -> Self:
        X, Y = self._check_fit(X, Y)
        X = csr_matrix(X)
        rows = label_representation(X, Y)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_trees)
        self.trees_ = [self._fit_tree(X, Y, rows, int(seed)) for seed in seeds]
        return self

    def _fit_tree(self, X: csr_matrix, Y: csr_matrix, rows: csr_matrix, seed: int) -> Tree:
        hierarchy = grow(
            rows, branching=self.branching, max_leaf=self.max_leaf, seed=seed,
            n_jobs=self.n_jobs, verbose=self.verbose,
        )  # fmt: skip
        solver = Solver(
            logistic=self.loss == "logistic", cost=self.cost,
            positive_weight=self.positive_weight, tolerance=self.tolerance,
            max_epochs=self.max_epochs, prune=self.prune,
            hard_negatives=self.hard_negatives, seed=seed,
        )  # fmt: skip
        n_chunks = len(plan_chunks(hierarchy.first_child).chunk_node)
        with progress_bar("Training", n_chunks, self.verbose) as bar:
            tree = train_tree(X, Y, hierarchy, solver, self.n_jobs, bar)
        if self.trust:
            learn_trust(tree, X, Y, self._search())
        return tree

    def _search(self, beam_width: int | None = None) -> Search:
        logistic = self.loss == "logistic"
        return Search(beam_width or self.beam_width, self.path_weight, logistic, self.n_jobs)

    def predict_topk(self, X: Any, k: int = 5, beam_width: int | None = None) -> TopK:
        k = check_k(k)
        beam_width = None if beam_width is None else check_k(beam_width)
        return self._topk(self._check_predict(X), k, beam_width)

    def _topk(self, X: Features, k: int, beam_width: int | None = None) -> TopK:
        return TopK(*search_trees(self.trees_, csr_matrix(X), k, self._search(beam_width)))
