"""Train AdversarialSoftmax for some seconds, and measure it."""

import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from papers.adversarial.tasks import Samples, Task
from umpteen.softmax import AdversarialSoftmax, NoiseTree, SoftmaxRecipe

_FOREVER = 1_000_000
_ONE: dict[str, Any] = {"objective": "negative_sampling", "n_negatives": 1}
_PLAIN: dict[str, Any] = {"recipe__centroid_scale": 0.0}
METHODS: dict[str, dict[str, Any]] = {
    "umpteen": {"noise": "auto"},
    "adversarial": {**_ONE, **_PLAIN, "noise": "tree", "recipe__frequency_share": 0.0},
    "frequency": {**_ONE, **_PLAIN, "noise": "frequency"},
    "uniform": {**_ONE, **_PLAIN, "noise": "uniform"},
    "NCE": {**_PLAIN, "objective": "nce", "n_negatives": 1, "noise": "tree"},
    "one-vs-each": {**_PLAIN, "objective": "one_vs_each", "n_negatives": 1},
    "augment and reduce": {**_PLAIN, "objective": "augment_reduce", "n_negatives": 1},
}
BASELINES = ("frequency", "uniform", "NCE", "one-vs-each", "augment and reduce")


class Quality(NamedTuple):
    """Accuracy in %, and mean log-likelihood of the right class."""

    accuracy: float
    likelihood: float


def train(task: Task, setting: dict[str, Any], seconds: float) -> tuple[AdversarialSoftmax, float]:
    """Return a model that was trained for so many seconds, and the CPU seconds of all of `fit`.

    Both are of one thread. `max_seconds` does not count the tree, and so the first number is the
    time for steps. All training samples are used: nothing is stopped early, and no frequency
    discount is chosen.
    """
    model = AdversarialSoftmax(recipe=SoftmaxRecipe(validation_fraction=0.0, max_seconds=seconds))
    model.set_params(epochs=_FOREVER, frequency_discount=0.0, n_jobs=1, verbose=False, **setting)
    began = time.process_time()
    return model.fit(task.X, task.Y), time.process_time() - began


def measure(model: AdversarialSoftmax, samples: Samples) -> Quality:
    """Return accuracy and likelihood."""
    best = model.predict_topk(samples.X, k=1).labels[:, 0]
    logs = np.nan_to_num(model.predict_log_proba(samples.X, samples.y), neginf=-1e4)
    return Quality(100 * float((best == samples.y).mean()), float(logs.mean()))


@cache
def warm_up(dense: bool) -> None:
    """Compile every kernel, which is no part of any run."""
    X = np.random.default_rng(0).random((100, 9), np.float32)
    if not dense:
        X[X < 0.8] = 0
    for setting in METHODS.values():
        model = AdversarialSoftmax(recipe=SoftmaxRecipe()).set_params(
            **setting, epochs=1, verbose=False
        )
        model.fit(X, np.arange(100) % 20).predict_topk(X, k=1)
    NoiseTree(verbose=False).fit(X, np.arange(100) % 20).sample(X)
