"""What SiameseXML costs: training by modules, answers one by one and in batches, memory, disk.

    python benchmarks/siamese_speed.py
    python benchmarks/siamese_speed.py --labels 10000 --epochs 1

Made-up samples, as many as labels, with 50 words each, and labels with words of their own. Module I
has one epoch, Modules III and IV two, and their times are per epoch; `setting up` is the rest:
vectors and graphs of labels, and what scores are learned from. Modules run twice: without the
validation split, from which scores are learned, and on all samples; times are means of both.
Single answers are for texts as they come, words counted already; graphs are walked with several
widths, the first one being that of `SiameseXML`. Memory is beyond what was held before `fit`.
"""

import argparse
import shlex
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.measure import (
    Stopwatch,
    disk_megabytes,
    latencies,
    peak_megabytes,
    reset_peak,
    timed,
)
from harness.report import made_by, table_lines, write_results

import umpteen as um
from umpteen.siamese import training
from umpteen.siamese.fitting import Fitting

REFINE_EPOCHS = 2
FIGURES = {
    "embed": "Module I, s per epoch",
    "mine": "Module II, s",
    "refine": "Module III, s per epoch",
    "joint": "Module IV, s per epoch",
    "words": "classifiers of words, s",
    "fit": "whole fit, s",
    "rest": "setting up, s",
    "peak": "peak of fit, MB",
    "size": "saved MB",
    "p50": "one text, ms, median",
    "p99": "one text, ms, p99",
    "batch": "batch, µs per text",
    "differ": "lists of 5 that differ from an exact search, %",
}


def main() -> None:
    options = parse()
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/siamese_speed.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }
    warm_up()
    for n_labels in options.labels:
        for row in measure(n_labels, options.epochs):
            results["rows"].append(row)
            path = results_folder(quick=options.labels != LABELS) / "siamese_speed.json"
            write_results(results, path, markdown(results))
    print(markdown(results))


LABELS = [10_000, 100_000]
WIDTHS = (100, 150, 200, 300)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS)
    parser.add_argument("--epochs", type=int, default=1)
    return parser.parse_args()


def warm_up() -> None:
    """Compile."""
    data = made_up(3_000)
    model = _model(1, 1)
    model.fit(data.train.X, data.train.Y, label_features=data.label_features)
    model.predict_topk(data.test.X[:1])
    model.predict_topk(data.test.X)


def _model(epochs: int, refine_epochs: int) -> um.SiameseXML:
    recipe = um.siamese.SiameseRecipe(refine_epochs=refine_epochs, joint_epochs=refine_epochs)
    return um.SiameseXML(epochs=epochs, recipe=recipe, search="hnsw", verbose=False)


def made_up(n_labels: int) -> um.data.Dataset:
    return um.data.make_extreme(
        n_labels + 2_000, n_features=50_000, n_labels=n_labels, label_features=True,
        test_fraction=2_000 / (n_labels + 2_000),
    )  # fmt: skip


def measure(n_labels: int, epochs: int) -> Iterator[dict[str, Any]]:
    """By graphs, and by comparison with all labels."""
    data = made_up(n_labels)
    model = _model(epochs, REFINE_EPOCHS)
    reset_peak()
    before = peak_megabytes()
    with modules_timed() as spent, Stopwatch() as whole:
        model.fit(data.train.X, data.train.Y, label_features=data.label_features)
    costs = {
        "peak": peak_megabytes() - before,
        "embed": mean(spent["_embed"]) / max(1, epochs),
        "mine": mean(spent["_mine"]),
        "refine": mean(spent["refine"]) / REFINE_EPOCHS,
        "joint": mean(spent["joint"]) / REFINE_EPOCHS,
        "words": mean(spent["words"]),
        "rest": whole.wall - sum(sum(each) for each in spent.values()),
        "fit": whole.wall,
    }
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        costs["size"] = disk_megabytes(Path(folder))
    index = model.towers_[0].index
    index.method = "exact"
    exact, costs_of_all = model.predict_topk(data.test.X).labels, answers(model, data.test.X)
    index.method = "hnsw"
    for width in (index.beam_width, *(width for width in WIDTHS if width != index.beam_width)):
        index.beam_width = width
        found = [model.predict_topk(data.test.X[row]).labels for row in range(len(exact))]
        differ = 100 * float((np.concatenate(found) != exact).any(axis=1).mean())
        costs |= {**answers(model, data.test.X), "differ": differ}
        yield {"labels": n_labels, "search": f"hnsw, width {width}", **costs}
        costs = {}
    yield {"labels": n_labels, "search": "exact", **costs_of_all}


def answers(model: um.SiameseXML, X: Any) -> dict[str, float]:
    single = latencies(model.predict_topk, [X[row] for row in range(X.shape[0])])
    _, batches = timed(lambda: model.predict_topk(X), passes=3, budget=60)
    return {**single, "batch": 1e6 * batches[0].wall / X.shape[0]}


@contextmanager
def modules_timed() -> Iterator[dict[str, list[float]]]:
    """Seconds of each module each time that it runs inside."""
    spent: dict[str, list[float]] = defaultdict(list)

    def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            with Stopwatch() as watch:
                found = work(*arguments)
            module = arguments[1] if name == "_refine" else name
            spent[module].append(watch.wall)
            return found

        return run

    names = ("_embed", "_mine", "_refine")
    places = [*((training._Trainer, name) for name in names), (Fitting, "words")]
    originals = [(place, name, getattr(place, name)) for place, name in places]
    for place, name, work in originals:
        setattr(place, name, watched(name, work))
    try:
        yield spent
    finally:
        for place, name, work in originals:
            setattr(place, name, work)


def markdown(results: dict[str, Any]) -> str:
    rows = [["labels", "search", *FIGURES.values()]]
    for row in results["rows"]:
        figures = [f"{row[name]:,.3g}" if name in row else "" for name in FIGURES]
        rows.append([f"{row['labels']:,}", row["search"], *figures])
    return f"# What SiameseXML costs\n\n{made_by(results)}\n\n{table_lines(rows)}\n"


if __name__ == "__main__":
    main()
