"""Heads in a training loop as a user writes it, compared with nn.Linear and cross-entropy.

    python benchmarks/head_loop.py
    python benchmarks/head_loop.py --labels 300000 --steps 5

One step (forward, backward and update) of an encoder (one linear layer) and a head, for batches of
128 samples with 256 features, each with a random class of its own. Each head has a process of its
own. Times are medians, after two steps that do not count; a ratio is nn.Linear over head, with
the same kind of optimizer: SGD, or Adam (nn.Linear: torch.optim.Adam; heads: RowAdam).
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
from harness.measure import Stopwatch
from harness.report import made_by, table_lines, write_results
from torch import Tensor, nn

import umpteen as um

FEATURES, BATCH = 256, 128


class Plain(nn.Module):
    """What heads replace."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, n_classes)

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.linear(features), labels)


heads = um.neural.heads
HEADS: dict[str, Callable[[int], nn.Module]] = {
    "nn.Linear": Plain,
    "Product": lambda n: heads.Product(FEATURES, n),
    "Cascade": lambda n: heads.Cascade(FEATURES, n, loss="softmax", sparse=True),
    "Cascade, bce": lambda n: heads.Cascade(FEATURES, n, sparse=True),
    "Sampling": lambda n: heads.Sampling(FEATURES, n, sparse=True),
    "Sampling, dense": lambda n: heads.Sampling(FEATURES, n),
}
OPTIMIZERS: dict[str, Callable[[bool, Any], torch.optim.Optimizer]] = {
    "SGD": lambda plain, parameters: torch.optim.SGD(parameters, lr=0.1),
    "Adam": lambda plain, parameters: (
        torch.optim.Adam(parameters, fused=True) if plain else um.neural.RowAdam(parameters)
    ),
}


def main() -> None:
    options = parse()
    if options.worker:
        print(json.dumps(measure(*options.worker, options.labels, options.steps)))
        return
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/head_loop.py", *sys.argv[1:]]),
        "machine": {**machine(), "threads": torch.get_num_threads()},
        "versions": {**versions(), "torch": torch.__version__},
        "labels": options.labels,
        "rows": [],
    }
    for optimizer in options.optimizers:
        for head in HEADS:
            row = in_own_process(head, optimizer, options.labels, options.steps)
            results["rows"].append({"head": head, "optimizer": optimizer, **row})
    path = results_folder(quick=False) / "head_loop.json"
    write_results(results, path, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=300_000)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--optimizers", nargs="+", default=list(OPTIMIZERS), choices=OPTIMIZERS)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def in_own_process(head: str, optimizer: str, n_labels: int, steps: int) -> dict[str, float]:
    sizes = ["--labels", str(n_labels), "--steps", str(steps)]
    command = [sys.executable, __file__, *sizes, "--worker", head, optimizer]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(run.stdout))


def measure(name: str, optimizer_name: str, n_labels: int, steps: int) -> dict[str, float]:
    torch.manual_seed(0)
    encoder, head = nn.Linear(FEATURES, FEATURES), HEADS[name](n_labels)
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = OPTIMIZERS[optimizer_name](name == "nn.Linear", parameters)
    watches = []
    for _ in range(steps + 2):
        inputs, labels = torch.randn(BATCH, FEATURES), torch.randint(n_labels, (BATCH,))
        with Stopwatch() as watch:
            optimizer.zero_grad()
            loss = head(encoder(inputs), labels)
            loss.backward()
            optimizer.step()
        watches.append(watch)
    return {
        "wall": median(watch.wall for watch in watches[2:]),
        "cpu": median(watch.cpu for watch in watches[2:]),
    }


def markdown(results: dict[str, Any]) -> str:
    sizes = f"{results['labels']:,} classes, batches of {BATCH}, {FEATURES} features."
    parts = [f"{made_by(results)} {sizes}"]
    for optimizer in dict.fromkeys(row["optimizer"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["optimizer"] == optimizer]
        table = [["", "step, ms", "ratio", "CPU, ms", "ratio"]]
        for row in rows:
            cells = [row["head"]]
            for key in ("wall", "cpu"):
                cells += [f"{1e3 * row[key]:,.1f}", f"{rows[0][key] / row[key]:,.1f}"]
            table.append(cells)
        parts += [f"## {optimizer}", table_lines(table)]
    return "\n\n".join(["# Heads in a user's training loop", *parts]) + "\n"


if __name__ == "__main__":
    main()
