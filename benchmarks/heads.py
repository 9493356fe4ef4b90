"""Last layers: a full softmax layer compared with product, cascade and sampling heads.

    python benchmarks/heads.py
    python benchmarks/heads.py --labels 1000 100000 --heads full product

One training step (forward, backward and update; one random class per sample) and the answer of the
best five labels, for one batch: of the head alone (random features, plain SGD), and of a network
with a Bag of 50,000 words (100 per sample) and the optimizers of NeuralClassifier. Each head has a
process of its own, for its peak of memory, which is that of a step or an answer less what Python
and PyTorch hold before the head is made. Times are medians of the wall clock; a ratio is full over
head.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from statistics import median
from typing import Any

import torch
from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, peak_megabytes, reset_peak, timed
from harness.report import made_by, table_lines, write_results

from umpteen.multihead import CascadeHead, ProductHead, SamplingHead
from umpteen.neural import Bag, FullHead, Head, SparseRows, Targets
from umpteen.neural.network import Network
from umpteen.neural.optimizers import make_optimizers

FEATURES, BATCH, K = 512, 128, 5
WORDS, WORDS_PER_SAMPLE = 50_000, 100

HEADS: dict[str, tuple[str, Callable[[int], Head]]] = {
    "full": ("full softmax layer", lambda n: FullHead(FEATURES, n)),
    "product": ("product, 2 heads", lambda n: ProductHead(FEATURES, n)),
    "product-3": ("product, 3 heads", lambda n: ProductHead(FEATURES, n, n_heads=3)),
    "product-groups": ("product, 4 groups of 2", lambda n: ProductHead(FEATURES, n, n_groups=4)),
    "cascade": (
        "cascade, one class",
        lambda n: CascadeHead(FEATURES, n, sparse=True),
    ),
    "cascade-bce": (
        "cascade, any labels",
        lambda n: CascadeHead(FEATURES, n, loss="bce", sparse=True),
    ),
    "sampling": ("sampling, shared groups", lambda n: SamplingHead(FEATURES, n, sparse=True)),
    "sampling-own": (
        "sampling, 2 groups of its own",
        lambda n: SamplingHead(FEATURES, n, sampling="own", sparse=True),
    ),
}


def main() -> None:
    options = parse()
    if options.worker:
        network = options.network
        print(json.dumps(measure(options.worker, network, options.labels[0], options.steps)))
        return
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/heads.py", *sys.argv[1:]]),
        "machine": {**machine(), "threads": torch.get_num_threads()},
        "versions": {**versions(), "torch": torch.__version__},
        "rows": [],
    }
    for n_labels, network, name in product(options.labels, (False, True), options.heads):
        results["rows"].append(in_own_process(name, network, n_labels, options.steps))
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
    parser.add_argument("--network", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def in_own_process(name: str, network: bool, n_labels: int, steps: int) -> dict[str, Any]:
    again = [sys.executable, __file__, "--worker", name, "--labels", str(n_labels)]
    again += ["--network"] if network else []
    run = subprocess.run(
        [*again, "--steps", str(steps)], check=True, stdout=subprocess.PIPE, text=True
    )
    return {"head": name, "network": network, "labels": n_labels, **json.loads(run.stdout)}


def measure(name: str, network: bool, n_labels: int, steps: int) -> dict[str, float]:
    """Seconds and megabytes of a step and of an answer; the first of each does not count."""
    torch.manual_seed(0)
    inputs = words() if network else torch.randn(BATCH, FEATURES)
    targets = Targets.of_classes(torch.randint(n_labels, (BATCH,)))
    encoder = Bag(WORDS, FEATURES) if network else torch.nn.Identity()
    reset_peak()
    before = peak_megabytes()
    head = HEADS[name][1](n_labels)
    whole = Network(encoder, head)
    optimisers: list[torch.optim.Optimizer] = (
        make_optimizers(whole, "adamw", 1e-3, 0.0)
        if network
        else [torch.optim.SGD(head.parameters(), lr=0.1)]
    )
    step_times = [step(whole, optimisers, inputs, targets) for _ in range(steps + 1)]
    step_peak = peak_megabytes() - before
    for optimiser in optimisers:
        optimiser.zero_grad()
    optimisers.clear()
    reset_peak()
    whole.topk(inputs, K)
    _, answers = timed(lambda: whole.topk(inputs, K), steps, 20.0)
    return {
        "parameters": head.n_parameters,
        "step": median(watch.wall for watch in step_times[1:]),
        "step_cpu": median(watch.cpu for watch in step_times[1:]),
        "answer": median(watch.wall for watch in answers),
        "answer_cpu": median(watch.cpu for watch in answers),
        "step_peak": step_peak,
        "answer_peak": peak_megabytes() - before,
    }


def words() -> SparseRows:
    """A batch for a `Bag`."""
    offsets = torch.arange(0, BATCH * WORDS_PER_SAMPLE + 1, WORDS_PER_SAMPLE)
    chosen = torch.randint(WORDS, (BATCH * WORDS_PER_SAMPLE,))
    return SparseRows(offsets, chosen, torch.full((len(chosen),), WORDS_PER_SAMPLE**-0.5))


def step(
    network: Network, optimisers: list[torch.optim.Optimizer], inputs: Any, targets: Targets
) -> Stopwatch:
    with Stopwatch() as watch:
        for optimiser in optimisers:
            optimiser.zero_grad()
        network.loss(inputs, targets).backward()
        for optimiser in optimisers:
            optimiser.step()
    return watch


def markdown(results: dict[str, Any]) -> str:
    heads = ["", "parameters", "step, ms", "ratio", f"best {K}, ms", "ratio",
             "peak of a step, MB", "of an answer, MB"]  # fmt: skip
    parts = [f"{made_by(results)} Batches of {BATCH}, {FEATURES} features."]
    for n_labels, network in dict.fromkeys((r["labels"], r["network"]) for r in results["rows"]):
        rows = [r for r in results["rows"] if (r["labels"], r["network"]) == (n_labels, network)]
        full = next((row for row in rows if row["head"] == "full"), None)
        what = "with a Bag and the real optimizers" if network else "heads alone, plain SGD"
        title = f"## {n_labels:,} labels, {what}"
        parts += [title, table_lines([heads, *(cells(r, full) for r in rows)])]
    return "\n\n".join(["# Last layers", *parts]) + "\n"


def cells(row: dict[str, Any], full: dict[str, Any] | None) -> list[str]:
    found = [HEADS[row["head"]][0], f"{row['parameters']:,}"]
    for key in ("step", "answer"):
        found += [f"{1e3 * row[key]:,.1f}", f"{full[key] / row[key]:,.1f}" if full else ""]
    return [*found, f"{row['step_peak']:,.0f}", f"{row['answer_peak']:,.0f}"]


if __name__ == "__main__":
    main()
