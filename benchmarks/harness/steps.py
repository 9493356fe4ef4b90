"""What benchmarks of training steps share: their options, the medians, the page of results."""

import argparse
import shlex
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch
from harness.report import write_results

_WARM_UP = 2  # steps that do not count


def step_parser(description: str | None, n_worker_arguments: int) -> argparse.ArgumentParser:
    """Options of all of them; `--worker` is for the processes that they start."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=300_000)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--worker", nargs=n_worker_arguments, help=argparse.SUPPRESS)
    return parser


def worker_command(script: str, options: argparse.Namespace, *arguments: str) -> list[str]:
    """How to measure something in a process of its own."""
    sizes = ["--labels", str(options.labels), "--steps", str(options.steps)]
    return [sys.executable, script, *sizes, "--worker", *arguments]


def medians(step: Callable[[Any], object], batches: Callable[[], Any], n: int) -> dict[str, float]:
    """Take `n` steps, each with a new batch, after two that do not count; median seconds."""
    watches = []
    for _ in range(n + _WARM_UP):
        batch = batches()
        with Stopwatch() as watch:
            step(batch)
        watches.append(watch)
    counted = watches[_WARM_UP:]
    return {key: median(getattr(watch, key) for watch in counted) for key in ("wall", "cpu")}


def write_page(
    name: str, labels: int, rows: list[dict[str, Any]], markdown: Callable[[dict[str, Any]], str]
) -> None:
    """Write the results as JSON and as a page, and show this."""
    results = {
        "command": shlex.join(["python", f"benchmarks/{name}.py", *sys.argv[1:]]),
        "machine": {**machine(), "threads": torch.get_num_threads()},
        "versions": {**versions(), "torch": torch.__version__},
        "labels": labels,
        "rows": rows,
    }
    page = markdown(results)
    write_results(results, results_folder(quick=False) / f"{name}.json", page)
    print(page)
