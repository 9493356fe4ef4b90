"""Eagle compared with the paper's methods, on test splits: what presence and what counts are worth.

    python benchmarks/aggregated_table.py --sets bibtex,cooking

Sets, groupings (random groups of 4 and 10, clusters of about 50), presence or counts, and the
methods: Baseline (all labels of a group for each of its samples), EAGLE-0 and EAGLE as printed
(samples without labels dropped, or kept), `Eagle()`, and Oracle (true labels). Features and solver
are those of aggregated_choices.py. A run skips what `results/aggregated_table.json` has, so that it
can be interrupted; `--again` measures anew. Rows as printed have the first `--printed-seeds` seeds
only. CPU is relative to the solver's training on true labels in the same run.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from aggregated_choices import GROUPINGS, KNOWN, SETS, Data, eagle, fitted, spread, tree
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results

import umpteen as um

Row = dict[str, Any]
PRINTED = {
    "EAGLE-0, as printed": {"recipe__iterations": 0},
    "EAGLE, as printed": {},
    "EAGLE, as printed, kept": {"recipe__unlabelled": "keep"},
}
OURS = "Eagle()"
METHODS = ("Baseline", *PRINTED, OURS, "Oracle")


def main() -> None:
    options = parse()
    path = results_folder(options.quick) / "aggregated_table.json"
    results = json.loads(path.read_text()) if path.exists() else {"rows": []}
    command = shlex.join(["python", "benchmarks/aggregated_table.py", *sys.argv[1:]])
    results |= {"command": command, "machine": machine(), "versions": versions()}
    if options.again:
        results["rows"] = [row for row in results["rows"] if row["set"] not in options.sets]
    done = {key(row) for row in results["rows"]}
    for row in measure(options, done):
        results["rows"].append(row)
        write_results(results, path, markdown(results))
        print(row, flush=True)
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=lambda given: given.split(","), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--printed-seeds", type=int, default=5, help="seeds of rows as printed")
    parser.add_argument("--again", action="store_true", help="measure these sets anew")
    parser.add_argument("--quick", action="store_true", help="1,000 samples of each set")
    return parser.parse_args()


def key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("set", "groups", "known", "method", "seed"))


def measure(options: argparse.Namespace, done: set[tuple[Any, ...]]) -> Iterator[Row]:
    """Seeds are outermost within a set, so that all of its groupings come early."""
    for name in options.sets:
        data = Data(name, 1_000 if options.quick else None, is_test=True)
        tree().fit(data.X, data.Y)  # compiles
        for seed in range(options.seeds):
            oracle, cost = fitted(tree(seed), data.X, data.Y)
            truth = {"precision": data.precision(oracle), "cpu": 1.0, "chosen": ""}
            for grouping in GROUPINGS:
                for merge, known in KNOWN.items():
                    groups = data.grouped(grouping, merge, seed)
                    ways = methods(data, groups, seed, seed < options.printed_seeds)
                    for method, way in ways.items():
                        row = {
                            "set": name, "groups": grouping, "known": known, "method": method,
                            "seed": seed,
                        }  # fmt: skip
                        if key(row) not in done:
                            yield row | (truth if way is None else measured(data, way, cost))


def methods(
    data: Data, groups: Row, seed: int, printed: bool
) -> dict[str, Callable[[], tuple[Any, float]] | None]:
    """Return what fits each method; Oracle is fitted already."""
    everything = um.ignore_groups(data.X, **groups)
    found: dict[str, Callable[[], tuple[Any, float]] | None] = {
        "Baseline": partial(fitted, tree(seed), data.X, everything)
    }
    if printed:
        for name, changes in PRINTED.items():
            model = um.Eagle.paper(
                tree(seed), n_jobs=1, verbose=False, random_state=seed, **changes
            )
            found[name] = partial(fitted, model, data.X, **groups)
    found[OURS] = partial(fitted, eagle(tree(seed), seed), data.X, **groups)
    return found | {"Oracle": None}


def measured(data: Data, way: Callable[[], tuple[Any, float]], cost: float) -> Row:
    model, cpu = way()
    chosen = getattr(model, "chosen_", "")
    return {"precision": data.precision(model), "cpu": cpu / cost, "chosen": chosen}


def markdown(results: Row) -> str:
    """P@1 with its spread, P@3 and P@5 of each method; a line for each set and grouping."""
    rows = results["rows"]
    table = [["P@1 / 3 / 5 on test", "known", *METHODS, "closed, %", "CPU"]]
    for case in dict.fromkeys((r["set"], r["groups"], r["known"]) for r in rows):
        own = [r for r in rows if (r["set"], r["groups"], r["known"]) == case]
        by = {m: np.array([r["precision"] for r in own if r["method"] == m]) for m in METHODS}
        if not all(len(by[name]) for name in ("Baseline", OURS, "Oracle")):
            continue
        base, best = by["Baseline"].mean(0), by["Oracle"].mean(0)
        closed = 100 * (by[OURS].mean(0) - base) / (best - base)
        cpu = np.median([r["cpu"] for r in own if r["method"] == OURS])
        cells = [spread(by[m]) if len(by[m]) else "" for m in METHODS]
        table.append(
            [f"{case[0]}, {case[1]}", case[2], *cells, " / ".join(f"{c:.0f}" for c in closed),
             f"{cpu:.1f}"]
        )  # fmt: skip
    seeds = 1 + max((r["seed"] for r in rows), default=0)
    said = (
        f"Mean over up to {seeds} seeds of groups and solver, at P@1 with the standard deviation. "
        "Runs add to the rows that are there, so rows may be of several runs and machines. "
        "The last two columns are of `Eagle()`: how much of "
        "the gap from Baseline to Oracle it closes, and CPU relative to the solver's training."
    )
    head = f"# Labels of groups: presence and counts\n\n{made_by(results)}\n\n{said}"
    return f"{head}\n\n{table_lines(table)}\n"


if __name__ == "__main__":
    main()
