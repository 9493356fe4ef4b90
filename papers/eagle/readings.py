"""Choices that the paper leaves open, and costs that it names: T, list or set, App. A, Eq. 2."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import ttest_rel

from papers.contents import Block, Cell, Section, Table, Value, over_seeds
from papers.eagle.grouped_data import DEPTHS, Grouping, Task, available, precision, task
from umpteen import LabelTree
from umpteen.aggregated import Eagle, group_label_embeddings, ignore_groups
from umpteen.data import aggregate

_STEPS = (0, 1, 5, 20, 50)
_KINDS = (Grouping.random(10), Grouping.clusters())


def sections(quick: bool) -> list[Section]:
    """Algorithm 1's iterations, list and set, the cost of Baseline, and how good Algorithm 1 is."""
    name = available(("bibtex",) if not quick else ("cooking",))[0]
    n_seeds = 2 if quick else 5
    where = f"{name}; seeds: {n_seeds}; the solver is LabelTree()."
    return [
        Section(
            "Algorithm 1, iterations",
            "T = 20 iterations are better than none; T = 5 where groups are clusters.",
            where,
            partial(_iterations, name, quick, n_seeds),
        ),
        Section(
            "List or set of labels",
            "whether a label that occurs twice in a group counts twice makes no significant "
            "difference.",
            where,
            partial(_merges, name, quick, n_seeds),
        ),
        Section(
            "Appendix A, cost",
            "training on all labels of the groups takes longer and makes larger models as groups "
            "grow; assigning the labels first does not.",
            where,
            partial(_costs, name, quick),
        ),
        Section(
            "Equation 2, how near Algorithm 1 comes",
            "Algorithm 1 approximately maximises Equation 2.",
            "Random problems of 6 groups of 3 samples with 4 features each, so that all choices of "
            "one sample per group can be tried.",
            partial(_gap, 20 if quick else 300),
        ),
    ]


def _printed(seed: int, **changes: Any) -> Eagle:
    solver = LabelTree(random_state=seed, verbose=False)
    return Eagle.paper(solver, random_state=seed, verbose=False, **changes)


def _grouped(chosen: Task, grouping: Grouping, seed: int) -> dict[str, Any]:
    groups = grouping.group(chosen.X, seed)
    return {"groups": groups, "group_labels": aggregate(chosen.Y, groups)}


def _runs(chosen: Task, grouping: Grouping, n_seeds: int, **changes: Any) -> Any:
    """Precision of EAGLE as printed but for `changes`, `(seeds, 3)`."""
    return np.array(
        [
            precision(chosen, _printed(s, **changes).fit(chosen.X, **_grouped(chosen, grouping, s)))
            for s in range(n_seeds)
        ]
    )


def _iterations(name: str, quick: bool, n_seeds: int) -> Iterator[Block]:
    steps = _STEPS[::3] if quick else _STEPS
    for unlabelled in ("drop", "keep"):
        rows: list[list[Cell]] = []
        for grouping, n in product(_KINDS, steps):
            found = _runs(
                task(name, quick), grouping, n_seeds, recipe__iterations=n,
                recipe__unlabelled=unlabelled,
            )  # fmt: skip
            rows.append([grouping.name, str(n), *(over_seeds(found[:, i]) for i in range(3))])
        how = {"drop": "dropped", "keep": "kept, as Algorithm 2 returns all of X"}[unlabelled]
        yield Table(
            f"Precision in %; samples without labels are {how}",
            ["groups", "T", *(f"P@{k}" for k in DEPTHS)],
            rows,
        )


def _merges(name: str, quick: bool, n_seeds: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for grouping in _KINDS:
        both = {
            merge: _runs(task(name, quick), grouping, n_seeds, recipe__merge=merge)
            for merge in ("list", "set")
        }
        for i, k in enumerate(DEPTHS):
            p = float(ttest_rel(both["list"][:, i], both["set"][:, i]).pvalue)
            cells = [over_seeds(both[merge][:, i]) for merge in ("list", "set")]
            rows.append([f"{grouping.name}, P@{k}", *cells, Value(p, digits=4)])
    yield Table(
        "EAGLE as printed: precision in %, and the p-value of a paired t-test over seeds",
        ["groups", "list", "set", "p"],
        rows,
    )


def _costs(name: str, quick: bool) -> Iterator[Block]:
    chosen = task(name, quick)
    rows: list[list[Cell]] = []
    for size in (2, 10) if quick else (2, 4, 10, 20):
        known = _grouped(chosen, Grouping.random(size), 0)
        everything = ignore_groups(chosen.X, **known)
        models = {
            "Baseline": lambda: LabelTree(verbose=False).fit(chosen.X, everything),  # noqa: B023
            "EAGLE": lambda: _printed(0).fit(chosen.X, **known).solver_,  # noqa: B023
            "Oracle": lambda: LabelTree(verbose=False).fit(chosen.X, chosen.Y),
        }
        for method, fit in models.items():
            start = process_time()
            model = fit()
            seconds = process_time() - start
            rows.append([f"random groups of {size}", method, Value(seconds), Value(_size(model))])
    yield Table(
        "CPU seconds of training (EAGLE: with its 20 iterations) and size of the saved model in MB",
        ["groups", "method", "CPU s", "MB"],
        rows,
    )


def _size(model: LabelTree) -> float:
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6


def _gap(n_runs: int) -> Iterator[Block]:
    gaps = np.array([gap(np.random.default_rng(seed)) for seed in range(n_runs)])
    yield Table(
        "By how many per cent the objective of Algorithm 1 is below the best",
        ["problems", "mean", "worst", "exactly the best, %"],
        [
            [str(n_runs), Value(100 * float(gaps.mean())), Value(100 * float(gaps.max())),
             Value(100 * float((gaps < 1e-6).mean()), digits=0)]
        ],
    )  # fmt: skip


def gap(rng: np.random.Generator, n_groups: int = 6, size: int = 3, n_features: int = 4) -> float:
    """By what share Algorithm 1's value of Equation 2 is below the best, for one label."""
    X = rng.standard_normal((n_groups, size, n_features))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    groups = np.repeat(np.arange(n_groups), size)
    found = group_label_embeddings(X.reshape(-1, n_features), groups, [[0]] * n_groups)
    return 1 - objective(X, found.toarray()[0]) / best_objective(X)


def objective(X: npt.NDArray[np.float64], embedding: npt.NDArray[Any]) -> float:
    """Equation 2 for groups `(groups, samples, features)`: the sum of best similarities."""
    return float((X @ embedding).max(axis=1).sum())


def best_objective(X: npt.NDArray[np.float64]) -> float:
    """The greatest value of Equation 2: the longest sum of one sample of each group."""
    sums = np.zeros((1, X.shape[2]))
    for group in X:
        sums = (sums[:, None] + group).reshape(-1, X.shape[2])
    return float(np.linalg.norm(sums, axis=1).max())
