"""LabelTree compared with PECOS where labels are many, on one thread.

    python benchmarks/large_labels.py
    python benchmarks/large_labels.py --sets debian-deps 100k --repeats 2

The made-up sets (`umpteen.data.make_extreme`) have 100,000 labels and more, the real ones, from the
folder `$UMPTEEN_DATA`, as many as there are. Both systems have their defaults and one thread, and
train one after another, each in a fresh process; every second repeat goes in reverse order. CPU
seconds are of the training alone; peak memory is of the whole process with its data. umpteen runs
as it is installed without extras: scikit-learn imports pandas, another 67 MB, if it is there.
"""

import argparse
import json
import shlex
import sys
from statistics import median
from typing import Any

from harness.environment import PEERS_HOME, machine, make_peers, results_folder, versions
from harness.matrices import MAX_FEATURES, Matrices, prepare, synthesise
from harness.report import Column, made_by, table_lines, write_results
from harness.runs import Round
from harness.systems import System, chosen
from rich.console import Console

TITLE = "# LabelTree compared with PECOS where labels are many"
WIDE = {"n_features": 100_000, "labels_per_sample": 5}
MADE_UP = {
    "100k": {"n_train": 100_000, "n_features": 50_000, "n_labels": 100_000},
    "100k, more samples": {"n_train": 200_000, "n_labels": 100_000} | WIDE,
    "300k": {"n_train": 300_000, "n_features": 100_000, "n_labels": 300_000},
    "1M": {"n_train": 1_000_000, "n_features": 100_000, "n_labels": 1_000_000},
}
REAL = ("debian-deps", "wordnet-ancestors")
COLUMNS = [
    Column("train_cpu", "train CPU s", 1),
    Column("train_wall", "train wall s", 1),
    Column("train_peak", "train peak MB", 0),
    Column("size", "model MB", 1),
    *(Column(f"P@{k}", f"P@{k}", 2, True) for k in (1, 3, 5)),
    *(Column(f"PSP@{k}", f"PSP@{k}", 2, True) for k in (1, 3, 5)),
]
LOG = Console(stderr=True)

Row = dict[str, Any]


def main() -> None:
    options = parse()
    make_peers()
    results = {
        "command": shlex.join(["python", "benchmarks/large_labels.py", *sys.argv[1:]]),
        "seed": options.seed,
        "repeats": options.repeats,
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }
    place = results_folder(options.quick) / "large_labels.json"
    if options.keep and place.exists():
        before = json.loads(place.read_text())
        results["command"] = before["command"] + ", then " + results["command"]
        results["rows"] = [row for row in before["rows"] if row["set"] not in options.sets]
    systems = chosen(options.systems)
    for name in options.sets:
        matrices = matrices_of(name, options)
        n_labels = matrices["Y_train"].shape[1]
        rows = [new_row(name, n_labels, system) for system in systems]
        results["rows"] += rows
        for repeat in range(options.repeats):
            for system, row in list(zip(systems, rows, strict=True))[:: -1 if repeat % 2 else 1]:
                measure(matrices, system, row, options)
                write_results(results, place, markdown(results))
    LOG.print(markdown(results), markup=False, soft_wrap=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", nargs="+", default=[*REAL, "100k"], choices=[*REAL, *MADE_UP], metavar="SET"
    )
    parser.add_argument("--systems", nargs="+", default=["umpteen x1", "pecos binary"])
    parser.add_argument("--repeats", type=int, default=1, help="trainings of each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=1200, help="seconds that a job may take")
    parser.add_argument("--keep", action="store_true", help="keep results of other sets")
    parser.add_argument("--quick", action="store_true", help="a tenth of each set, to try things")
    return parser.parse_args()


def matrices_of(name: str, options: argparse.Namespace) -> Matrices:
    cache = PEERS_HOME / "matrices"
    if name in MAX_FEATURES:
        return prepare(name, cache, seed=options.seed, quick=options.quick)
    shape = dict(MADE_UP[name])
    for size in ("n_train", "n_features", "n_labels"):
        shape[size] //= 10 if options.quick else 1
    return synthesise(cache, seed=options.seed, **shape)


def new_row(name: str, n_labels: int, system: System) -> Row:
    return {
        "set": name,
        "labels": n_labels,
        "system": system.name,
        "train": system.train,
        "repeats": [],
        "failed": None,
    }


def measure(matrices: Matrices, system: System, row: Row, options: argparse.Namespace) -> None:
    """Add the figures of one training and its answers to `row`."""
    LOG.print(f"{row['set']}: {system.name}")
    turn = Round(matrices, options.seed, options.timeout, threads=1)
    found, row["failed"] = turn.gather(system, turn.training, turn.prediction)
    row["repeats"].append(found)


def figures(row: Row) -> dict[str, float]:
    """The median of each figure over the repeats that have it."""
    known = {
        column.key: [found[column.key] for found in row["repeats"] if column.key in found]
        for column in COLUMNS
    }
    return {key: median(values) for key, values in known.items() if values}


def markdown(results: dict[str, Any]) -> str:
    """One table, with our figures over theirs below each set."""
    lines = [["set", "labels", "system", *(column.heading for column in COLUMNS)]]
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["set"] == name]
        for row in rows:
            found = figures(row)
            cells = [column.show(found) for column in COLUMNS]
            lines.append([name, f"{row['labels']:,}", row["system"], *cells])
            lines[-1][3] = row["failed"] or lines[-1][3]
        ours, theirs = figures(rows[0]), figures(rows[-1])
        ratios = {key: ours[key] / theirs[key] for key in ours if theirs.get(key)}
        if len(rows) > 1:
            shown = [column.show_ratio(ratios) for column in COLUMNS]
            named = f"**{rows[0]['system']} / {rows[-1]['system']}**"
            lines.append([name, "", named, *(f"**{cell}**" if cell else "" for cell in shown)])
    runs = results["repeats"]
    trainings = f"Medians of {runs} trainings" if runs > 1 else "One training"
    about = (
        f"{made_by(results)} {trainings} on one thread. Peak memory is of the whole process with "
        "its data. On debian-deps and wordnet-ancestors, umpteen ran as it is installed without "
        "extras; on the others it has another 67 MB, since scikit-learn imports pandas if it is "
        "there."
    )
    return "\n\n".join([TITLE, about, table_lines(lines)]) + "\n"


if __name__ == "__main__":
    main()
