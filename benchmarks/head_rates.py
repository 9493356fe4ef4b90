"""Which learning rate suits which head: what `python -m papers multihead` trains with.

    python benchmarks/head_rates.py
    python benchmarks/head_rates.py --sets pydocs --rates 0.01 --seeds 3
    python benchmarks/head_rates.py --sets pydocs wordnet-ancestors --heads adversarial

An eighth of the training samples is the validation split: accuracy for one class per sample,
precision at 1 for several labels. Samples whose class no other training sample has are left out.
Test parts are not used.
"""

import argparse
from collections.abc import Iterator

import harness  # noqa: F401 (makes papers importable)
import numpy as np
from rich.console import Console
from rich.table import Table

from papers.multihead import single, stacked
from papers.multihead.labels import PAPER_GROUP, cascade
from papers.multihead.settings import CLASSES, LABELS, RATES, STACKS, Training
from papers.multihead.tasks import Task, classes_task, scores, texts_task
from umpteen.neural import Blueprint, Conv, FullHead, blueprint

SETS = (*CLASSES, *LABELS, *(f"stacks-{size}" for size in STACKS))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--rates", nargs="+", type=float, default=RATES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--heads", nargs="+", metavar="HEAD", help="by the names on the page")
    options = parser.parse_args()
    for name in options.sets:
        task, training, heads = case(name)
        heads = {each: heads[each] for each in options.heads or heads if each in heads}
        table = Table("head", *map("{:g}".format, options.rates), "chosen", title=name)
        for row in rows(with_validation_split(task), training, heads, options.rates, options.seeds):
            table.add_row(*row)
        Console(width=100).print(table)


def case(name: str) -> tuple[Task, Training, dict[str, Blueprint]]:
    """The task of the page, how it is trained there, and its heads."""
    if name in CLASSES:
        task = classes_task(name, False)
        return task, CLASSES[name], single.heads(task.n_labels)
    if name in LABELS:
        task = texts_task(name, False)
        heads = {"full": blueprint(FullHead), "MHC": cascade(task.n_labels, PAPER_GROUP)}
        return task, LABELS[name], heads
    size = int(name.removeprefix("stacks-"))
    return stacked.stacks(size, stacked.N_SAMPLES), STACKS[size], stacked.heads(size)


def with_validation_split(task: Task) -> Task:
    """The same with an eighth of the training samples as its test part."""
    order = np.random.default_rng(7).permutation(task.X.shape[0])
    n_validation = len(order) // 8
    chosen, rest = order[:n_validation], order[n_validation:]
    if task.Y.ndim == 1:
        chosen = chosen[np.isin(task.Y[chosen], task.Y[rest])]
    return Task(task.name, task.X[rest], task.Y[rest], task.X[chosen], task.Y[chosen])


def rows(
    task: Task, training: Training, heads: dict[str, Blueprint], rates: list[float], n_seeds: int
) -> Iterator[list[str]]:
    conv = blueprint(Conv, dim=training.dim, width=stacked.CONV_WIDTH)
    images = {"encoder": conv, "recipe__all_labels": True}
    options = images if task.X.ndim == 4 else {}
    for label, head in heads.items():
        found = []
        for rate in rates:
            networks = (
                training.network(head, seed, learning_rate=rate, **options)
                for seed in range(n_seeds)
            )
            runs = [scores(task, network.fit(task.X, task.Y))[0] for network in networks]
            found.append(f"{np.mean(runs):.2f}")
        yield [label, *found, f"{training.rate(head):g}"]


if __name__ == "__main__":
    main()
