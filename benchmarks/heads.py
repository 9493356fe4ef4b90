"""Last layers alone: a full softmax layer beside product, cascade and sampling heads.

    python benchmarks/heads.py
    python benchmarks/heads.py --labels 1000 100000 --heads full product

One training step (forward, backward and update by plain SGD; random features, one random class per
sample) and the answer of the best five labels, for one batch. Each head has a process of its own,
for its peak of memory, which is that of a step or an answer less what Python and PyTorch hold
before the head is made. Times are medians of the wall clock; a ratio is full over head.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, peak_megabytes, reset_peak, timed
from harness.report import made_by, table_lines, write_results
from torch import Tensor

from umpteen.multihead import CascadeHead, ProductHead, SamplingHead
from umpteen.neural import FullHead, Head, Targets

FEATURES, BATCH, K = 512, 128, 5


HEADS: dict[str, tuple[str, Callable[[int], Head]]] = {
    "full": ("full softmax layer", lambda n: FullHead(FEATURES, n)),
    "product": ("product, 2 heads", lambda n: ProductHead(FEATURES, n)),
    "product-3": ("product, 3 heads", lambda n: ProductHead(FEATURES, n, n_heads=3)),
    "product-groups": ("product, 4 groups of 2", lambda n: ProductHead(FEATURES, n, n_groups=4)),
    "cascade": (
        "cascade, one class",
        lambda n: CascadeHead(FEATURES, n, loss="softmax", sparse=True),
    ),
    "cascade-bce": ("cascade, any labels", lambda n: CascadeHead(FEATURES, n, sparse=True)),
    "sampling": ("sampling, shared groups", lambda n: SamplingHead(FEATURES, n, sparse=True)),
    "sampling-own": (
        "sampling, 2 groups of its own",
        lambda n: SamplingHead(FEATURES, n, sampling="own", sparse=True),
    ),
}


def main() -> None:
    options = parse()
    if options.worker:
        print(json.dumps(measure(options.worker, options.labels[0], options.steps)))
        return
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/heads.py", *sys.argv[1:]]),
        "machine": {**machine(), "threads": torch.get_num_threads()},
        "versions": {**versions(), "torch": torch.__version__},
        "rows": [],
    }
    for n_labels in options.labels:
        for name in options.heads:
            results["rows"].append(in_own_process(name, n_labels, options.steps))
            path = results_folder(quick=False) / "heads.json"
            write_results(results, path, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--heads", nargs="+", default=list(HEADS), choices=HEADS, metavar="HEAD")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def in_own_process(name: str, n_labels: int, steps: int) -> dict[str, Any]:
    again = [sys.executable, __file__, "--worker", name, "--labels", str(n_labels)]
    run = subprocess.run(
        [*again, "--steps", str(steps)], check=True, stdout=subprocess.PIPE, text=True
    )
    return {"head": name, "labels": n_labels, **json.loads(run.stdout)}


def measure(name: str, n_labels: int, steps: int) -> dict[str, float]:
    """Seconds and megabytes of a step and of an answer; the first of each does not count."""
    torch.manual_seed(0)
    features, classes = torch.randn(BATCH, FEATURES), torch.randint(n_labels, (BATCH,))
    targets = Targets.of_classes(classes)
    reset_peak()
    before = peak_megabytes()
    head = HEADS[name][1](n_labels)
    optimiser = torch.optim.SGD(head.parameters(), lr=0.1)
    step_times = [step(head, optimiser, features, targets) for _ in range(steps + 1)]
    step_peak = peak_megabytes() - before
    optimiser.zero_grad()
    reset_peak()
    head.topk(features, K)
    _, answers = timed(lambda: head.topk(features, K), steps, 20.0)
    return {
        "parameters": head.n_parameters,
        "step": median(watch.wall for watch in step_times[1:]),
        "step_cpu": median(watch.cpu for watch in step_times[1:]),
        "answer": median(watch.wall for watch in answers),
        "answer_cpu": median(watch.cpu for watch in answers),
        "step_peak": step_peak,
        "answer_peak": peak_megabytes() - before,
    }


def step(
    head: Head, optimiser: torch.optim.Optimizer, features: Tensor, targets: Targets
) -> Stopwatch:
    with Stopwatch() as watch:
        optimiser.zero_grad()
        head.loss(features, targets).backward()
        optimiser.step()
    return watch


def markdown(results: dict[str, Any]) -> str:
    heads = ["", "parameters", "step, ms", "ratio", f"best {K}, ms", "ratio",
             "peak of a step, MB", "of an answer, MB"]  # fmt: skip
    parts = [f"{made_by(results)} Batches of {BATCH}, {FEATURES} features."]
    for n_labels in dict.fromkeys(row["labels"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["labels"] == n_labels]
        full = next((row for row in rows if row["head"] == "full"), None)
        parts += [f"## {n_labels:,} labels", table_lines([heads, *(cells(r, full) for r in rows)])]
    return "\n\n".join(["# Heads alone", *parts]) + "\n"


def cells(row: dict[str, Any], full: dict[str, Any] | None) -> list[str]:
    found = [HEADS[row["head"]][0], f"{row['parameters']:,}"]
    for key in ("step", "answer"):
        found += [f"{1e3 * row[key]:,.1f}", f"{full[key] / row[key]:,.1f}" if full else ""]
    return [*found, f"{row['step_peak']:,.0f}", f"{row['answer_peak']:,.0f}"]


if __name__ == "__main__":
    main()
