"""How the defaults of Eagle were chosen, on validation splits.

    python benchmarks/aggregated_choices.py measure   # agreement beside precision, 24 settings
    python benchmarks/aggregated_choices.py rounds    # rounds and folds: precision and cost
    python benchmarks/aggregated_choices.py trust     # cost of errors in rounds and at the end

All hold a fifth of the training samples back and never look at the test split: that is for
aggregated_table.py. They write `results/aggregated_choices.json` and `.md`; a run replaces the rows
of its part and its sets only, so that it can be interrupted. Features are TF-IDF of single words
(bibtex: its own matrix), the solver is LabelTree(n_jobs=1), and cost is CPU time relative to its
training on true labels.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch
from harness.report import made_by, table_lines, write_results
from scipy.sparse import csr_matrix
from scipy.stats import pearsonr, spearmanr
from sklearn.preprocessing import normalize

import umpteen as um
from umpteen.aggregated import EagleRecipe
from umpteen.aggregated.problem import Problem
from umpteen.aggregated.rounds import agreement
from umpteen.data import aggregate, group_by_clusters, group_randomly

Row = dict[str, Any]
SETS = ("bibtex", "cooking", "debian-tags", "eurlex57k")
MOST = {"eurlex57k": 15_000}  # the size of the paper's EurLex-4K
GROUPINGS = ("random 4", "random 10", "clusters 50")
SETTINGS = ("random 4", "random 10", "random 30", "clusters 15", "clusters 50", "mixed 50")
SMALL = {"bibtex": 4_000, "cooking": 4_000, "debian-tags": 3_000}  # samples of `measure`
MEDIUM = {"bibtex": 4_000, "cooking": 6_000, "debian-tags": 6_000}  # of `rounds` and `trust`


def main() -> None:
    options = parse()
    path = results_folder(options.quick) / "aggregated_choices.json"
    results = json.loads(path.read_text()) if path.exists() else {"parts": {}}
    command = shlex.join(["python", "benchmarks/aggregated_choices.py", *sys.argv[1:]])
    results |= {"command": command, "machine": machine(), "versions": versions()}
    parts: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
        "measure": measure, "rounds": rounds, "trust": trust,
    }  # fmt: skip
    rows = results["parts"].get(options.part, [])
    rows = results["parts"][options.part] = [row for row in rows if not is_redone(row, options)]
    for row in parts[options.part](options):
        rows.append(row)
        write_results(results, path, markdown(results))
        print(row, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["measure", "rounds", "trust"])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--quick", action="store_true", help="1,000 samples of each set")
    return parser.parse_args()


def is_redone(row: Row, options: argparse.Namespace) -> bool:
    return row["set"] in options.sets.split(",")


class Data:
    """Samples to learn from and to ask about: the test split, or a fifth of the training split."""

    def __init__(self, name: str, most: int | None, is_test: bool) -> None:
        X, Y, X_test, Y_test = _loaded(name)
        if not is_test:
            order = np.random.default_rng(123).permutation(X.shape[0])
            cut = int(0.8 * len(order))
            X, Y, X_test, Y_test = X[order[:cut]], Y[order[:cut]], X[order[cut:]], Y[order[cut:]]
        self.name, self.X, self.Y = name, X[:most], csr_matrix(Y[:most])
        self.X_test, self.Y_test = X_test, Y_test

    def precision(self, model: Any) -> list[float]:
        top = model.predict_topk(self.X_test, k=5)
        found = um.metrics.precision_at_k(self.Y_test, top, (1, 3, 5))
        return [round(100 * float(value), 2) for value in found]

    def grouped(self, grouping: str, merge: str, seed: int) -> dict[str, Any]:
        kind, size = grouping.split()
        if kind == "random":
            groups = group_randomly(self.X.shape[0], int(size), seed)
        else:
            depth = max(1, round(np.log2(self.X.shape[0] / int(size))))
            groups = group_by_clusters(self.X, depth, 1.0 if kind == "mixed" else 0.0, seed)
        return {"groups": groups, "group_labels": aggregate(self.Y, groups, merge=merge)}


def _loaded(name: str) -> tuple[Any, Any, Any, Any]:
    data = um.data.load(name)
    train, test = data.train, data.test
    rows = np.arange(len(train))
    if name in MOST:
        rows = np.sort(np.random.default_rng(0).permutation(len(rows))[: MOST[name]])
    if train.texts is None:
        return normalize(train.X[rows]), train.Y[rows], normalize(test.X), test.Y
    words = um.text.Vectorizer(ngrams=1, min_df=2)
    X = words.fit_transform([train.texts[row] for row in rows])
    return X, train.Y[rows], words.transform(test.texts), test.Y


def tree(seed: int = 0, **parameters: Any) -> um.LabelTree:
    return um.LabelTree(n_jobs=1, verbose=False, random_state=seed, **parameters)


def eagle(solver: um.LabelTree, seed: int = 0, **parameters: Any) -> um.Eagle:
    return um.Eagle(solver, n_jobs=1, verbose=False, random_state=seed, **parameters)


def fitted(model: Any, *args: Any, **known: Any) -> tuple[Any, float]:
    with Stopwatch() as watch:
        model.fit(*args, **known)
    return model, watch.cpu


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Agreement of held-out groups beside the precision that true labels show."""
    for name, most in chosen(SMALL, options):
        data = Data(name, most, is_test=False)
        oracle = data.precision(tree().fit(data.X, data.Y))[0]
        for grouping in SETTINGS:
            for merge in ("set", "list") if name == "bibtex" else ("set",):
                known = data.grouped(grouping, merge, seed=0)
                for way, labels in assignments(data, known):
                    agreed = held_out_agreement(data, known, labels)
                    rows = np.flatnonzero(np.diff(labels.indptr))
                    precision = data.precision(tree().fit(data.X[rows], labels[rows]))[0]
                    yield {
                        "set": name, "groups": grouping, "merge": merge, "way": way,
                        "agreement": agreed, "p1": precision, "oracle": oracle,
                    }  # fmt: skip


def assignments(data: Data, known: Row) -> Iterator[tuple[str, csr_matrix]]:
    yield "baseline", um.ignore_groups(data.X, **known)
    for n in (0, 1, 2):
        recipe = EagleRecipe(compare=False)
        model = eagle(tree(), rounds=n, recipe=recipe).fit(data.X, **known)
        yield f"{n} rounds", model.assigned_labels_


def held_out_agreement(data: Data, known: Row, labels: csr_matrix) -> float:
    """Of trees that learn from two thirds of the groups and answer for the others."""
    problem = Problem.of(data.X, **known)
    fold = np.random.default_rng(0).permutation(problem.n_groups) % 3
    fold_of = np.asarray((problem.groups.T @ csr_matrix(fold[:, None].astype(float))).todense())
    answers = np.full((data.X.shape[0], 1), -1, np.int32)
    for held_out in range(3):
        asked = np.flatnonzero(fold_of.ravel() == held_out)
        learned = np.flatnonzero((fold_of.ravel() != held_out) & (np.diff(labels.indptr) > 0))
        model = tree().fit(data.X[learned], labels[learned])
        answers[asked] = model.predict_topk(data.X[asked], k=1).labels
    return agreement(problem, answers)


def rounds(options: argparse.Namespace) -> Iterator[Row]:
    cases: list[tuple[int | None, int, int]] = [
        (0, 3, 1), (1, 3, 2), (2, 3, 2), (4, 3, 2), (4, 3, 1), (4, 2, 2), (None, 3, 2),
    ]  # fmt: skip
    for data, grouping, merge, known, cost in problems(options):
        for n, folds, votes in cases:
            recipe = EagleRecipe(folds=folds, compare=n is None)
            model = eagle(tree(), rounds=n, votes=votes, recipe=recipe)
            model, cpu = fitted(model, data.X, **known)
            yield {
                "set": data.name, "groups": grouping, "merge": merge, "rounds": n, "folds": folds,
                "votes": votes, "compare": recipe.compare, "precision": data.precision(model),
                "of_training": cpu / cost, "chosen": model.chosen_,
            }  # fmt: skip


def trust(options: argparse.Namespace) -> Iterator[Row]:
    """Cost of errors of the final tree; the rounds have a fifth of what is given."""
    for data, grouping, merge, known, _ in problems(options):
        for cost in (1.0, 0.5, 0.25, 0.1):
            model = eagle(tree(cost=cost), recipe=EagleRecipe(compare=False))
            yield {
                "set": data.name, "groups": grouping, "merge": merge, "cost": cost,
                "precision": data.precision(model.fit(data.X, **known)),
            }  # fmt: skip


def problems(options: argparse.Namespace) -> Iterator[tuple[Data, str, str, Row, float]]:
    for name, most in chosen(MEDIUM, options):
        data = Data(name, most, is_test=False)
        cost = min(fitted(tree(), data.X, data.Y)[1] for _ in range(2))
        for grouping in ("random 10", "clusters 50"):
            for merge in ("set", "list"):
                yield data, grouping, merge, data.grouped(grouping, merge, 0), cost


def chosen(sizes: dict[str, int], options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    for name, most in sizes.items():
        if name in options.sets.split(","):
            yield name, 1_000 if options.quick else most


def markdown(results: Row) -> str:
    parts = results["parts"]
    pages = [f"# How Eagle's defaults were chosen\n\n{made_by(results)}"]
    tables = {"measure": of_measure, "rounds": of_rounds, "trust": of_trust}
    pages += [tables[name](parts[name]) for name in tables if parts.get(name)]
    return "\n\n".join(pages) + "\n"


KNOWN = {"set": "presence", "list": "counts"}


def spread(values: Any) -> str:
    """P@1 with its standard deviation over seeds, P@3 and P@5."""
    first = f"{values[:, 0].mean():.1f}"
    if len(values) > 1:
        first += f" ± {values[:, 0].std(ddof=1):.1f}"
    return " / ".join([first, *(f"{values[:, i].mean():.1f}" for i in (1, 2))])


def of_measure(rows: list[Row]) -> str:
    agreed = np.array([r["agreement"] for r in rows])
    share = np.array([r["p1"] / r["oracle"] for r in rows])
    setting = [f"{r['set']} {r['groups']} {r['merge']}" for r in rows]
    assigned = np.array([r["way"] != "baseline" for r in rows])
    if len(set(setting)) < 2:
        return ""  # no correlation yet
    inside = np.concatenate(
        [
            np.stack([v[own] - v[own].mean() for v in (agreed, share)], axis=1)
            for own in (np.array(setting) == name for name in dict.fromkeys(setting))
        ]
    )
    said = (
        f"Agreement and P@1 (as a share of the oracle's) over {len(set(setting))} settings, "
        f"{len(rows)} points: Pearson {pearsonr(agreed, share)[0]:.2f}, Spearman "
        f"{spearmanr(agreed, share)[0]:.2f}; without Baseline "
        f"{spearmanr(agreed[assigned], share[assigned])[0]:.2f} (Spearman); within a setting "
        f"{pearsonr(*inside.T)[0]:.2f} (Pearson)."
    )
    table = [["validation", "known", "Oracle", *dict.fromkeys(r["way"] for r in rows)]]
    for name in dict.fromkeys(setting):
        own = [r for r, other in zip(rows, setting, strict=True) if other == name]
        cells = [f"{r['p1']:.1f} ({r['agreement']:.2f})" for r in own]
        first = own[0]
        where = f"{first['set']}, {first['groups']}"
        table.append([where, KNOWN[first["merge"]], f"{first['oracle']:.1f}", *cells])
    return f"## Agreement and precision\n\n{said} P@1 (agreement):\n\n{table_lines(table)}"


def of_rounds(rows: list[Row]) -> str:
    table = [["validation", "known", "rounds", "folds", "votes", "P@1 / 3 / 5", "CPU of training"]]
    for r in rows:
        cost = f"{r['of_training']:.1f}" + (" with the comparison" if r["compare"] else "")
        n_rounds = "default" if r["rounds"] is None else str(r["rounds"])
        numbers = [n_rounds, str(r["folds"]), str(r["votes"])]
        where = f"{r['set']}, {r['groups']}"
        table.append([where, KNOWN[r["merge"]], *numbers, slashed(r["precision"]), cost])
    return "## Rounds\n\n" + table_lines(table)


def of_trust(rows: list[Row]) -> str:
    table = [["validation", "known", "cost of the solver", "P@1 / 3 / 5"]]
    for r in rows:
        where = f"{r['set']}, {r['groups']}"
        table.append([where, KNOWN[r["merge"]], f"{r['cost']:g}", slashed(r["precision"])])
    return "## Cost of errors\n\n" + table_lines(table)


def slashed(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main()
