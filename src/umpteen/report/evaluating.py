"""From answers to a report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from umpteen.base import TopK
from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.metrics import frequency, macro, ranking
from umpteen.metrics.confusion import Confused, most_confused
from umpteen.metrics.hierarchy import (
    hierarchical_f1_at_k,
    hierarchical_precision_at_k,
    hierarchical_recall_at_k,
)
from umpteen.metrics.hits import Hits, find_hits
from umpteen.metrics.inputs import check_answers, check_ks, check_pair, n_answers
from umpteen.metrics.per_label import label_table
from umpteen.metrics.propensity import LabelCounts, Scored, psndcg, psp
from umpteen.metrics.propensity import propensity as propensity_of
from umpteen.metrics.reliability import reliability, thresholds_of
from umpteen.report.report import Example, Report

_PER_SAMPLE = {
    "precision": ranking.precision,
    "nDCG": ranking.ndcg,
    "recall": ranking.recall,
    "F1": ranking.f1,
}
_SCORED = {"PSP": psp, "PSnDCG": psndcg}
_PER_LABEL = {
    "macro precision": macro.macro_precision,
    "macro recall": macro.macro_recall,
    "macro F1": macro.macro_f1_of_hits,
    "coverage": ranking.coverage,
}
_HIERARCHICAL = {
    "hierarchical precision": hierarchical_precision_at_k,
    "hierarchical recall": hierarchical_recall_at_k,
    "hierarchical F1": hierarchical_f1_at_k,
}


def evaluate(
    top: Any,
    Y_test: Any,
    Y_train: Any = None,
    *,
    ks: Iterable[int] = (1, 3, 5),
    a: float = 0.55,
    b: float = 1.5,
    propensity: Any = None,
    parents: Any = None,
    label_names: Sequence[str] | None = None,
    probabilities: bool = False,
    examples: Iterable[Example] = (),
    title: str = "",
    facts: Mapping[str, Any] | None = None,
) -> Report:
    """Evaluate the answers `top` to samples whose labels are `Y_test`.

    With `Y_train` (or `metrics.LabelCounts` of it), the report also has propensity-scored metrics
    and labels grouped by frequency. `a` and `b` are the constants of `propensity`; you can also
    pass the propensities themselves.
    With `parents` (n_labels, n_labels), the broader labels of each label, it has metrics that give
    credit to relatives.
    With `label_names`, it also has the quality of each label and the most confused labels. With
    `probabilities=True`, scores are probabilities, and the report measures their calibration.
    `examples`, `title` and `facts` are shown on the page (`to_html`).

    >>> top = TopK(labels=[[0, 1], [2, 0]], scores=[[0.9, 0.5], [0.8, 0.1]])
    >>> report = evaluate(top, [[0], [1, 2]], [[0], [0], [0, 1], [2]], ks=(1, 2))
    >>> round(report.metrics["recall@2"], 4), round(report.metrics["PSP@2"], 4)
    (0.75, 0.6579)
    """
    if hasattr(top, "predict_topk"):
        raise LabelsError(
            f"top is a {type(top).__name__}; expected its answers: "
            "evaluate(model.predict_topk(X_test, k=5), Y_test, Y_train). A Tagger has "
            "tagger.evaluate(texts, labels)"
        )
    if isinstance(Y_test, TopK):
        raise LabelsError("Y_test is a TopK: evaluate takes (top, Y_test, Y_train)")
    ks = check_ks(ks)
    counts = None
    if Y_train is not None:
        if not isinstance(Y_train, LabelCounts):
            Y_test, Y_train = check_pair(Y_test, Y_train, ("Y_test", "Y_train"))
            Y_train = LabelCounts.of(Y_train)
        counts = Y_train.counts
        propensity = propensity_of(Y_train, a, b) if propensity is None else propensity
    hits = find_hits(Y_test, top, ks, None if propensity is None else np.size(propensity))
    report = _measured(hits, tuple(ks), propensity, counts)
    if parents is not None:
        credited = {
            f"{name}@{k}": float(of(hits.relevant, top, k, parents))
            for name, of in _HIERARCHICAL.items()
            for k in ks
        }
        report = replace(report, metrics=report.metrics | credited)
    if label_names is not None:
        report = _with_names(report, hits, counts, top, label_names)
    if probabilities:
        report = _with_probabilities(report, hits.relevant, top)
    return replace(report, examples=list(examples), title=title, facts=dict(facts or {}))


def _measured(hits: Hits, ks: tuple[int, ...], propensity: Any, counts: Any) -> Report:
    metrics = {f"{name}@{k}": of(hits, k) for name, of in _PER_SAMPLE.items() for k in ks}
    scored = None if propensity is None else Scored.of(hits, propensity, ks)
    if scored is not None:
        metrics |= {f"{name}@{k}": of(scored, k) for name, of in _SCORED.items() for k in ks}
    metrics |= {f"{name}@{k}": of(hits, k) for name, of in _PER_LABEL.items() for k in ks}
    report = Report(
        ks=ks,
        metrics=metrics,
        n_samples=len(hits),
        n_labels=hits.relevant.shape[1],
        n_samples_without_labels=len(hits) - hits.n_labelled,
    )
    return report if counts is None else _with_groups(report, hits, counts, scored)


def _with_groups(report: Report, hits: Hits, counts: Any, scored: Scored | None) -> Report:
    unseen = np.count_nonzero((counts == 0) & (hits.relevant_per_label > 0))
    return replace(
        report,
        n_unseen_labels=int(unseen),
        bands=frequency.bands(hits, counts, max(report.ks), scored),
        deciles=frequency.deciles(hits, counts, max(report.ks), scored),
    )


def _with_names(
    report: Report, hits: Hits, counts: Any, top: Any, label_names: Sequence[str]
) -> Report:
    if len(label_names) < report.n_labels:
        raise LabelsShapeError(
            f"label_names has {len(label_names):,} names for {report.n_labels:,} labels; "
            "name every label, in the order of the columns of Y"
        )

    def named(pair: Confused) -> Confused:
        given, missed = (str(label_names[int(label)]) for label in (pair.given, pair.missed))
        return replace(pair, given=given, missed=missed)

    return replace(
        report,
        confused=[named(pair) for pair in most_confused(hits.relevant, top)],
        labels=label_table(hits, max(report.ks), counts, label_names),
    )


def _with_probabilities(report: Report, relevant: Any, top: Any) -> Report:
    """Over all answers that were given, however few the report's ks ask for."""
    answers = check_answers(top, n_answers(top))
    hits = find_hits(relevant, answers, answers.k)
    given = answers.labels >= 0
    return replace(
        report,
        reliability=reliability(answers.scores[given], hits.found[given]),
        thresholds=thresholds_of(hits, answers.scores),
    )
