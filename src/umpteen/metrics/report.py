"""All metrics at once, as a table, a dictionary or a picture."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from html import escape
from os import PathLike
from typing import Any

import numpy as np
from rich.console import Group

from umpteen.base import TopK
from umpteen.errors import LabelsError
from umpteen.metrics import figure, frequency, macro, ranking, tables
from umpteen.metrics.frequency import LabelGroup
from umpteen.metrics.hits import Hits, judge
from umpteen.metrics.inputs import check_ks, check_pair
from umpteen.metrics.propensity import Scored, psndcg, psp
from umpteen.metrics.propensity import propensity as propensity_of

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


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """How good answers are; `print` it, or see `metrics`, `to_dict` and `plot`.

    `metrics` has a name for each number, such as `"precision@1"`, `"nDCG@5"`, `"PSP@3"`.
    `bands` (head, torso, tail) and `deciles` group labels by their training frequency.
    """

    ks: tuple[int, ...]
    metrics: dict[str, float]
    n_samples: int
    n_labels: int
    n_samples_without_labels: int
    n_unseen_labels: int | None = None
    bands: list[LabelGroup] = field(default_factory=list)
    deciles: list[LabelGroup] = field(default_factory=list)

    @property
    def metric_names(self) -> list[str]:
        """The metrics without their k, in the order of the table."""
        return list(dict.fromkeys(key.rpartition("@")[0] for key in self.metrics))

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain types, ready for JSON."""
        return {**asdict(self), "ks": list(self.ks)}

    def plot(self, path: str | PathLike[str]) -> None:
        """Save a picture of the report; the suffix (.png, .svg, .pdf) chooses the format."""
        figure.save(self, path)

    def __rich__(self) -> Group:
        return tables.render(self)

    def __str__(self) -> str:
        return tables.as_text(self)

    def __repr__(self) -> str:
        first = ", ".join(f"{name}={value:.4f}" for name, value in list(self.metrics.items())[:3])
        return f"Report(n_samples={self.n_samples}, n_labels={self.n_labels}, {first}, ...)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def evaluate(
    top: Any,
    Y_test: Any,
    Y_train: Any = None,
    *,
    ks: Iterable[int] = (1, 3, 5),
    a: float = 0.55,
    b: float = 1.5,
    propensity: Any = None,
) -> Report:
    """Everything about the answers `top` to samples whose labels are `Y_test`.

    With `Y_train`, also the metrics scored by propensity (`a` and `b` are its constants, see
    `propensity`; or give the propensities themselves) and labels grouped by their frequency.

    >>> top = TopK(labels=[[0, 1], [2, 0]], scores=[[0.9, 0.5], [0.8, 0.1]])
    >>> report = evaluate(top, [[0], [1, 2]], [[0], [0], [0, 1], [2]], ks=(1, 2))
    >>> round(report.metrics["recall@2"], 4), round(report.metrics["PSP@2"], 4)
    (0.75, 0.6579)
    """
    if isinstance(Y_test, TopK):
        raise LabelsError("Y_test is a TopK: evaluate takes (top, Y_test, Y_train)")
    ks = check_ks(ks)
    counts = None
    if Y_train is not None:
        Y_test, Y_train = check_pair(Y_test, Y_train, ("Y_test", "Y_train"))
        counts = np.bincount(Y_train.indices, minlength=Y_train.shape[1])
        propensity = propensity_of(Y_train, a, b) if propensity is None else propensity
    hits = judge(Y_test, top, ks, None if propensity is None else np.size(propensity))
    return _report(hits, tuple(ks), propensity, counts)


def _report(hits: Hits, ks: tuple[int, ...], propensity: Any, counts: Any) -> Report:
    metrics = {f"{name}@{k}": of(hits, k) for name, of in _PER_SAMPLE.items() for k in ks}
    if propensity is not None:
        scored = Scored.of(hits, propensity)
        metrics |= {f"{name}@{k}": of(scored, k) for name, of in _SCORED.items() for k in ks}
    metrics |= {f"{name}@{k}": of(hits, k) for name, of in _PER_LABEL.items() for k in ks}
    report = Report(
        ks=ks,
        metrics=metrics,
        n_samples=len(hits),
        n_labels=hits.relevant.shape[1],
        n_samples_without_labels=len(hits) - hits.n_labelled,
    )
    return report if counts is None else _with_groups(report, hits, counts)


def _with_groups(report: Report, hits: Hits, counts: Any) -> Report:
    unseen = np.count_nonzero((counts == 0) & (hits.relevant_per_label > 0))
    return replace(
        report,
        n_unseen_labels=int(unseen),
        bands=frequency.bands(hits, counts, max(report.ks)),
        deciles=frequency.deciles(hits, counts, max(report.ks)),
    )
