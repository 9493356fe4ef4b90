"""LabelTree compared with PECOS, Omikuji and napkinXC on the same matrices, in one run.

    python benchmarks/trees.py
    python benchmarks/trees.py --sets eurlex57k --systems umpteen "pecos hash" --repeats 3

The real sets come from the folder `$UMPTEEN_DATA`; the peers get an environment of their own in
`.peers/`. Every training and every prediction is a fresh process. Times are of the training and
the prediction alone, to the peers' favour: reading data, and turning it into what a library
likes best, is off the clock. A prediction runs three times in its process (a slow one, until 20 s
are over) and the best counts; all are in the JSON file. With one thread, the first 5,000 test
rows are predicted; single rows are timed with one thread and with all, and the better counts.
Peak memory is of the whole process, with its data and Python. A job that takes longer than
`--timeout` is stopped, and a system that was stopped or failed says so in its row.
"""

import argparse
import shlex
import sys
from collections.abc import Iterator
from typing import Any

from harness.environment import PEERS_HOME, machine, make_peers, results_folder, versions
from harness.matrices import SETS, Matrices, prepare
from harness.report import Row, print_table, write
from harness.runs import Round
from harness.systems import MORE, SYSTEMS, System, chosen
from rich.console import Console

LOG = Console(stderr=True)


def main() -> None:
    options = parse()
    make_peers()
    systems = chosen(options.systems, every=options.all)
    results = describe(options)
    for name in options.sets:
        matrices = prepare(name, PEERS_HOME / "matrices", seed=options.seed, quick=options.quick)
        rows = [new_row(name, system) for system in systems]
        results["rows"] += rows
        for _ in measure(matrices, systems, rows, options):
            write(results, results_folder(options.quick) / "trees.json")
        print_table(name, rows)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(system.name for system in SYSTEMS + MORE)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS, metavar="SET")
    parser.add_argument("--systems", nargs="+", default=[], metavar="SYSTEM", help=names)
    parser.add_argument("--all", action="store_true", help="the slow and less usual systems too")
    parser.add_argument("--repeats", type=int, default=1, help="trainings of each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=240, help="seconds that a job may take")
    parser.add_argument("--quick", action="store_true", help="a tenth of each set, to try things")
    return parser.parse_args()


def describe(options: argparse.Namespace) -> dict[str, Any]:
    """What a reader needs to make these results again."""
    return {
        "command": shlex.join(["python", "benchmarks/trees.py", *sys.argv[1:]]),
        "seed": options.seed,
        "repeats": options.repeats,
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }


def measure(
    matrices: Matrices, systems: list[System], rows: list[Row], options: argparse.Namespace
) -> Iterator[Row]:
    """Fills `rows`, each as soon as it is measured; every second repeat goes in reverse order."""
    for repeat in range(options.repeats):
        turn = Round(matrices, seed=options.seed, timeout=options.timeout)
        for system, row in list(zip(systems, rows, strict=True))[:: -1 if repeat % 2 else 1]:
            LOG.print(f"{row['set']}, repeat {repeat + 1}: {system.name}")
            found, failure = turn.run(system)
            row["repeats"].append(found)
            if failure:
                row["failed"] = failure
                LOG.print(failure, style="red", markup=False)
            yield row


def new_row(name: str, system: System) -> Row:
    return {
        "set": name,
        "system": system.name,
        "group": system.group,
        "peer": system.is_peer,
        "train": system.train,
        "predict": system.predict,
        "repeats": [],
        "failed": None,
    }


if __name__ == "__main__":
    main()
