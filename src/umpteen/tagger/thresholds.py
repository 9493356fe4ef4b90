"""From which probability on a label is given, for the purpose that a person has."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from umpteen.base import TopK
from umpteen.errors import ParameterError
from umpteen.storage import Shape, storable
from umpteen.tagger.calibration import ValidatedAnswers

Threshold = float | str | None

METRICS = ("micro_f1", "macro_f1", "precision@0.9", "recall@0.8")
_FEWEST_GIVEN = 20  # answers that a promise of precision rests on at least
_AT = re.compile(r"(precision|recall)@(0?\.\d+|1(?:\.0*)?)")

FloatArray = npt.NDArray[np.float64]


@storable
@dataclass(eq=False, frozen=True)
class Thresholds:
    """`least` for all labels, or one `per_label`; what `metric` reached in validation."""

    metric: str
    least: float
    reached: float
    per_label: Annotated[npt.NDArray[np.float32], Shape("labels")] | None = None

    def apply(self, top: TopK, min_labels: int = 0) -> TopK:
        """Take away the answers below their threshold."""
        least: float | npt.NDArray[np.float32] = self.least
        if self.per_label is not None:
            least = self.per_label[np.maximum(top.labels, 0)]
        return top.cut(least, min_labels)

    def __str__(self) -> str:
        own = "" if self.per_label is None else " (a threshold for each label)"
        return (
            f"{self.metric} {self.reached:.3f} on the validation split, from {self.least:.3f}{own}"
        )


def check_min_labels(min_labels: Any, k: int | None) -> int:
    """Return a whole number from 0 to `k`."""
    is_number = isinstance(min_labels, int | np.integer) and not isinstance(min_labels, bool)
    if not is_number or min_labels < 0:
        raise ParameterError(f"min_labels={min_labels!r} is not possible: give 0 or more")
    if isinstance(k, int | np.integer) and min_labels > max(k, 0):
        raise ParameterError(
            f"min_labels={min_labels} asks for more labels than k={k} allows: raise k"
        )
    return int(min_labels)


def cut_as_asked(
    top: TopK, threshold: Threshold, min_labels: int, tuned: Thresholds | None,
    validated: ValidatedAnswers | None,
) -> TopK:  # fmt: skip
    """Take away the answers of a tagger that a threshold in any of its forms leaves out."""
    if threshold is None:
        return top
    if threshold == "tuned":
        if tuned is None:
            raise ParameterError("threshold='tuned' needs tune_thresholds(...) first")
        return tuned.apply(top, min_labels)
    if isinstance(threshold, str):
        return _tuned_once(threshold, _for_goal(threshold, validated)).apply(top, min_labels)
    is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if not is_number or not 0 <= threshold <= 1:
        raise ParameterError(
            f"threshold={threshold!r} is not a probability between 0 and 1, such as 0.7"
        )
    return top.cut(float(threshold), min_labels)


def _for_goal(threshold: str, validated: ValidatedAnswers | None) -> ValidatedAnswers:
    """Return the answers that the goal of a threshold is reached on."""
    if not is_metric(threshold):
        raise ParameterError(
            f"threshold={threshold!r} is not possible; expected a probability such as 0.7, "
            f"'tuned', or one of {', '.join(METRICS)} (with any share between 0 and 1)"
        )
    if validated is None:
        raise ParameterError(
            f"threshold={threshold!r} needs a validation split, and this tagger was fitted without "
            f"one: call tune_thresholds({threshold!r}, texts, labels) with texts that it did not "
            "learn from, and use threshold='tuned'"
        )
    return validated


def check_validated(validated: ValidatedAnswers | None) -> ValidatedAnswers:
    """Return the answers to the validation split, if there was one."""
    if validated is None:
        raise ParameterError(
            "this tagger was fitted without a validation split: give texts and labels that it did "
            "not learn from"
        )
    return validated


def _tuned_once(metric: str, validated: ValidatedAnswers) -> Thresholds:
    """As `tune`, which takes its time where there are many labels."""
    if metric not in validated.tuned:
        validated.tuned[metric] = tune(metric, validated)
    found: Thresholds = validated.tuned[metric]
    return found


def is_metric(name: str) -> bool:
    """Return whether thresholds can be tuned for a metric of that name.

    >>> is_metric("precision@0.75"), is_metric("0,7")
    (True, False)
    """
    return name in METRICS or _AT.fullmatch(name) is not None


def tune(metric: str, validated: ValidatedAnswers) -> Thresholds:
    """Return the thresholds that are best for a metric on the validation split."""
    if not (validated.labels >= 0).any():
        raise ParameterError(
            "no text to tune on gets any label: are there texts with words of the vocabulary?"
        )
    curve = _Curve.of(validated)
    if metric == "micro_f1":
        return _best(metric, curve, curve.f1())
    if metric == "macro_f1":
        return _per_label(validated)
    wanted = _AT.fullmatch(metric)
    if wanted is None:
        raise ParameterError(
            f"metric={metric!r} is not known; expected one of {', '.join(METRICS)} (with any "
            "share between 0 and 1)"
        )
    return _reaching(metric, curve, wanted[1], float(wanted[2]))


@dataclass(frozen=True)
class _Curve:
    """For every threshold, from high to low: labels given and right, of all that are relevant."""

    thresholds: FloatArray
    given: FloatArray
    right: FloatArray
    relevant: int

    @classmethod
    def of(cls, validated: ValidatedAnswers) -> "_Curve":
        answered = validated.labels >= 0
        probabilities = validated.probabilities[answered].astype(np.float64)
        order = np.argsort(-probabilities, kind="stable")
        right = np.cumsum(validated.hits[answered][order])
        last = np.append(np.diff(probabilities[order]) != 0, True)
        given = np.arange(1, len(order) + 1)[last]
        return cls(probabilities[order][last], given, right[last], int(validated.n_relevant.sum()))

    def f1(self) -> FloatArray:
        return 2 * self.right / (self.given + self.relevant)

    def precision(self) -> FloatArray:
        return self.right / self.given

    def recall(self) -> FloatArray:
        return self.right / max(self.relevant, 1)


def _best(metric: str, curve: _Curve, values: FloatArray) -> Thresholds:
    at = int(np.argmax(values))
    return Thresholds(metric, float(curve.thresholds[at]), float(values[at]))


def _reaching(metric: str, curve: _Curve, name: str, share: float) -> Thresholds:
    """Precision: as many labels as possible while it holds. Recall: as few as are needed."""
    of: Callable[[_Curve], FloatArray] = getattr(_Curve, name)
    values = of(curve)
    enough = np.flatnonzero(values >= share)
    if name == "precision":  # a few may be right by chance
        sure = enough[curve.given[enough] >= _FEWEST_GIVEN]
        enough = sure if len(sure) else enough
    if len(enough) == 0:
        best = f"the best is {values.max(initial=0):.3f}"
        raise ParameterError(f"{metric} cannot be reached on these samples: {best}")
    at = int(enough[-1] if name == "precision" else enough[0])
    return Thresholds(metric, float(curve.thresholds[at]), float(values[at]))


def _per_label(validated: ValidatedAnswers) -> Thresholds:
    """Each label's threshold of highest F1.

    A rare label has too few validation samples to trust: its right answers are therefore counted
    half as seen and half as its probabilities promise. Labels that were never answered get the
    median of the others.
    """
    answered = validated.labels >= 0
    labels, p = validated.labels[answered], validated.probabilities[answered].astype(np.float64)
    order = np.lexsort((-p, labels))
    labels, p, hits = labels[order], p[order], validated.hits[answered][order]
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    sizes = np.diff(np.append(starts, len(labels)))
    right = _running_sums((hits + p) / 2, starts, sizes)
    n_relevant = validated.n_relevant[labels[starts]]
    relevant = np.maximum((n_relevant + np.add.reduceat(p, starts)) / 2, 1e-9)
    given = np.arange(len(labels)) - np.repeat(starts, sizes) + 1
    f1 = 2 * right / (given + np.repeat(relevant, sizes))
    f1[:-1][(p[1:] == p[:-1]) & (labels[1:] == labels[:-1])] = -1  # equal ones are given together
    best = np.lexsort((-f1, labels))[starts]
    per_label = np.full(len(validated.n_relevant), np.median(p[best]), np.float32)
    per_label[labels[starts]] = p[best]
    seen_right = _running_sums(hits.astype(np.float64), starts, sizes)[best]
    reached = 2 * seen_right / (given[best] + n_relevant)
    n_labels = max(int(np.count_nonzero(validated.n_relevant)), 1)
    macro = float(reached[n_relevant > 0].sum()) / n_labels
    return Thresholds("macro_f1", float(np.median(p[best])), macro, per_label)


def _running_sums(
    values: FloatArray, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> FloatArray:
    """Cumulative sums that begin anew at each start."""
    total = np.cumsum(values)
    before = total[starts] - values[starts]
    return total - np.repeat(before, sizes)
