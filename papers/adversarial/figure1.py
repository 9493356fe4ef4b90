"""Figure 1 and Table 1: accuracy and log-likelihood against seconds, for all that are tuned."""

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from papers.adversarial.methods import (
    BASELINES,
    METHODS,
    NOT_TUNED,
    Budget,
    Tuning,
)
from papers.adversarial.runs import Point, Run, Setting, run, warm_up
from papers.adversarial.tasks import MADE_UP, Judges, available, task
from papers.contents import Cell, Part, Section, Table, Value
from papers.drawing import courses

_FULL = {
    "wordnet-ancestors": Budget(trial=1.2, n_trials=9, final=25, n_curve=2_000),
    "debian-deps": Budget(trial=1.2, n_trials=9, final=25, n_curve=2_000),
    "pydocs": Budget(trial=0.5, n_trials=9, final=10, n_curve=2_000),
    MADE_UP: Budget(trial=5, n_trials=7, final=90, n_curve=200, n_final=2_000),
}
_QUICK = Budget(trial=0.1, n_trials=4, final=0.8, n_curve=300, n_final=500)


def sections(quick: bool) -> list[Section]:
    """One for each data set."""
    return [
        Section(
            f"Figure 1 and Table 1 on {name}",
            "with classes drawn from the tree, training converges at least ten times as fast as "
            "with every baseline and ends more accurate.",
            f"{_origin(name)} One negative in each step, as in the paper, and five for umpteen, "
            "which is AdversarialSoftmax(), a sampled softmax that starts at class centroids and "
            "discounts frequencies, with tuned rates. Every method has "
            "the same number of trials of the same length at most "
            f"({budget(name, quick).n_trials} of {budget(name, quick).trial:g} s), chosen "
            "by accuracy on samples that are neither "
            f"learned from nor tested on; then all train for {budget(name, quick).final:g} s, in "
            "which fitting the tree counts.",
            partial(_measure, name, quick),
        )
        for name in available()
    ]


def budget(name: str, quick: bool) -> Budget:
    """How long to train on a data set."""
    return _QUICK if quick else _FULL[name]


@cache
def tuned(name: str, quick: bool, method: str) -> Tuning:
    """The settings of a method on a data set; searched once for all sections."""
    chosen = next(each for each in METHODS if each.name == method)
    warm_up(task(name, quick))
    return Tuning(task(name, quick), chosen, budget(name, quick))


def _origin(name: str) -> str:
    if name == MADE_UP:
        return "Made-up classes in a hidden hierarchy, dense features, frequencies by Zipf's law."
    return (
        f"{name}; a sample's class is the rarest of its labels that has at least three training "
        "samples (the first one, as in the paper, is the same for most); TF-IDF of single words."
    )


def _measure(name: str, quick: bool) -> Iterator[Part]:
    chosen, spent = task(name, quick), budget(name, quick)
    yield chosen.said() + "."
    tunings = {method.name: tuned(name, quick, method.name) for method in METHODS}
    yield _choices(tunings)
    yield from _tree_choices(tunings)
    settings: dict[str, Setting] = {name: tuning.best for name, tuning in tunings.items()}
    settings[NOT_TUNED] = {}
    judges, last = chosen.test.first(spent.n_curve), chosen.test.first(spent.n_final)
    curves, rows = {}, []
    for method, setting in settings.items():
        found = run(chosen, setting, spent.final, judges)
        curves[method] = found.points
        rows.append(_final(method, found, last))
    yield _finals(rows)
    yield from _pictures(curves)
    yield from headline(curves)


def _final(method: str, found: Run, judges: Judges) -> list[Cell]:
    point = found.judge(judges)
    sampled = found.is_corrected
    return [
        method, Value(found.noise_seconds, digits=1), Value(point.seconds, digits=1),
        Value(point.corrected.accuracy), Value(point.uncorrected.accuracy) if sampled else None,
        Value(found.ranked(judges) if point.ranked is None else point.ranked),
        Value(point.corrected.likelihood, digits=3),
        Value(point.uncorrected.likelihood, digits=3) if sampled else None,
    ]  # fmt: skip


def _choices(tunings: dict[str, Tuning]) -> Table:
    rows: list[list[Cell]] = []
    for name, tuning in tunings.items():
        best = tuning.best
        rows.append([
            name, f"{best['learning_rate']:g}", f"{best['regularizer']:g}",
            str(best.get("tree", "auto" if name == "umpteen" else "-")), len(tuning.tried),
            Value(max(tuning.tried.values())),
        ])  # fmt: skip
    columns = ["method", "learning rate", "regulariser", "the tree's", "trials", "accuracy, %"]
    return Table("What was chosen (the paper's Table 1), by validation accuracy", columns, rows)


def _tree_choices(tunings: dict[str, Tuning]) -> Iterator[Part]:
    """Trials that differ in the tree's regulariser alone."""
    rows: list[list[Cell]] = []
    for name in ("adversarial", "NCE"):
        for key, accuracy in tunings[name].tried.items():
            setting = dict(key)
            rows.append([
                name, str(setting["tree"]), f"{setting['learning_rate']:g}",
                f"{setting['regularizer']:g}", Value(accuracy),
            ])  # fmt: skip
    columns = ["method", "the tree's regulariser", "learning rate", "regulariser", "accuracy, %"]
    yield Table("All trials of the methods with a tree alone; the paper's is 0.1", columns, rows)


def _finals(rows: list[list[Cell]]) -> Table:
    return Table(
        "In the end, on test; uncorrected leaves the noise in the scores (what Eq. 5 takes out), "
        "discounted takes out a share of log-frequencies that is chosen on validation: umpteen's "
        "own way, here for all",
        ["method", "seconds for the noise", "seconds in all", "accuracy, %", "uncorrected",
         "discounted", "log-likelihood", "uncorrected"],
        rows,
    )  # fmt: skip


def _pictures(curves: dict[str, list[Point]]) -> Iterator[Part]:
    seconds = {name: [point.seconds for point in points] for name, points in curves.items()}
    yield courses(
        "Accuracy on test over seconds; of the paper's methods, corrected or not, the better one",
        seconds,
        {name: [point.accuracy for point in points] for name, points in curves.items()},
        x_label="seconds, fitting the tree included", y_label="accuracy, %",
    )  # fmt: skip
    yield courses(
        "Log-likelihood of the right class on test over seconds",
        seconds,
        {name: [point.corrected.likelihood for point in ps] for name, ps in curves.items()},
        x_label="seconds, fitting the tree included", y_label="log-likelihood",
    )  # fmt: skip


def headline(curves: dict[str, list[Point]]) -> Iterator[Part]:
    """How long each method takes to where the best baseline ends."""
    best = max(BASELINES, key=lambda name: curves[name][-1].accuracy)
    last = curves[best][-1]
    goal = last.accuracy
    own = reached(curves[best][:-1], goal)
    own = last.seconds if own is None else own
    rows: list[list[Cell]] = []
    for name, points in curves.items():
        seconds = reached(points, goal)
        rows.append([
            name, None if seconds is None else Value(seconds),
            None if seconds is None else Value(own / seconds, digits=1),
            Value(points[-1].accuracy), Value(max(point.accuracy for point in points)),
        ])  # fmt: skip
    yield Table(
        f"Seconds to the final accuracy of the best baseline, {best}: {goal:.2f} %; speed-up is "
        f"that baseline's seconds ({own:.2f}) over these",
        ["method", "seconds", "speed-up", "accuracy in the end", "highest"],
        rows,
    )


def reached(points: list[Point], accuracy: float) -> float | None:
    """When a curve first is as high, on straight lines between its points; None if it never is."""
    for before, after in zip([None, *points], points, strict=False):
        if after.accuracy >= accuracy:
            if before is None:
                return after.seconds
            xs, ys = (before.seconds, after.seconds), (before.accuracy, after.accuracy)
            return float(np.interp(accuracy, ys, xs))
    return None
