"""Beyond the paper: what changes of noise and objective are worth, and answers by beam search."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from papers.adversarial.methods import measure, train, warm_up
from papers.adversarial.tasks import MADE_UP, Samples, available, task
from papers.contents import Block, Cell, Section, Table, Value
from umpteen import TopK
from umpteen.softmax import AdversarialSoftmax, NoiseTree

_SETS = ("wordnet-ancestors", "debian-deps", MADE_UP)
_WIDTHS = (4, 16, 64, 256, 1024)
_REPEATS = 3
CHANGES: dict[str, dict[str, Any]] = {
    "umpteen: AdversarialSoftmax()": {},
    "tree, no share by frequency": {"noise": "tree", "recipe__frequency_share": 0.0},
    "tree's regulariser 0.1": {"noise": NoiseTree(regularizer=0.1, verbose=False)},
    "uniform": {"noise": "uniform"},
    "from zero instead of centroids": {"recipe__centroid_scale": 0.0, "learning_rate": 1.0},
    "1 negative": {"n_negatives": 1},
    "20 negatives": {"n_negatives": 20},
    "not calibrated": {"recipe__calibrate": False},
    "a discount of frequencies, by precision": {"frequency_discount": "auto"},
    "negative sampling": {"objective": "negative_sampling", "recipe__regularizer": 1e-4},
}


def sections(quick: bool) -> list[Section]:
    """Changes and beam search, for each data set."""
    found = []
    for name in available(quick):
        if quick or name in _SETS:
            found.append(
                Section(
                    f"Beyond the paper, on {name}",
                    "none of this is in it: a start at class centroids, probabilities "
                    "that are calibrated on the validation split, more negatives, a tree mixed "
                    "with frequencies, and a sampled softmax instead of negative sampling.",
                    "Each row is one change of AdversarialSoftmax(), trained until its validation "
                    "split stops it; on the validation samples of Figure 1.",
                    partial(_changes, name, quick),
                )
            )
            found.append(
                Section(
                    f"Answers in sublinear time, on {name}",
                    "a sample's answer compares all classes; the paper leaves it at that.",
                    "A beam goes through the tree, and the classes where it ends are compared by "
                    "their scores. Milliseconds are per sample, answered in one call, the median "
                    f"of {_REPEATS}.",
                    partial(_beams, name, quick),
                )
            )
    return found


def _changes(name: str, quick: bool) -> Iterator[Block]:
    chosen = task(name, quick)
    warm_up(chosen.dense)
    rows: list[list[Cell]] = []
    for change, setting in CHANGES.items():
        model = AdversarialSoftmax(verbose=False, epochs=1 if quick else 30).set_params(**setting)
        began = time.process_time()
        model.fit(chosen.X, chosen.Y)
        seconds = time.process_time() - began
        found = measure(model, chosen.validation)
        rows.append([
            change, Value(seconds, digits=1), _n_epochs(model),
            Value(found.accuracy), Value(found.likelihood, digits=3),
        ])  # fmt: skip
    columns = ["change", "seconds of CPU", "epochs", "accuracy, %", "log-likelihood"]
    yield Table("On validation", columns, rows)


def _n_epochs(model: AdversarialSoftmax) -> int:
    """Return the number of epochs; a start at centroids has a score, too."""
    begins_at_centroids = model.get_params()["recipe__centroid_scale"] != 0
    return len(model.validation_scores_) - int(begins_at_centroids)


def _beams(name: str, quick: bool) -> Iterator[Block]:
    chosen = task(name, quick)
    warm_up(chosen.dense)
    model, _ = train(chosen, {"noise": "tree"}, 0.2 if quick else 25.0)
    test = chosen.test.first(200 if quick else 1_000)
    best, milliseconds = _timed(model, test)
    rows: list[list[Cell]] = [_row("all classes", best, best, test, milliseconds)]
    for width in _WIDTHS:
        if 2 * width >= chosen.n_classes:
            break
        found, milliseconds = _timed(model.set_params(beam_width=width), test)
        rows.append(_row(f"beam of {width}", found, best, test, milliseconds))
    yield f"{chosen.n_classes:,} classes, {len(test.y):,} test samples."
    columns = ["search", "accuracy, %", "same answer as exact, %", "ms per sample"]
    yield Table("Exact and by beam", columns, rows)


def _row(name: str, found: TopK, best: TopK, test: Samples, milliseconds: float) -> list[Cell]:
    labels = found.labels[:, 0]
    return [
        name, Value(100 * float((labels == test.y).mean())),
        Value(100 * float((labels == best.labels[:, 0]).mean())), Value(milliseconds, digits=3),
    ]  # fmt: skip


def _timed(model: AdversarialSoftmax, test: Samples) -> tuple[TopK, float]:
    """Return the answers, and the median of milliseconds per sample."""
    found, seconds = model.predict_topk(test.X, k=1), []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        model.predict_topk(test.X, k=1)
        seconds.append(time.perf_counter() - began)
    return found, 1e3 * float(np.median(seconds)) / len(test.y)
