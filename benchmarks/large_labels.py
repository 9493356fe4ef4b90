"""LabelTree compared with PECOS where labels are many, on one thread.

    python benchmarks/large_labels.py
    python benchmarks/large_labels.py --sets debian-deps 100k --repeats 2
    python benchmarks/large_labels.py --keep --sets 1M --timeout 3600

The synthetic sets (`umpteen.data.make_extreme`) have 100,000 labels and more; the real ones, from
the folder `$UMPTEEN_DATA`, are used as they are. With a million labels, each has a sample, and
samples are short, like titles: 10 words, 3 of them from no label, instead of 50 and 40. `--keep`
measures some sets again, or for the first time, and keeps the results of others. Both systems have
their defaults and one thread, and train one after another, each in a fresh process; every second
repeat goes in reverse order. CPU seconds are of the training alone; peak memory is of the whole
process with its data. Both run without pandas, which scikit-learn would import, and neither needs.
"""

import argparse
import json
import shlex
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
    "1M": {"n_train": 1_000_000, "n_features": 100_000, "n_labels": 1_000_000}
    | {"features_per_sample": 10, "noise": 0.3},
}
REAL = ("debian-deps", "wordnet-ancestors")
COLUMNS = [
    Column("train_cpu", "train CPU s", 1),
    Column("train_wall", "train wall s", 1),
    Column("train_peak", "train peak MB", 0),
    Column("train_files", "of which files MB", 0),
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
        "seed": options.seed,
        "repeats": options.repeats,
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }
    place = results_folder(options.quick) / "large_labels.json"
    if options.keep and place.exists():
        before = json.loads(place.read_text())
        results["rows"] = [row for row in before["rows"] if row["set"] not in options.sets]
    systems = chosen(options.systems)
    for name in options.sets:
        matrices = matrices_of(name, options)
        shape = matrices["Y_train"].shape
        rows = [new_row(name, shape, system) for system in systems]
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


def new_row(name: str, shape: tuple[int, int], system: System) -> Row:
    return {
        "set": name,
        "samples": shape[0],
        "labels": shape[1],
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
    lines = [["set", "samples", "labels", "system", *(column.heading for column in COLUMNS)]]
    for name in sets_in(results):
        rows = [row for row in results["rows"] if row["set"] == name]
        for row in rows:
            found = figures(row)
            cells = [column.show(found) for column in COLUMNS]
            lines.append([name, n_samples(row), f"{row['labels']:,}", row["system"], *cells])
            lines[-1][4] = row["failed"] or lines[-1][4]
        ours, theirs = figures(rows[0]), figures(rows[-1])
        ratios = {key: ours[key] / theirs[key] for key in ours if theirs.get(key)}
        if len(rows) > 1:
            shown = [column.show_ratio(ratios) for column in COLUMNS]
            named = f"**{rows[0]['system']} / {rows[-1]['system']}**"
            lines.append([name, "", "", named, *(f"**{cell}**" if cell else "" for cell in shown)])
    about = (
        f"{made_by(results | {'command': command(results)})} {trainings(results)} on one thread. "
        "Peak memory is of the whole process with its data; the part in files is mostly the code "
        "of libraries, which the processes of a machine share. Samples of 1M have 10 words, those "
        "of the other synthetic sets 50. Both systems ran without "
        "pandas, which scikit-learn imports if it is installed, and which neither needs."
        f"{not_measured(results)}"
    )
    return "\n\n".join([TITLE, about, table_lines(lines)]) + "\n"


def not_measured(results: dict[str, Any]) -> str:
    """Say which trainings of the table were not run."""
    found = [row for row in results["rows"] if not row["repeats"]]
    return "".join(
        f" The training of {row['system']} on {row['set']} was not run." for row in found
    )


def command(results: dict[str, Any]) -> str:
    """The command that measures all sets of the table, which were measured one after another."""
    more = ["--repeats", str(results["repeats"])] if results["repeats"] > 1 else []
    script = ["python", "benchmarks/large_labels.py"]
    return shlex.join([*script, "--sets", *sets_in(results), *more])


def sets_in(results: dict[str, Any]) -> list[str]:
    """The sets that were measured, real ones first."""
    known = {row["set"] for row in results["rows"]}
    return [name for name in (*REAL, *MADE_UP) if name in known]


def trainings(results: dict[str, Any]) -> str:
    """Say how many trainings the figures are of."""
    runs = results["repeats"]
    return f"Figures are medians of {runs} trainings" if runs > 1 else "Figures are of one training"


def n_samples(row: Row) -> str:
    """The training samples of a row's set; earlier runs did not note them."""
    known = row.get("samples") or MADE_UP.get(row["set"], {}).get("n_train")
    return f"{known:,}" if known else ""


if __name__ == "__main__":
    main()
