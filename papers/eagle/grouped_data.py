"""One run: a data set, a method of grouping, a seed, and what each method makes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.preprocessing import normalize

from papers import sets
from papers.progress import progress_bar
from umpteen import LabelTree, data
from umpteen.aggregated import Eagle, ignore_groups
from umpteen.data import aggregate, group_by_clusters, group_randomly
from umpteen.metrics import precision_at_k
from umpteen.text import Vectorizer

DEPTHS = (1, 3, 5)  # precision at these
METHODS = ("Oracle", "Baseline", "EAGLE-0", "EAGLE", "umpteen")
_MOST_DOCUMENTS = {"eurlex57k": 15_000}  # the size of the paper's EurLex-4K

Scores = npt.NDArray[np.float64]  # (3,), precision at 1, 3 and 5 in %


@dataclass(frozen=True, eq=False)
class Task:
    """Features and labels to learn from, and to test on."""

    name: str
    X: Any
    Y: csr_matrix
    X_test: Any
    Y_test: csr_matrix

    def in_words(self) -> str:
        """Its size in words."""
        return f"{self.name}: {self.X.shape[0]:,} samples, {self.Y.shape[1]:,} labels"


@dataclass(frozen=True)
class Grouping:
    """A method of grouping samples, with its name."""

    name: str
    group: Callable[[Any, int], csr_matrix] = field(repr=False, compare=False)

    @classmethod
    def random(cls, size: int) -> "Grouping":
        """Groups of so many random samples."""
        return cls(
            f"random groups of {size}", lambda X, seed: group_randomly(X.shape[0], size, seed)
        )

    @classmethod
    def clusters(cls, depth: int | None = None, noise: float = 0.0) -> "Grouping":
        """2**depth clusters, or as many as have about 50 samples each."""

        def group(X: Any, seed: int) -> csr_matrix:
            levels = max(1, round(np.log2(X.shape[0] / 50))) if depth is None else depth
            return group_by_clusters(X, levels, noise, seed)

        name = "clusters of 50" if depth is None else f"clusters, depth {depth}"
        return cls(f"{name}, noise {noise:g}" if noise else name, group)


@cache
def task(name: str, quick: bool) -> Task:
    """A data set by name: rows of unit length, of texts the TF-IDF of single words.

    `quick` takes 2,000 samples.
    """
    dataset = data.load(name)
    train = dataset.train
    test = train if dataset.test is None else dataset.test
    rows = np.arange(len(train))
    most = 2_000 if quick else _MOST_DOCUMENTS.get(name, len(rows))
    if most < len(rows):
        rows = np.sort(np.random.default_rng(0).permutation(len(rows))[:most])
    if train.texts is None:
        return Task(name, normalize(train.X[rows]), train.Y[rows], normalize(test.X), test.Y)
    words = Vectorizer(ngrams=1, min_df=2)
    X = words.fit_transform([train.texts[row] for row in rows])
    return Task(name, X, csr_matrix(train.Y[rows]), words.transform(test.texts or []), test.Y)


def available(names: Sequence[str]) -> list[str]:
    """Those that can be loaded; the built-in one where there is none."""
    return sets.available(names) or ["pydocs"]


@cache  # the sweeps pass by groupings of Table 2
def run(task: Task, grouping: Grouping, seed: int) -> dict[str, Scores]:
    """Precision of each method on the test split, for the same groups and the same solver."""
    groups = grouping.group(task.X, seed)
    grouped = {"groups": groups, "group_labels": aggregate(task.Y, groups)}
    solver = LabelTree(random_state=seed, verbose=False)
    quiet: dict[str, Any] = {"random_state": seed, "verbose": False}
    printed = Eagle.paper(solver, **quiet)
    return {
        "Oracle": _oracle(task, seed),
        "Baseline": precision(
            task, clone(solver).fit(task.X, ignore_groups(task.X, *grouped.values()))
        ),
        "EAGLE-0": precision(
            task, clone(printed).set_params(recipe__iterations=0).fit(task.X, **grouped)
        ),
        "EAGLE": precision(task, printed.fit(task.X, **grouped)),
        "umpteen": precision(task, Eagle(solver, **quiet).fit(task.X, **grouped)),
    }


@cache
def _oracle(task: Task, seed: int) -> Scores:
    return precision(task, LabelTree(random_state=seed, verbose=False).fit(task.X, task.Y))


def precision(task: Task, model: Any) -> Scores:
    """Precision at 1, 3 and 5 on the test split, in %."""
    top = model.predict_topk(task.X_test, k=max(DEPTHS))
    return 100 * np.asarray(precision_at_k(task.Y_test, top, DEPTHS), np.float64)


def repeated(task: Task, grouping: Grouping, n_seeds: int) -> dict[str, npt.NDArray[np.float64]]:
    """The same with several seeds: `(seeds, 3)` for each method."""
    runs = []
    with progress_bar(f"{task.name}, {grouping.name}", n_seeds) as advance:
        for seed in range(n_seeds):
            runs.append(run(task, grouping, seed))
            advance()
    return {method: np.stack([scores[method] for scores in runs]) for method in METHODS}


def closed(found: dict[str, npt.NDArray[np.float64]], method: str) -> npt.NDArray[np.float64]:
    """The share in % of the gap between Baseline and Oracle that a method closes, `(seeds, 3)`."""
    gap = found["Oracle"] - found["Baseline"]
    return np.asarray(100 * (found[method] - found["Baseline"]) / np.where(gap == 0, np.nan, gap))
