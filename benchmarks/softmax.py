"""What a draw, a training step and an answer cost, by the number of classes.

    python benchmarks/softmax.py
    python benchmarks/softmax.py --quick

Made-up dense features. A draw is one class from a random noise tree, on one thread. A training
step takes a batch of 100 samples with five negatives each; the same step with the same negatives
is made by PyTorch (embeddings with sparse gradients, Adagrad), and by a full softmax over all
classes. Times are medians; a slope is that of a straight line through logarithms. Each number of
classes has a process of its own, because a million classes of 512 features and their sums of
squares take 4 GB.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from scipy.sparse import csr_matrix
from torch import nn

from umpteen.kernels.noise_tree import NoiseArrays, draw_rows
from umpteen.kernels.sampled_softmax import NEGATIVE_SAMPLING, SAMPLED_SOFTMAX, Rules
from umpteen.softmax.full import train_on_all_classes
from umpteen.softmax.noise import Noise
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.softmax.prediction import Answers
from umpteen.softmax.reduction import Reduction
from umpteen.softmax.weights import DenseScores

FEATURES, DIM, BATCH, NEGATIVES = 512, 16, 100, 5
RATE, FIRST_SQUARE = 0.1, 1e-8
WIDTHS = (16, 64, 256)


def main() -> None:
    options = parse()
    if options.worker:
        print(json.dumps(WORKERS[options.worker](options.classes, options.quick)))
        return
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/softmax.py", *sys.argv[1:]]),
        "machine": {**machine(), "threads": torch.get_num_threads()},
        "versions": {**versions(), "torch": torch.__version__},
        "draws": [], "steps": [], "answers": [],
    }  # fmt: skip
    path = results_folder(options.quick) / "softmax.json"
    for kind, sizes in plan(options.quick).items():
        for n_classes in sizes:
            results[kind].append(in_own_process(kind, n_classes, options.quick))
            write_results(results, path, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few classes, to see that it runs")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--classes", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def plan(quick: bool) -> dict[str, list[int]]:
    if quick:
        return {"draws": [2**8, 2**12], "steps": [1_000, 10_000], "answers": [10_000]}
    return {
        "draws": [2**power for power in range(8, 21, 2)],
        "steps": [1_000, 10_000, 100_000, 1_000_000],
        "answers": [10_000, 100_000, 1_000_000],
    }


def in_own_process(kind: str, n_classes: int, quick: bool) -> dict[str, Any]:
    again = [sys.executable, __file__, "--worker", kind, "--classes", str(n_classes)]
    again += ["--quick"] if quick else []
    run = subprocess.run(again, check=True, stdout=subprocess.PIPE, text=True)
    return {"classes": n_classes, **json.loads(run.stdout)}


def random_tree(n_classes: int) -> NoiseTree:
    """Balanced and complete, with random nodes: as fast to draw from as one that was fitted."""
    random = np.random.default_rng(0)
    depth = (n_classes - 1).bit_length()
    tree = NoiseTree(dim=DIM, n_jobs=1)
    tree.n_features_in_, tree.n_classes_ = FEATURES, n_classes
    tree.weights_ = random.standard_normal((2**depth, DIM), np.float32) / 4
    tree.biases_ = np.zeros(2**depth, np.float32)
    tree.label_of_ = np.full(2**depth, -1, np.int32)
    tree.leaf_of_ = spread_leaves(n_classes, depth)
    tree.label_of_[tree.leaf_of_] = np.arange(n_classes, dtype=np.int32)
    lonely = np.flatnonzero(tree.label_of_[::2] < 0)  # no class at the left leaf of a pair
    tree.weights_[2 ** (depth - 1) + lonely], tree.biases_[2 ** (depth - 1) + lonely] = 0, 1e4
    components = np.linalg.qr(random.standard_normal((FEATURES, DIM)))[0].astype(np.float32)
    tree.reduction_ = Reduction(components, np.zeros(DIM), np.full(DIM, FEATURES**0.5))
    tree.n_rounds_ = np.zeros(2**depth, np.int32)
    tree.regularizers_, tree.log_likelihood_ = np.ones(depth), 0.0
    return tree


def spread_leaves(n_classes: int, depth: int) -> np.ndarray:
    """A leaf of each class; pairs with one class only have it on the right."""
    n_pairs = 2 ** (depth - 1)
    n_full = n_classes - n_pairs
    full = np.sort(np.random.default_rng(1).permutation(n_pairs)[:n_full])
    return np.sort(np.concatenate([2 * np.arange(n_pairs) + 1, 2 * full])).astype(np.int32)


def draws(n_classes: int, quick: bool) -> dict[str, float]:
    """Nanoseconds of a draw."""
    arrays: NoiseArrays = random_tree(n_classes).arrays
    n = 2_000 if quick else 50_000
    samples = np.random.default_rng(2).standard_normal((n, DIM), np.float32)
    seconds = repeated(lambda: draw_rows(arrays, samples, 5, 0, 0), 5)
    return {"nanoseconds": 1e9 * seconds / (5 * n)}


def steps(n_classes: int, quick: bool) -> dict[str, float]:
    """Milliseconds of a step of each kind, and of drawing its negatives."""
    n_rows = 2 * BATCH if quick else 50 * BATCH
    X, Y = samples_of(n_rows, n_classes)
    noise = Noise(0.3, np.full(n_classes, 1 / n_classes), random_tree(n_classes))
    rows = np.arange(n_rows, dtype=np.int32)
    reduced = noise.reduce(X)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        (visit,) = noise.visits(reduced, Y, [rows], NEGATIVES, 0, 1)
        return visit

    n_steps = n_rows / BATCH
    found = {"draw": 1e3 * repeated(draw, 3) / n_steps}
    labels, logs = draw()
    found["umpteen"] = 1e3 * our_steps(n_classes, X, rows, labels, logs) / n_steps
    found["full"] = 1e3 * full_step(n_classes, X, rows[:BATCH], labels[:BATCH, 0].copy())
    theirs = torch_steps(n_classes, X, labels)
    found["torch"] = 1e3 * repeated(theirs, 2 if n_classes >= 1_000_000 else 3) / n_steps
    return found


def our_steps(
    n_classes: int, X: np.ndarray, rows: np.ndarray, labels: np.ndarray, logs: np.ndarray
) -> float:
    """Seconds of one pass."""
    model = DenseScores.zeros(n_classes, FEATURES)
    rules = Rules(NEGATIVE_SAMPLING, RATE, 0.0, BATCH, 0.0, 1.0)
    bounds = np.full(len(rows), float(n_classes))
    return repeated(lambda: model.train(rules, X, rows, labels, logs, bounds, 1.0), 5)


def full_step(n_classes: int, X: np.ndarray, rows: np.ndarray, own: np.ndarray) -> float:
    """Seconds of one step over all classes."""
    model = DenseScores.zeros(n_classes, FEATURES)
    rules = Rules(SAMPLED_SOFTMAX, RATE, 0.0, BATCH, 0.0, 1.0)
    return repeated(lambda: train_on_all_classes(model, rules, X, rows, own), 2)


def torch_steps(n_classes: int, X: np.ndarray, labels: np.ndarray) -> Callable[[], None]:
    """One pass of the same steps, as one writes them with PyTorch."""
    weights = nn.Embedding(n_classes, FEATURES, sparse=True)
    biases = nn.Embedding(n_classes, 1, sparse=True)
    with torch.no_grad():
        weights.weight.zero_()
        biases.weight.zero_()
    optimiser = torch.optim.Adagrad(
        [weights.weight, biases.weight], lr=RATE, initial_accumulator_value=FIRST_SQUARE, eps=0
    )
    features, drawn = torch.from_numpy(X), torch.from_numpy(labels.astype(np.int64))

    def train() -> None:
        for first in range(0, len(features), BATCH):
            x, y = features[first : first + BATCH], drawn[first : first + BATCH]
            scores = (weights(y) * x[:, None]).sum(dim=2) + biases(y).squeeze(2)
            loss = nn.functional.softplus(-scores[:, 0]).sum()
            loss = loss + nn.functional.softplus(scores[:, 1:]).sum() / NEGATIVES
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return train


def answers(n_classes: int, quick: bool) -> dict[str, float]:
    """Milliseconds per sample, of all classes and of a beam's."""
    n_rows = 20 if quick else 200
    X, _ = samples_of(n_rows, n_classes)
    model = DenseScores.zeros(n_classes, FEATURES)
    model.weight_squares = np.empty((0, FEATURES), np.float32)  # only training needs them
    noise = Noise(0.3, np.full(n_classes, 1 / n_classes), random_tree(n_classes))
    asked = Answers(model, noise, np.ones(n_classes, np.int64), True, 0.0, -1)
    found = {"exact": 1e3 * repeated(lambda: asked.exact(X, 5), 3) / n_rows}
    for width in WIDTHS:
        seconds = repeated(lambda width=width: asked.among_candidates(X, 5, width), 3)
        found[f"beam {width}"] = 1e3 * seconds / n_rows
    return found


def samples_of(n_rows: int, n_classes: int) -> tuple[np.ndarray, Any]:
    random = np.random.default_rng(3)
    X = random.standard_normal((n_rows, FEATURES), np.float32) / FEATURES**0.5
    y = random.integers(n_classes, size=n_rows).astype(np.int32)
    starts = np.arange(n_rows + 1, dtype=np.int32)
    return X, csr_matrix((np.ones(n_rows, np.float32), y, starts), (n_rows, n_classes))


def repeated(call: Callable[[], Any], times: int) -> float:
    """The median of seconds, after a call that compiles and warms up."""
    call()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return median(seconds)


def slope(rows: list[dict[str, Any]], key: str) -> str:
    """The exponent with which time grows with classes."""
    if len(rows) < 2:
        return ""
    x, y = np.log([row["classes"] for row in rows]), np.log([row[key] for row in rows])
    return f"{np.polyfit(x, y, 1)[0]:+.2f}"


def markdown(results: dict[str, Any]) -> str:
    parts = [
        f"{made_by(results)} {FEATURES} features; batches of {BATCH}, {NEGATIVES} negatives each.",
        "## A draw", draws_table(results["draws"]),
        "## A training step of one batch", steps_table(results["steps"]),
        "## An answer, the best five", answers_table(results["answers"]),
    ]  # fmt: skip
    return "\n\n".join(["# Softmax: draws, steps and answers", *parts]) + "\n"


def draws_table(rows: list[dict[str, Any]]) -> str:
    table = [["classes", "ns", "ns per level"]]
    for row in rows:
        depth = (row["classes"] - 1).bit_length()
        nanoseconds = row["nanoseconds"]
        table.append([f"{row['classes']:,}", f"{nanoseconds:.0f}", f"{nanoseconds / depth:.1f}"])
    return table_lines(table)


def steps_table(rows: list[dict[str, Any]]) -> str:
    table = [["classes", "draw, ms", "umpteen, ms", "samples/s", "PyTorch, ms", "samples/s",
              "PyTorch / umpteen", "full softmax, ms", "full / umpteen"]]  # fmt: skip
    for row in rows:
        ours, theirs = row["umpteen"], row["torch"]
        table.append([
            f"{row['classes']:,}", f"{row['draw']:.3f}", f"{ours:.3f}",
            f"{1e3 * BATCH / ours:,.0f}", f"{theirs:.3f}",
            f"{1e3 * BATCH / theirs:,.0f}", f"{theirs / ours:.1f}",
            f"{row['full']:,.1f}", f"{row['full'] / (ours + row['draw']):,.0f}",
        ])  # fmt: skip
    cells = [slope(rows, key) for key in ("draw", "umpteen", "torch", "full")]
    table.append(["slope", cells[0], cells[1], "", cells[2], "", "", cells[3], ""])
    return table_lines(table)


def answers_table(rows: list[dict[str, Any]]) -> str:
    ways = ["exact", *(f"beam {width}" for width in WIDTHS)]
    table = [["classes", *(f"{way}, ms" for way in ways), "exact / beam 64"]]
    for row in rows:
        times = [f"{row[way]:.3f}" for way in ways]
        table.append([f"{row['classes']:,}", *times, f"{row['exact'] / row['beam 64']:,.0f}"])
    return table_lines(table)


WORKERS = {"draws": draws, "steps": steps, "answers": answers}

if __name__ == "__main__":
    main()
