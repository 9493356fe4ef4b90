"""The defaults before and after calibration: accuracy, likelihood, and what confidence is worth."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from papers.adversarial.hierarchical import hierarchical
from papers.adversarial.methods import warm_up
from papers.adversarial.tasks import MADE_UP, Samples, Task, as_matrix, available, task
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.progress import progress_bar
from umpteen.softmax import AdversarialSoftmax, SoftmaxRecipe

_BEFORE = {"frequency_discount": "auto", "recipe__calibrate": False, "recipe__centroid_scale": 10.0}
_SETTINGS: dict[str, dict[str, Any]] = {"before": _BEFORE, "now": {}}


def sections(quick: bool) -> list[Section]:
    """One for texts and one for dense made-up classes."""
    n_seeds = 1 if quick else 3
    texts = [name for name in available(quick) if name != MADE_UP][:1]
    return [
        Section(
            f"The defaults before and now, {name}",
            "none: a check of AdversarialSoftmax() itself.",
            "Before: initial scores of 10 times the cosine, a frequency discount that is chosen by "
            "precision, no calibration. Now: AdversarialSoftmax(). Confidence is the probability "
            "of the best class of predict_log_proba; it should be the accuracy. Other class: how "
            "often the first class of predict_topk is not the most probable one. On test; seeds: "
            f"{n_seeds}.",
            partial(_measure, name, quick, n_seeds),
        )
        for name in (*texts, MADE_UP)
    ]


def _task(name: str, quick: bool) -> Task:
    if name != MADE_UP:
        return task(name, quick)
    n_classes = 500 if quick else 5_000
    train, others = hierarchical(n_classes, 128, 3 * n_classes, 4_000)
    test = Samples(others.X[2_000:], others.y[2_000:])
    return Task(MADE_UP, train.X, as_matrix(train.y, n_classes), test, test)


def _measure(name: str, quick: bool, n_seeds: int) -> Iterator[Block]:
    chosen = _task(name, quick)
    warm_up(chosen.dense)
    yield chosen.in_words() + "."
    rows: list[list[Cell]] = []
    with progress_bar(name, n_seeds * len(_SETTINGS)) as advance:
        for when, setting in _SETTINGS.items():
            runs = []
            for seed in range(n_seeds):
                model = AdversarialSoftmax(
                    recipe=SoftmaxRecipe(), random_state=seed, n_jobs=1, verbose=False
                ).set_params(**setting, epochs=1 if quick else 30)
                runs.append(quality(model.fit(chosen.X, chosen.Y), chosen.test.first(2_000)))
                advance()
            cells = [
                over_seeds(each, digits=n)
                for each, n in zip(np.transpose(runs), (1, 1, 2, 1), strict=True)
            ]
            rows.append([when, *cells])
    columns = ["defaults", "accuracy, %", "confidence, %", "negative log-likelihood",
               "other class, %"]  # fmt: skip
    yield Table(f"{name}: on test", columns, rows)


def quality(model: AdversarialSoftmax, samples: Samples) -> tuple[float, float, float, float]:
    """Return accuracy, confidence and disagreement in %, and the negative log-likelihood."""
    first = model.predict_topk(samples.X, k=1).labels[:, 0]
    asked = model.predict_topk(samples.X, k=50).labels.astype(np.int64)
    logs = model.predict_log_proba(samples.X, asked)
    likely = asked[np.arange(len(asked)), logs.argmax(axis=1)]
    own = np.maximum(model.predict_log_proba(samples.X, samples.y), -1e4)
    return (
        100 * float((first == samples.y).mean()), 100 * float(np.exp(logs.max(axis=1)).mean()),
        -float(own.mean()), 100 * float((first != likely).mean()),
    )  # fmt: skip
