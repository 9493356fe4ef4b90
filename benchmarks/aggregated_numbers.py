"""How well Eagle can say how many samples of a cluster have a label that is present.

    python benchmarks/aggregated_numbers.py

Validation splits, clusters of about 50, presence only. After two rounds, solvers of the other folds
score the samples. The table has correlations of logarithms with the true numbers: of the numbers
that Eagle's noisy-or makes of these scores, and of regression trees that learned true numbers from
the same scores, on other groups of the same set or on the other sets. No user has true numbers; the
trees say how much there is to gain. Writes `results/aggregated_numbers.json` and `.md`.
"""

import argparse
import shlex
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from aggregated_choices import MEDIUM, Data, eagle, tree
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

from umpteen.aggregated import EagleRecipe
from umpteen.aggregated.counting import labels_of_others
from umpteen.aggregated.problem import Problem
from umpteen.aggregated.rounds import score_folds, scout
from umpteen.data import aggregate

SIZES = MEDIUM | {"eurlex57k": 6_000}
Array = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="1,000 samples of each set")
    options = parser.parse_args()
    pairs = {name: Pairs(name, 1_000 if options.quick else most) for name, most in SIZES.items()}
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/aggregated_numbers.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "rows": [correlations(name, pairs) for name in pairs],
    }
    path = results_folder(options.quick) / "aggregated_numbers.json"
    write_results(results, path, markdown(results))
    print(markdown(results))


class Pairs:
    """Clusters and the labels that are present in them: true numbers, Eagle's, and features."""

    def __init__(self, name: str, most: int) -> None:
        data = Data(name, most, is_test=False)
        known = data.grouped("clusters 50", "set", seed=0)
        problem = Problem.of(data.X, **known)
        model = eagle(tree(), rounds=2, recipe=EagleRecipe(compare=False)).fit(data.X, **known)
        folds = np.random.default_rng(0).permutation(problem.n_groups) % 3
        found = score_folds(
            problem, model.assigned_labels_, scout(tree()), folds,
            others=labels_of_others(problem, 0),
        )  # fmt: skip
        labels = problem.group_labels
        self.group = np.repeat(np.arange(problem.n_groups), np.diff(labels.indptr))
        self.label = labels.indices
        self.true = np.log(self._at(aggregate(data.Y, known["groups"], merge="list")))
        assert found.numbers is not None
        self.estimated = np.log(found.numbers)
        self.features = self._features(problem, found.scores)

    def _features(self, problem: Problem, scores: csr_matrix) -> Array:
        """Sums over the samples of a group, of the label's probabilities and of their kin."""

        def summed(values: Any) -> Array:
            pairs = csr_matrix((values, scores.indices, scores.indptr), shape=scores.shape)
            return self._at(problem.groups @ pairs)

        p = np.exp(scores.data.astype(np.float64))
        sums = [summed(p), summed(p**2), summed(p > 0.5), summed(p > 0.1), summed(scores.data)]
        totals = np.bincount(self.label, sums[0])[self.label]
        present = np.bincount(self.label)[self.label] / problem.n_groups
        sizes = problem.sizes()[self.group]
        positive = [np.log(column + 1e-3) for column in (*sums[:4], totals, present, sizes)]
        return np.stack([self.estimated, sums[4] / sizes, *positive], axis=1)

    def _at(self, matrix: csr_matrix) -> Array:
        return np.asarray(csr_matrix(matrix)[self.group, self.label], np.float64).ravel()


def correlations(name: str, pairs: dict[str, Pairs]) -> dict[str, Any]:
    own, others = pairs[name], [found for other, found in pairs.items() if other != name]
    learned = regressor().fit(
        np.concatenate([other.features for other in others]),
        np.concatenate([other.true for other in others]),
        sample_weight=np.concatenate([np.full(len(o.true), 1 / len(o.true)) for o in others]),
    )
    by_own = cross_val_predict(
        regressor(), own.features, own.true, groups=own.group, cv=GroupKFold(3)
    )

    def correlation(found: Array) -> float:
        return round(float(np.corrcoef(found, own.true)[0, 1]), 3)

    return {
        "set": name, "pairs": len(own.true), "noisy-or": correlation(own.estimated),
        "other groups": correlation(by_own),
        "other sets": correlation(learned.predict(own.features)),
    }  # fmt: skip


def regressor() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        max_depth=4, max_iter=100, learning_rate=0.08, min_samples_leaf=100, random_state=0
    )


def markdown(results: dict[str, Any]) -> str:
    columns = ["noisy-or", "other groups", "other sets"]
    head = ["validation", "pairs of cluster and label", "`Eagle()`"]
    table = [[*head, *(f"trees, {column}" for column in columns[1:])]]
    for row in results["rows"]:
        table.append([row["set"], f"{row['pairs']:,}", *(f"{row[c]:.2f}" for c in columns)])
    said = (
        "Clusters of about 50, presence only, after two rounds: correlation of estimated and true "
        "numbers of samples (logarithms). Trees learned true numbers from the same scores, on "
        "other groups of the set or on the three other sets."
    )
    title = "# Presence in clusters: how many samples have a label"
    return f"{title}\n\n{made_by(results)}\n\n{said}\n\n{table_lines(table)}\n"


if __name__ == "__main__":
    main()
