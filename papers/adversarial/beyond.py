"""Beyond the paper: what changes of the noise and of the objective are worth."""

from collections.abc import Iterator
from functools import partial

from papers.adversarial.figure1 import budget, tuned
from papers.adversarial.methods import RATES
from papers.adversarial.runs import Setting, run, warm_up
from papers.adversarial.tasks import MADE_UP, Task, available, task
from papers.contents import Cell, Part, Section, Table, Value

_SETS = ("wordnet-ancestors", "debian-deps")
_SAMPLING: Setting = {"objective": "negative_sampling", "regularizer": 1e-4}
_FROM_ZERO: Setting = {"centroid_scale": 0.0, "learning_rate": 1.0}
CHANGES: dict[str, Setting] = {
    "umpteen: sampled softmax, a tree by held-out likelihood, share 0.3, 5 negatives": {},
    "from zero instead of centroids": _FROM_ZERO,
    "frequency share 0": {"frequency_share": 0.0},
    "frequency share 0.1": {"frequency_share": 0.1},
    "tree's regulariser 0.1": {"tree": 0.1},
    "tree's regulariser 1": {"tree": 1.0},
    "tree's regulariser 10": {"tree": 10.0},
    "1 negative": {"n_negatives": 1},
    "20 negatives": {"n_negatives": 20},
    "20 negatives shared in a batch": {"shared": True, "n_negatives": 20},
    "100 negatives shared in a batch": {"shared": True, "n_negatives": 100},
    "tree grown again after 2 epochs": {"refresh_after": 2},
    "by frequency, 5 negatives": {"noise": "frequency"},
    "by frequency, 20 negatives": {"noise": "frequency", "n_negatives": 20},
    "negative sampling": _SAMPLING,
    "negative sampling, share 0": {**_SAMPLING, "frequency_share": 0.0},
    "negative sampling, share 0, tree's regulariser 0.1": {
        **_SAMPLING, "frequency_share": 0.0, "tree": 0.1,
    },
    "negative sampling, 20 negatives": {**_SAMPLING, "n_negatives": 20},
    "negative sampling by frequency": {**_SAMPLING, "noise": "frequency"},
    "negative sampling by frequency, from zero": {
        **_SAMPLING, **_FROM_ZERO, "noise": "frequency",
    },
    "negative sampling, uniform": {**_SAMPLING, "noise": "uniform"},
}  # fmt: skip


def sections(quick: bool) -> list[Section]:
    """One for each of two data sets."""
    sets = [name for name in available() if name in _SETS] or [MADE_UP]
    return [
        Section(
            f"Beyond the paper, on {name}",
            "none of this is in it: more negatives, a tree mixed with frequencies, negatives "
            "shared in a batch, a tree grown again along learned weights, a start at class "
            "centroids, a discount of frequencies when classes are ranked, and a sampled softmax "
            "with the tree instead of negative sampling.",
            f"The data and parts of Figure 1. Each row is one change of umpteen's setting there; "
            "its learning rate is the best of three around that one on validation, in trials "
            f"of {budget(name, quick).trial:g} s; then it trains for "
            f"{budget(name, quick).final / 5:g} s, after the noise was fitted.",
            partial(_measure, name, quick),
        )
        for name in sets
    ]


def _measure(name: str, quick: bool) -> Iterator[Part]:
    chosen, spent = task(name, quick), budget(name, quick)
    warm_up(chosen)
    base = tuned(name, quick, "umpteen").best
    last = chosen.test.first(spent.n_final)
    rows: list[list[Cell]] = []
    for change, setting in CHANGES.items():
        rate, validation = _best_rate(chosen, {**base, **setting}, spent.trial, spent.n_curve)
        final = {**base, **setting, "learning_rate": rate}
        found = run(chosen, final, spent.final / 5, free_noise=True)
        point = found.judge(last)
        rows.append([
            change, f"{rate:g}", Value(validation), Value(found.noise_seconds, digits=1),
            found.state.epoch, Value(point.accuracy),
            Value(point.corrected.accuracy), Value(point.corrected.likelihood, digits=3),
        ])  # fmt: skip
    columns = ["change", "learning rate", "validation, %", "seconds for the noise", "epochs",
               "accuracy, %", "without discount", "log-likelihood"]  # fmt: skip
    yield Table("On test, after the same number of seconds of training", columns, rows)


def _best_rate(
    chosen: Task, setting: Setting, seconds: float, n_judges: int
) -> tuple[float, float]:
    """Of the setting's learning rate and its neighbours, and its validation accuracy."""
    place = RATES.index(setting["learning_rate"])
    found = {}
    for rate in RATES[max(place - 1, 0) : place + 2]:
        trial = run(chosen, {**setting, "learning_rate": rate}, seconds, free_noise=True)
        found[rate] = trial.judge(chosen.validation.first(n_judges)).accuracy
    best = max(found, key=lambda rate: found[rate])
    return best, found[best]
