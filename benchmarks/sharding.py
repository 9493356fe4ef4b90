"""Sharded heads: a training step on one process and on two, and the memory of each.

    python benchmarks/sharding.py
    python benchmarks/sharding.py --labels 100000 --ranks 1 2 --steps 5

One step (forward, backward and update by RowAdam) of an encoder (one linear layer) and a head, for
batches of 256 samples with 128 features, of which each rank has its share. Each rank is a process
with one thread. Times are medians over steps, after two that do not count, and the slowest rank's;
memory is the most that a rank has held in the steps. The loss is that of the last step.
"""

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from harness.measure import peak_megabytes, reset_peak
from harness.report import made_by, table_lines
from harness.steps import medians, step_parser, worker_command, write_page
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import umpteen as um

FEATURES, BATCH = 128, 256
heads = um.neural.heads
HEADS: dict[str, Callable[[int], um.neural.Head]] = {
    "Full": lambda n: heads.Full(FEATURES, n),
    "Full, bce": lambda n: heads.Full(FEATURES, n, loss="bce"),
    "Sampling": lambda n: heads.Sampling(FEATURES, n, sparse=True),
    "Adversarial": lambda n: heads.Adversarial(FEATURES, n, sparse=True),
}


def main() -> None:
    parser = step_parser(__doc__, 4)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    if options.worker:
        name, rank, world, folder = options.worker
        work(name, int(rank), int(world), folder, options)
        return
    rows = [
        {"head": name, "ranks": world, **on_ranks(name, world, options)}
        for name in HEADS
        for world in options.ranks
    ]
    write_page("sharding", options.labels, rows, markdown)


def on_ranks(name: str, world: int, options: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen(
                worker_command(__file__, options, name, str(rank), str(world), folder),
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(world)
        ]
        found = [json.loads(rank.communicate()[0]) for rank in ranks]
    return {key: max(each[key] for each in found) for key in found[0]}


def work(name: str, rank: int, world: int, folder: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/x", rank=rank, world_size=world)
    print(json.dumps(measure(name, rank, world, options.labels, options.steps)), flush=True)
    dist.barrier()
    os._exit(0)  # the destructors of DDP and gloo wait for each other now and then


def measure(name: str, rank: int, world: int, n_labels: int, steps: int) -> dict[str, float]:
    torch.manual_seed(0)
    encoder = DistributedDataParallel(nn.Linear(FEATURES, FEATURES))
    head = HEADS[name](n_labels).shard()
    optimizer = um.neural.RowAdam([*encoder.parameters(), *head.parameters()])
    reset_peak()
    losses, share, drawn = [], BATCH // world, torch.Generator().manual_seed(1)
    mine = slice(rank * share, (rank + 1) * share)

    def step(batch: tuple[Tensor, Tensor]) -> None:
        inputs, labels = batch
        optimizer.zero_grad()
        loss = head(encoder(inputs[mine]), labels[mine])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    def batches() -> tuple[Tensor, Tensor]:
        inputs = torch.randn(BATCH, FEATURES, generator=drawn)
        return inputs, torch.randint(n_labels, (BATCH,), generator=drawn)

    found = medians(step, batches, steps)
    return {**found, "peak": peak_megabytes(), "loss": losses[-1]}


def markdown(results: dict[str, Any]) -> str:
    sizes = f"{results['labels']:,} labels, batches of {BATCH}, {FEATURES} features."
    table = [["", "ranks", "step, ms", "CPU of a rank, ms", "peak of a rank, MB", "loss"]]
    for row in results["rows"]:
        times = [f"{1e3 * row[key]:,.0f}" for key in ("wall", "cpu")]
        memory, loss = f"{row['peak']:,.0f}", f"{row['loss']:.6f}"
        table.append([row["head"], str(row["ranks"]), *times, memory, loss])
    parts = ["# Sharded heads", f"{made_by(results)} {sizes}", table_lines(table)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
