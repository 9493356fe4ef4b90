"""Heads in a training loop as a user writes it, compared with nn.Linear and cross-entropy.

    python benchmarks/head_loop.py
    python benchmarks/head_loop.py --labels 300000 --steps 5 --threads 2

One step (forward, backward and update) of an encoder (one linear layer) and a head, for batches of
128 samples with 256 features, each with a random class of its own. Each head has a process of its
own. Times are medians, after two steps that do not count; a ratio is nn.Linear over head, with
the same kind of optimizer: SGD, or Adam (nn.Linear: torch.optim.Adam; heads: RowAdam).
"""

import argparse
import json
import subprocess
from collections.abc import Callable
from typing import Any

import torch
from harness.report import made_by, table_lines
from harness.steps import medians, step_parser, worker_command, write_page
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
    "Product, 4 codes": lambda n: heads.Product(FEATURES, n, n_codes=4),
    "Cascade": lambda n: heads.Cascade(FEATURES, n, sparse=True),
    "Cascade, bce": lambda n: heads.Cascade(FEATURES, n, loss="bce", sparse=True),
    "Sampling": lambda n: heads.Sampling(FEATURES, n, sparse=True),
    "Sampling, dense": lambda n: heads.Sampling(FEATURES, n),
    "Adversarial": lambda n: heads.Adversarial(FEATURES, n, sparse=True),
}
OPTIMIZERS: dict[str, Callable[[bool, Any], torch.optim.Optimizer]] = {
    "SGD": lambda plain, parameters: torch.optim.SGD(parameters, lr=0.1),
    "Adam": lambda plain, parameters: (
        torch.optim.Adam(parameters, fused=True) if plain else um.neural.RowAdam(parameters)
    ),
}


def main() -> None:
    parser = step_parser(__doc__, 3)
    parser.add_argument("--optimizers", nargs="+", default=list(OPTIMIZERS), choices=OPTIMIZERS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="NUMBER")
    options = parser.parse_args()
    if options.worker:
        head, optimizer, threads = options.worker
        torch.set_num_threads(int(threads))
        print(json.dumps(measure(head, optimizer, options.labels, options.steps)))
        return
    rows = [
        {
            "head": head, "optimizer": optimizer, "threads": threads,
            **in_own_process(head, optimizer, threads, options),
        }
        for threads in options.threads
        for optimizer in options.optimizers
        for head in HEADS
    ]  # fmt: skip
    write_page("head_loop", options.labels, rows, markdown)


def in_own_process(
    head: str, optimizer: str, threads: int, options: argparse.Namespace
) -> dict[str, float]:
    command = worker_command(__file__, options, head, optimizer, str(threads))
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(run.stdout))


def measure(name: str, optimizer_name: str, n_labels: int, steps: int) -> dict[str, float]:
    torch.manual_seed(0)
    encoder, head = nn.Linear(FEATURES, FEATURES), HEADS[name](n_labels)
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = OPTIMIZERS[optimizer_name](name == "nn.Linear", parameters)

    def step(batch: tuple[Tensor, Tensor]) -> None:
        inputs, labels = batch
        optimizer.zero_grad()
        loss = head(encoder(inputs), labels)
        loss.backward()
        optimizer.step()

    def batches() -> tuple[Tensor, Tensor]:
        return torch.randn(BATCH, FEATURES), torch.randint(n_labels, (BATCH,))

    return medians(step, batches, steps)


def markdown(results: dict[str, Any]) -> str:
    sizes = f"{results['labels']:,} classes, batches of {BATCH}, {FEATURES} features."
    parts = [f"{made_by(results)} {sizes}"]
    kinds = dict.fromkeys((row["optimizer"], row["threads"]) for row in results["rows"])
    for optimizer, threads in kinds:
        rows = [
            row
            for row in results["rows"]
            if (row["optimizer"], row["threads"]) == (optimizer, threads)
        ]
        table = [["", "step, ms", "ratio", "CPU, ms", "ratio"]]
        for row in rows:
            cells = [row["head"]]
            for key in ("wall", "cpu"):
                cells += [f"{1e3 * row[key]:,.1f}", f"{rows[0][key] / row[key]:,.1f}"]
            table.append(cells)
        many = "1 thread" if threads == 1 else f"{threads} threads"
        parts += [f"## {optimizer}, {many}", table_lines(table)]
    return "\n\n".join(["# Heads in a user's training loop", *parts]) + "\n"


if __name__ == "__main__":
    main()
