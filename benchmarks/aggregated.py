"""What finding the samples of groups' labels costs, beside training, and how it grows.

    python benchmarks/aggregated.py
    python benchmarks/aggregated.py --million     # Eagle() in full, by itself

On eurlex57k, in groups of 4: Algorithms 1 and 2 as printed, Eagle's own first assignment, and the
solver's training, in one process, repeated; ratios are of CPU seconds. On made-up data
(`umpteen.data.make_extreme`): time by group size, samples, iterations and labels, where the others
stand still; the slope is that of a straight line through the logarithms. The last run is `Eagle()`
in full, with its rounds, on a million samples and 300,000 labels in groups of 10 of which only
presence is known, in a process of its own for its peak of memory (`--samples` makes it smaller).
"""

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, peak_megabytes, reset_peak
from harness.report import made_by, table_lines, write_results

import umpteen as um
from umpteen.aggregated import assign_labels
from umpteen.aggregated.assignment import handed_out, similarities
from umpteen.aggregated.background import Background
from umpteen.aggregated.embeddings import Search
from umpteen.aggregated.problem import Problem
from umpteen.data import aggregate, group_randomly, make_extreme

BASE = {"n_samples": 20_000, "n_labels": 10_000, "size": 10, "iterations": 20}
AXES = {
    "size": [2, 5, 10, 20, 50],
    "n_samples": [10_000, 20_000, 40_000, 80_000],
    "iterations": [5, 10, 20, 40],
    "n_labels": [2_500, 10_000, 40_000],
}
MILLION = {"n_samples": 1_000_000, "n_labels": 300_000, "size": 10}


def main() -> None:
    options = parse()
    if options.million:
        print(million(options.samples // (10 if options.quick else 1)))
        return
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/aggregated.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "growth": [],
        "million": "",
    }
    path = results_folder(options.quick) / "aggregated.json"
    results["beside_training"] = beside_training(options)
    write_results(results, path, markdown(results))
    again = [sys.executable, __file__, "--million", *(["--quick"] if options.quick else [])]
    results["million"] = subprocess.run(again, check=True, capture_output=True, text=True).stdout
    for point in growth(options):
        results["growth"].append(point)
        write_results(results, path, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tenth of every size")
    parser.add_argument("--million", action="store_true", help="Eagle() in full, and no more")
    parser.add_argument("--samples", type=int, default=MILLION["n_samples"], help="of --million")
    return parser.parse_args()


def beside_training(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Median CPU and wall seconds of each way to assign, and of training."""
    data = um.data.load("eurlex57k").train
    n = len(data) // (10 if options.quick else 1)
    X = um.text.Vectorizer(ngrams=1, min_df=2).fit_transform(data.texts[:n])
    Y = data.Y[:n]
    groups = group_randomly(n, 4, 0)
    counts = aggregate(Y, groups)
    ways = {
        "LabelTree().fit on true labels": lambda: um.LabelTree(verbose=False).fit(X, Y),
        "as printed, T = 0": lambda: assign_labels(X, groups, counts, iterations=0),
        "as printed, T = 20": lambda: assign_labels(X, groups, counts),
        "first assignment of Eagle()": lambda: first_assignment(X, groups, counts),
    }
    seconds: dict[str, list[Stopwatch]] = {name: [] for name in ways}
    for repeat in range(options.repeats + 1):  # the first compiles
        for name, work in ways.items():
            with Stopwatch() as watch:
                work()
            if repeat:
                seconds[name].append(watch)
    found = [
        {"way": name, "cpu": median(w.cpu for w in runs), "wall": median(w.wall for w in runs)}
        for name, runs in seconds.items()
    ]
    return [{**row, "of_training": row["cpu"] / found[0]["cpu"]} for row in found]


def first_assignment(X: Any, groups: Any, counts: Any) -> Any:
    """What Eagle does before its rounds."""
    problem = Problem.of(X, groups, counts)
    search = Search(0, 0.1, Background.of_groups(problem, 64, 0))
    scores, _ = similarities(problem, search, 0, -1, keep=100)
    return handed_out(problem, scores, "count")


def growth(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    divisor = 10 if options.quick else 1
    for axis, steps in AXES.items():
        for step in steps:
            case = {**BASE, axis: step}
            case["n_samples"] //= divisor
            X, groups, counts, _ = made_up(case)
            with Stopwatch() as watch:
                assign_labels(X, groups, counts, iterations=case["iterations"])
            pairs = float((groups.sum(axis=1).T @ (counts > 0)).sum())
            yield {
                "axis": axis, **case, "pairs": pairs, "cpu": watch.cpu, "wall": watch.wall,
            }  # fmt: skip


def million(n_samples: int) -> str:
    """Time and peak memory of `Eagle().fit` beside its solver's, in a sentence."""
    n_labels = MILLION["n_labels"] * n_samples // MILLION["n_samples"]
    case = {**MILLION, "n_samples": n_samples, "n_labels": n_labels}
    X, groups, known, Y = made_up(case, merge="set")
    with Stopwatch() as training:
        um.LabelTree(verbose=False).fit(X, Y)
    reset_peak()
    before = peak_megabytes()
    with Stopwatch() as watch:
        model = um.Eagle(verbose=False).fit(X, groups=groups, group_labels=known)
    return (
        f"{n_samples:,} samples, {n_labels:,} labels, groups of {case['size']}, presence only: "
        f"Eagle().fit takes {watch.cpu:,.0f} CPU s and {watch.wall:,.0f} s, with "
        f"{len(model.agreement_)} rounds ({model.chosen_}); peak {peak_megabytes():,.0f} MB "
        f"({before:,.0f} MB of it data and program), {model.assigned_labels_.nnz:,} labels given. "
        f"LabelTree().fit on true labels takes {training.cpu:,.0f} CPU s."
    )


def made_up(case: dict[str, int], merge: str = "list") -> tuple[Any, Any, Any, Any]:
    data = make_extreme(
        case["n_samples"], 100_000, case["n_labels"], test_fraction=0.0, random_state=0
    ).train
    groups = group_randomly(len(data), case["size"], 0)
    return data.X, groups, aggregate(data.Y, groups, merge=merge), data.Y


def slopes(points: list[dict[str, Any]]) -> dict[str, float]:
    """The exponent with which CPU time grows along each axis."""
    found = {}
    for axis in AXES:
        own = [point for point in points if point["axis"] == axis]
        if len(own) < 2:
            continue
        x, y = np.log([p[axis] for p in own]), np.log([p["cpu"] for p in own])
        found[axis] = float(np.polyfit(x, y, 1)[0])
    return found


def markdown(results: dict[str, Any]) -> str:
    beside = [["eurlex57k, groups of 4", "CPU s", "wall s", "of training's CPU"]]
    for row in results["beside_training"]:
        times = [f"{row['cpu']:.2f}", f"{row['wall']:.2f}", f"{row['of_training']:.2f}"]
        beside.append([row["way"], *times])
    grown = [["axis", *BASE, "pairs", "CPU s", "wall s"]]
    for point in results["growth"]:
        sizes = [f"{point[key]:,}" for key in BASE]
        last = [f"{point['pairs']:,.0f}", f"{point['cpu']:.2f}", f"{point['wall']:.2f}"]
        grown.append([point["axis"], *sizes, *last])
    for axis, slope in slopes(results["growth"]).items():
        grown.append([f"slope by {axis}", *[""] * (len(BASE) + 1), f"{slope:+.2f}", ""])
    parts = [made_by(results), table_lines(beside), table_lines(grown), results["million"].strip()]
    return "\n\n".join(["# Groups' labels: what assignment costs", *parts]) + "\n"


if __name__ == "__main__":
    main()
