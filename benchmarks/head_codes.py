"""What brings several codes near a full layer with a tenth of its parameters: a table of tries.

    python benchmarks/head_codes.py
    python benchmarks/head_codes.py --sets pydocs --tries full codes

One class per sample (its rarest label), TF-IDF of single words, a Bag, AdamW with a rate of 0.01
that falls to 0 by a cosine. Accuracy is that of an eighth of the training samples, in the last
epoch; test parts are not used. One seed.

full: a layer with a row per class. low rank: two layers, with a tenth as many values between them
as there are features. codes: `ProductHead` with as many codes as a tenth of the parameters allow.
three heads: the same with codes of three digits, so more of them. joint: the same codes, but one
softmax over all classes, whose scores are sums over codes, instead of one for each digit.

All others are such codes, too, trained otherwise. half the rate: 0.005. long first heads: three
codes whose first head is as long as the parameters allow, with 0.005. smoothing: 0.1 of each
digit's target is spread. dropout, words: a fifth of the features, or of a sample's words, is left
out in each step. averaged: weights are the mean over the second half of the epochs.
"""

import argparse
import json
import math
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness  # noqa: F401 (makes papers importable)
import numpy as np
import torch
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from head_rates import with_validation_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from papers.multihead.settings import CLASSES
from papers.multihead.several import long_first
from papers.multihead.tasks import Task, classes_task
from umpteen.multihead import LabelCode, ProductHead
from umpteen.neural import Bag, SparseRows
from umpteen.neural.optimizers import make_optimizers, rate_factor, set_rate
from umpteen.validation import unit_rows

RATE, TENTH, LEFT_OUT, SMOOTHING = 0.01, 10, 0.2, 0.1
SLOW = ("half the rate", "long first heads")
OTHERWISE = (*SLOW, "smoothing", "dropout", "words", "averaged")
EPOCHS = {  # of each try, on each set
    "wordnet-ancestors": {
        "full": (5, 10), "low rank": (5,), "codes": (5, 15, 30), "three heads": (15,),
        "joint": (5,), **dict.fromkeys(OTHERWISE, (15,)),
    },
    "pydocs": {
        "full": (10,), "low rank": (10,), "codes": (10, 30), "three heads": (30,), "joint": (10,),
        **dict.fromkeys(OTHERWISE, (30,)),
    },
}  # fmt: skip
TRIES = tuple(EPOCHS["pydocs"])


class Full(nn.Module):
    def __init__(self, in_features: int, n_classes: int) -> None:
        super().__init__()
        self.scores: nn.Module = nn.Linear(in_features, n_classes)

    def forward(self, features: Tensor, classes: Tensor) -> Tensor:
        return cross_entropy(self.scores(features), classes)

    def best(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self.scores(features).argmax(1))


class LowRank(Full):
    def __init__(self, in_features: int, n_classes: int) -> None:
        super().__init__(1, 1)
        rank = in_features // TENTH
        self.scores = nn.Sequential(
            nn.Linear(in_features, rank, bias=False), nn.Linear(rank, n_classes)
        )


class Codes(ProductHead):
    smoothing, left_out = 0.0, 0.0

    def __init__(self, in_features: int, n_classes: int, n_heads: int = 2, **options: Any) -> None:
        per_code = sum(LabelCode.balanced(n_classes, n_heads).lengths)
        n_codes = max(2, n_classes // (TENTH * per_code))
        options = {"n_heads": n_heads, "n_codes": n_codes, **options}
        super().__init__(in_features, n_classes, **options)

    def forward(self, features: Tensor, classes: Tensor, **_: Any) -> Tensor:
        features = nn.functional.dropout(features, self.left_out)
        return super().forward(features, classes, label_smoothing=self.smoothing)

    def best(self, features: Tensor) -> Tensor:
        return self.topk(features, 1)[0][:, 0]


class LongFirst(Codes):
    def __init__(self, in_features: int, n_classes: int) -> None:
        super().__init__(in_features, n_classes, lengths=long_first(n_classes), n_codes=3)


class Smoothed(Codes):
    smoothing = SMOOTHING


class Dropout(Codes):
    left_out = LEFT_OUT


class Joint(Codes):
    """The softmax over classes of the sums of their digits' scores."""

    def __init__(self, in_features: int, n_classes: int) -> None:
        super().__init__(in_features, n_classes)
        places = torch.stack(self._places_of(torch.arange(n_classes)))  # (codes, classes)
        starts = torch.tensor([0, self.code.lengths[0]])
        digits = self.code.digits(places) + starts  # (codes, classes, heads)
        offsets = sum(self.code.lengths) * torch.arange(self.n_codes)
        columns = (digits + offsets[:, None, None]).permute(1, 0, 2).reshape(n_classes, -1)
        rows = torch.arange(n_classes)[:, None].expand_as(columns)
        indices, size = torch.stack([rows.flatten(), columns.flatten()]), self.linear.out_features
        ones = torch.ones(indices.shape[1])
        table = torch.sparse_coo_tensor(indices, ones, (n_classes, size), check_invariants=False)
        self.table, self.turned = table.to_sparse_csr(), table.T.to_sparse_csr()

    def forward(self, features: Tensor, classes: Tensor, **_: Any) -> Tensor:
        return cross_entropy(_Sums.apply(self.linear(features), self.table, self.turned), classes)


class _Sums(torch.autograd.Function):
    """outputs @ table.T for a sparse table, with its gradient for the outputs."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, table: Tensor, turned: Tensor) -> Tensor:
        ctx.turned = turned
        return (table @ outputs.T.contiguous()).T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return (ctx.turned @ gradients[0].T.contiguous()).T, None, None


HEADS: dict[str, Callable[[int, int], Any]] = {
    "full": Full,
    "low rank": LowRank,
    "codes": Codes,
    "three heads": lambda d, n: Codes(d, n, n_heads=3),
    "joint": Joint,
    "half the rate": Codes,
    "long first heads": LongFirst,
    "smoothing": Smoothed,
    "dropout": Dropout,
    "words": Codes,
    "averaged": Codes,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(EPOCHS), choices=EPOCHS, metavar="SET")
    parser.add_argument("--tries", nargs="+", default=TRIES, choices=TRIES, metavar="TRY")
    parser.add_argument("--keep", action="store_true", help="keep the rows of earlier runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    file = results_folder(quick=False) / "head_codes.json"
    rows = kept(file) if options.keep and file.exists() else []
    for name in options.sets:
        task = with_validation_split(classes_task(name, False))
        for label in options.tries:
            for epochs in EPOCHS[name][label]:
                what = {"set": name, "try": label, "epochs": epochs}
                rows = [row for row in rows if what.items() - row.items()]
                rows.append(what | measure(task, label, epochs) | {"command": command()})
                write(rows, file)


def command() -> str:
    return shlex.join(["python", "benchmarks/head_codes.py", *sys.argv[1:]])


def kept(file: Path) -> list[dict[str, Any]]:
    """The rows of earlier runs, with the commands that made them."""
    results = json.loads(file.read_text("utf-8"))
    return [{"command": results["command"], **row} for row in results["rows"]]


def write(rows: list[dict[str, Any]], file: Path) -> None:
    results = {
        "command": command(),
        "machine": machine(),
        "versions": {**versions(), "torch": torch.__version__},
        "rows": rows,
    }
    write_results(results, file, markdown(results))
    print(rows[-1], flush=True)


def measure(task: Task, label: str, epochs: int) -> dict[str, float]:
    training, random = CLASSES[task.name], np.random.default_rng(0)
    torch.manual_seed(0)
    encoder = Bag(task.X.shape[1], training.dim)
    head = HEADS[label](training.dim, task.n_labels)
    rate = RATE / 2 if label in SLOW else RATE
    network = nn.ModuleList([encoder, head])
    optimizers = make_optimizers(network, "adamw", rate, 0.01)
    classes, n = torch.from_numpy(np.asarray(task.Y, np.int64)), task.X.shape[0]
    per_epoch, step = math.ceil(n / training.batch_size), 0
    average = torch.optim.swa_utils.AveragedModel(network)
    began = time.process_time()
    for epoch in range(epochs):
        for rows in np.array_split(random.permutation(n), per_epoch):
            set_rate(optimizers, rate * rate_factor(step, per_epoch * epochs, "cosine", 0.0))
            step += 1
            X = task.X[rows]
            if label == "words":
                X.data *= random.random(X.nnz) >= LEFT_OUT
            loss = head(encoder(batch(X)), classes[rows])
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
        if label == "averaged" and 2 * (epoch + 1) > epochs:
            average.update_parameters(network)
    seconds, right = time.process_time() - began, 0
    if label == "averaged":
        encoder, head = average.module
    for first in range(0, len(task.Y_test), 512):
        some = slice(first, first + 512)
        with torch.no_grad():
            best = head.best(encoder(batch(task.X_test[some])))
        right += int((best.numpy() == task.Y_test[some]).sum())
    size = sum(each.numel() for each in head.parameters())
    return {
        "accuracy": 100 * right / len(task.Y_test),
        "parameters": 100 * size / ((training.dim + 1) * task.n_labels),
        "seconds": seconds,
    }


def batch(rows: Any) -> SparseRows:
    return SparseRows.of(unit_rows(rows), torch.device("cpu"))


def markdown(results: dict[str, Any]) -> str:
    parts = ["# Several codes: what was tried"]
    for made in dict.fromkeys(row["command"] for row in results["rows"]):
        table = [["", "head", "epochs", "parameters, %", "accuracy, %", "CPU, s"]]
        table += [
            [row["set"], row["try"], str(row["epochs"]), f"{row['parameters']:.1f}",
             f"{row['accuracy']:.1f}", f"{row['seconds']:.0f}"]
            for row in results["rows"] if row["command"] == made
        ]  # fmt: skip
        parts += [made_by({**results, "command": made}), table_lines(table)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
