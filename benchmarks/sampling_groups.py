"""How large the groups of SamplingHead should be: accuracy, and the time of training.

    python benchmarks/sampling_groups.py
    python benchmarks/sampling_groups.py --sets debian-deps --sizes 8 64 --seeds 1

A training loop as a user writes it: batches of 128 samples, RowAdam with a rate that falls to 0 by
a cosine, two epochs. A step compares the groups of the batch's classes, and one more. Accuracy is
that of validation samples in the last epoch; test parts are not used. Made-up classes are Gaussian,
with frequencies by Zipf's law; the class of a package is its rarest dependency.
"""

import argparse
import math
import shlex
import sys
import time
from typing import Any

import harness  # noqa: F401 (makes papers importable)
import numpy as np
import torch
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from scipy.sparse import issparse
from torch import Tensor, nn

import umpteen as um
from papers.adversarial.signal import gaussian_classes
from papers.adversarial.tasks import Task, task
from umpteen.neural import MLP, Bag, RowAdam, SparseRows

SETS = ("debian-deps", "made-up, 50,000 classes")
BATCH, FEATURES, EPOCHS, RATES = 128, 128, 2, {"debian-deps": 0.01, SETS[1]: 0.003}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--sizes", nargs="+", type=int, default=[16, 32, 64])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in options.sets:
        chosen = task(name, False) if name in um.data.names() else gaussian_classes(50_000, 48, 0)
        for size in options.sizes:
            runs = [measure(chosen, size, RATES[name], seed) for seed in range(options.seeds)]
            rows.append({"set": name, "size": size, "classes": chosen.n_classes, "runs": runs})
            print(rows[-1], flush=True)
    results = {
        "command": shlex.join(["python", "benchmarks/sampling_groups.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": {**versions(), "torch": torch.__version__},
        "rows": rows,
    }
    page = markdown(results)
    write_results(results, results_folder(quick=False) / "sampling_groups.json", page)
    print(page)


def measure(chosen: Task, size: int, rate: float, seed: int) -> dict[str, float]:
    torch.manual_seed(seed)
    n_groups = math.ceil(chosen.n_classes / size)
    head = um.neural.heads.Sampling(
        FEATURES, chosen.n_classes, lengths=[n_groups, size], sparse=True
    )
    encoder: nn.Module = (MLP if chosen.dense else Bag)(chosen.X.shape[1], dim=FEATURES)
    optimizer = RowAdam([*encoder.parameters(), *head.parameters()], lr=rate)
    classes = torch.from_numpy(chosen.Y.indices.astype(np.int64))
    n_steps = EPOCHS * math.ceil(len(classes) / BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
    began = time.process_time()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(classes)).split(BATCH):
            optimizer.zero_grad()
            head(encoder(batch(chosen.X[rows.numpy()])), classes[rows]).backward()
            optimizer.step()
            schedule.step()
    seconds = time.process_time() - began
    encoder.eval()
    samples, right = chosen.validation, 0
    for first in range(0, len(samples.y), BATCH):
        some = slice(first, first + BATCH)
        with torch.no_grad():
            best = head.topk(encoder(batch(samples.X[some])), 1)[0][:, 0]
        right += int((best.numpy() == samples.y[some]).sum())
    return {"accuracy": 100 * right / len(samples.y), "seconds": seconds}


def batch(rows: Any) -> SparseRows | Tensor:
    device = torch.device("cpu")
    return SparseRows.of(rows, device) if issparse(rows) else torch.from_numpy(rows)


def markdown(results: dict[str, Any]) -> str:
    table = [["", "classes", "labels in a group", "accuracy, %", "by seed", "CPU, s"]]
    for row in results["rows"]:
        found = [run["accuracy"] for run in row["runs"]]
        by_seed = ", ".join(f"{each:.1f}" for each in found)
        seconds = np.mean([run["seconds"] for run in row["runs"]])
        table.append([
            row["set"], f"{row['classes']:,}", str(row["size"]), f"{np.mean(found):.1f}", by_seed,
            f"{seconds:.0f}",
        ])  # fmt: skip
    parts = ["# Groups of a sampling head", made_by(results), table_lines(table)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
