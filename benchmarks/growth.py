"""How LabelTree's training grows with samples, labels per sample and labels, up to a million.

    python benchmarks/growth.py [--only million]

The data is made up (`umpteen.data.make_extreme`). Along each axis the other two stand still; the
slope is that of a straight line through the logarithms: 1 means twice the data, twice the time.
The last run has a million samples for a million labels.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from harness.environment import PEERS_HOME, machine, results_folder, versions
from harness.matrices import synthesise
from harness.report import made_by, table_lines, write_results
from harness.runs import Round
from harness.systems import chosen
from rich.console import Console
from rich.table import Table

TITLE = "# How LabelTree grows with samples and labels"
SMALL = {"n_train": 50_000, "n_labels": 10_000, "labels_per_sample": 4}
LARGE = SMALL | {"n_train": 200_000}
MILLION = {"n_train": 1_000_000, "n_labels": 1_000_000, "labels_per_sample": 3}
AXES = {  # what stands still, and the steps of what grows
    "n_train": (SMALL, [25_000, 50_000, 100_000, 200_000]),
    "labels_per_sample": (SMALL, [2, 4, 8, 16]),
    "n_labels": (LARGE, [10_000, 100_000, 1_000_000]),
}
N_FEATURES = 100_000
FIGURES = {
    "train_cpu": "train CPU s",
    "train_wall": "train wall s",
    "train_peak": "train MB",
    "size": "model MB",
    "batch": "predict µs/row",
    "predict_peak": "predict MB",
    "P@1": "P@1",
}
SLOPES = ("train_cpu", "train_peak", "size", "batch")
LOG = Console(stderr=True)

Point = dict[str, Any]


def main() -> None:
    options = parse()
    results = {
        "command": shlex.join(["python", "benchmarks/growth.py", *sys.argv[1:]]),
        "seed": options.seed,
        "machine": machine(),
        "versions": versions(),
        "points": [],
    }
    place = results_folder(options.quick) / "growth.json"
    if options.only:
        before = json.loads(place.read_text())
        results["command"] = before["command"] + ", then " + results["command"]
        kept = [point for point in before["points"] if point["axis"] != options.only]
        results["points"] = kept
    for point in measure(options):
        results["points"].append(point)
        results["slopes"] = slopes(results["points"])
        write_results(results, place, markdown(results))
    show(results)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=1200, help="seconds that a job may take")
    parser.add_argument(
        "--only", choices=[*AXES, "million"], help="measure this again, and keep the others"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of every size")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> Iterator[Point]:
    """One point after another; one that two axes share is measured once."""
    done: dict[tuple[int, ...], Point] = {}
    for axis, shape in shapes(10 if options.quick else 1):
        if options.only not in (None, axis):
            continue
        key = tuple(shape.values())
        if key not in done:
            LOG.print(f"{axis}: {shape}", soft_wrap=True)
            done[key] = run(shape, options)
        yield {"axis": axis, **done[key]}


def run(shape: dict[str, int], options: argparse.Namespace) -> Point:
    """Training and prediction, each in a fresh process; a failed one has a reason."""
    (system,) = chosen(["umpteen x1"])
    matrices = synthesise(PEERS_HOME / "matrices", seed=options.seed, **shape)
    job = Round(matrices, options.seed, options.timeout)
    figures, failure = job.gather(system, job.training, job.prediction)
    return {"shape": shape, "figures": figures, "failed": failure}


def shapes(divisor: int) -> Iterator[tuple[str, dict[str, int]]]:
    """Every point of every axis, and the million."""
    points = [(axis, base | {axis: step}) for axis, (base, steps) in AXES.items() for step in steps]
    for axis, shape in [*points, ("million", MILLION)]:
        small = {name: shape[name] // divisor for name in ("n_train", "n_labels")}
        yield axis, {**shape, **small, "n_features": N_FEATURES // divisor}


def slopes(points: list[Point]) -> dict[str, dict[str, float]]:
    """For each axis with two points or more, the exponent with which each figure grows."""
    result = {}
    for axis in AXES:
        done = [p for p in points if p["axis"] == axis and not p["failed"]]
        if len(done) > 1:
            x = np.log([p["shape"][axis] for p in done])
            y = np.log([[p["figures"][key] for key in SLOPES] for p in done])
            result[axis] = dict(zip(SLOPES, np.polyfit(x, y, 1)[0].tolist(), strict=True))
    return result


def cells(point: Point) -> list[str]:
    """The row of one point."""
    shape = [f"{point['shape'][name]:,}" for name in AXES]
    found = [f"{point['figures'][k]:,.1f}" if k in point["figures"] else "" for k in FIGURES]
    if point["failed"]:
        found[found.index("")] = point["failed"]
    return [point["axis"], *shape, *found]


def slope_cells(axis: str, found: dict[str, float]) -> list[str]:
    """The row of one axis's slopes."""
    return [f"slope by {axis}", *[""] * len(AXES), *(_signed(found, key) for key in FIGURES)]


def _signed(found: dict[str, float], key: str) -> str:
    return f"{found[key]:+.2f}" if key in found else ""


def table(results: dict[str, Any]) -> list[list[str]]:
    """Headings, points, slopes."""
    rows = [["axis", *AXES, *FIGURES.values()], *map(cells, results["points"])]
    return rows + [slope_cells(axis, found) for axis, found in results["slopes"].items()]


def million(results: dict[str, Any]) -> str:
    """The last run in a sentence, once it is done."""
    point = results["points"][-1]
    if point["axis"] != "million" or point["failed"]:
        return ""
    shape, found = point["shape"], point["figures"]
    return (
        f"{shape['n_labels']:,} labels, {shape['n_train']:,} samples: trained in "
        f"{found['train_wall']:,.0f} s ({found['train_cpu']:,.0f} CPU s) with at most "
        f"{found['train_peak']:,.0f} MB, model {found['size']:,.0f} MB, prediction "
        f"{found['batch']:,.0f} µs per row, P@1 {found['P@1']:.2f}."
    )


def markdown(results: dict[str, Any]) -> str:
    parts = [TITLE, made_by(results), table_lines(table(results)), million(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def show(results: dict[str, Any]) -> None:
    heads, *rows = table(results)
    screen = Table(title="growth")
    for number, head in enumerate(heads):
        screen.add_column(head, justify="right" if number else "left")
    for row in rows:
        screen.add_row(*row)
    console = Console()
    console.width = max(console.width, 150)
    console.print(screen)
    console.print(million(results), markup=False, highlight=False)


if __name__ == "__main__":
    main()
