"""When Eagle learns from all labels of the groups instead of its assignment.

    python benchmarks/aggregated_baseline.py

Both are trained on random groups, clusters, and groups of samples that share all labels, and
measured on samples of the training split that neither saw. Next to that: what validation groups
say of both, which is all that `Eagle` knows when it chooses. Results go to
`results/aggregated_baseline.json` and `.md`; rows that are there are kept.
"""

import argparse
import json
from typing import Any

import numpy as np
from aggregated_choices import KNOWN, Data, Row, eagle, slashed, tree
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results

import umpteen as um
from umpteen.aggregated import EagleRecipe
from umpteen.aggregated.problem import Problem
from umpteen.aggregated.validating import compare_labels
from umpteen.data import aggregate

SIZES = {"bibtex": 3_900, "cooking": 4_000, "debian-tags": 4_000, "eurlex57k": 5_000}
GROUPINGS = (
    "random 2", "random 10", "clusters 3", "clusters 10", "clusters 50", "same 2", "same 20",
)  # fmt: skip
HEADINGS = [
    "samples of the training split", "known", "seed", "Eagle, P@1 / 3 / 5",
    "Baseline, P@1 / 3 / 5", "hits", "lift", "chosen",
]  # fmt: skip
_SEEDS, _ENOUGH = 2, 0.5  # points of P@1 that count as a difference


def main() -> None:
    options = parse()
    path = results_folder(options.quick) / "aggregated_baseline.json"
    rows: list[Row] = json.loads(path.read_text())["rows"] if path.exists() else []
    done = {(row["set"], row["groups"], row["merge"], row["seed"]) for row in rows}
    for name in options.sets.split(","):
        data = Data(name, 800 if options.quick else SIZES[name], is_test=False)
        for grouping in GROUPINGS:
            for merge in ("set", "list"):
                for seed in range(1 if options.quick else _SEEDS):
                    if (name, grouping, merge, seed) not in done:
                        rows.append(measured(data, grouping, merge, seed))
                        print(rows[-1], flush=True)
        results = {"machine": machine(), "versions": versions(), "rows": rows}
        results["command"] = "python benchmarks/aggregated_baseline.py"
        write_results(results, path, markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SIZES))
    parser.add_argument("--quick", action="store_true", help="800 samples of each set, one seed")
    return parser.parse_args()


def measured(data: Data, grouping: str, merge: str, seed: int) -> Row:
    """What true labels of other samples say, and what validation groups say."""
    known = sharing(data, grouping, merge, seed)
    model = eagle(tree(seed), seed, recipe=EagleRecipe(compare=False)).fit(data.X, **known)
    baseline = tree(seed).fit(data.X, um.ignore_groups(data.X, **known))
    problem = Problem.of(data.X, **known)
    ours, theirs = compare_labels(
        problem, [model.assigned_labels_, problem.everything], tree(seed), seed
    )
    return {
        "set": data.name, "groups": grouping, "merge": merge, "seed": seed,
        "eagle": data.precision(model), "baseline": data.precision(baseline),
        "hits": [ours.two.hits, theirs.two.hits], "lift": [ours.two.lift, theirs.two.lift],
        "says_baseline": theirs.two.is_about_as_good(ours.two),
    }  # fmt: skip


def sharing(data: Data, grouping: str, merge: str, seed: int) -> dict[str, Any]:
    """Groups of samples with the same labels, or those of `Data.grouped`."""
    kind, size = grouping.split()
    if kind != "same":
        return data.grouped(grouping, merge, seed)
    order = np.random.default_rng(seed).permutation(data.X.shape[0])
    by_labels: dict[tuple[int, ...], list[int]] = {}
    for sample in order:
        by_labels.setdefault(tuple(sorted(data.Y[sample].indices)), []).append(int(sample))
    step = int(size)
    lists = [
        samples[i : i + step]
        for samples in by_labels.values()
        for i in range(0, len(samples), step)
    ]
    group_of = np.empty(len(order), np.int64)
    for j, samples in enumerate(lists):
        group_of[samples] = j
    groups = Problem.of(data.X, group_of, [[]] * len(lists), n_labels=data.Y.shape[1]).groups
    return {"groups": groups, "group_labels": aggregate(data.Y, groups, merge=merge)}


def markdown(results: Row) -> str:
    rows = results["rows"]
    gains = np.array([row["eagle"][0] - row["baseline"][0] for row in rows])
    is_baseline = np.array([row["says_baseline"] for row in rows])
    is_behind = gains < -_ENOUGH
    lost = np.where(is_baseline, gains, -gains).max()
    said = (
        f"In {is_behind.sum()} of {len(rows)} rows, Baseline is ahead of Eagle by more than "
        f"{_ENOUGH} points of P@1 on samples of the training split that neither saw. Validation "
        f"groups say so in {(is_baseline & is_behind).sum()} of them. What they choose is at most "
        f'{lost:.1f} points below the better of both. "same" are groups of samples that have the '
        "same labels. Hits and lift are those of Baseline's two best labels relative to Eagle's: "
        "Baseline is chosen if neither is below 0.96."
    )
    title = "# When all labels of the groups are better than an assignment"
    table = table_lines([HEADINGS, *(cells(row) for row in rows)])
    return "\n\n".join([title, made_by(results), said, table]) + "\n"


def cells(row: Row) -> list[str]:
    return [
        f"{row['set']}, {row['groups']}",
        KNOWN[row["merge"]],
        str(row["seed"]),
        slashed(row["eagle"]),
        slashed(row["baseline"]),
        ratio(row["hits"]),
        ratio(row["lift"]),
        "Baseline" if row["says_baseline"] else "Eagle",
    ]


def ratio(values: list[float]) -> str:
    ours, theirs = values
    return f"{theirs / ours:.2f}" if ours > 0 else "-"


if __name__ == "__main__":
    main()
