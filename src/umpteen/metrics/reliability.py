"""Whether a probability means what it says: of the answers given with 0.8, are 80 % right?

All count the answers that were given, so labels below the last of the k best do not come in.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.errors import ParameterError
from umpteen.metrics.hits import Hits, find_hits
from umpteen.metrics.inputs import check_answers, n_answers
from umpteen.metrics.ranking import ratio
from umpteen.validation import check_k

THRESHOLDS = (0.5, 0.7, 0.9)
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Bin:
    """Answers with a probability from `low` up to, not including, `high`; the last includes 1."""

    low: float
    high: float
    count: int
    mean_probability: float
    share_right: float


@dataclass(frozen=True)
class Reliability:
    """Answers grouped by their probability, and by how much the probabilities are off.

    `expected_calibration_error` is the distance of a bin's mean probability from its share of
    right answers, averaged over the answers.
    """

    bins: list[Bin]
    expected_calibration_error: float


@dataclass(frozen=True)
class AtThreshold:
    """What remains if only answers with at least this probability are given.

    `precision` is the share of them that is right, `recall` the share of all relevant pairs of
    a sample and a label that is among them.
    """

    threshold: float
    precision: float
    recall: float
    labels_per_sample: float


def reliability(probabilities: Any, hits: Any, n_bins: int = 10) -> Reliability:
    """Return mean probability and share of right answers, in bins of equal width from 0 to 1.

    `hits` says which of the answers are right, in the same shape as `probabilities`. A bin
    without answers has count 0.

    >>> for group in reliability([0.1, 0.3, 0.9, 0.7], [False, True, True, True], n_bins=2).bins:
    ...     print(group.count, round(group.mean_probability, 2), group.share_right)
    2 0.2 0.5
    2 0.8 1.0
    """
    values, right = _checked(probabilities, hits)
    edges = np.arange(check_k(n_bins, "n_bins") + 1) / n_bins
    inner = edges[1:-1].astype(values.dtype)  # in the precision that the probabilities have
    place = np.searchsorted(inner, values, side="right")
    count = np.bincount(place, minlength=n_bins)
    mean = np.bincount(place, values, n_bins) / np.maximum(count, 1)
    share = np.bincount(place, right, n_bins) / np.maximum(count, 1)
    error = float((count * np.abs(mean - share)).sum() / max(len(values), 1))
    columns = (edges[:-1], edges[1:], count, mean, share)
    bins = zip(*(column.tolist() for column in columns), strict=True)
    return Reliability([Bin(*values) for values in bins], error)


def expected_calibration_error(probabilities: Any, hits: Any, n_bins: int = 10) -> float:
    """Return the mean distance of probabilities from the share of right answers; 0 is best.

    >>> round(expected_calibration_error([0.1, 0.3, 0.9, 0.7], [False, True, True, True], 2), 4)
    0.25
    """
    return reliability(probabilities, hits, n_bins).expected_calibration_error


def precision_at_thresholds(Y: Any, top: Any, thresholds: Any = THRESHOLDS) -> list[AtThreshold]:
    """Return precision and recall of the answers whose probability reaches each threshold.

    >>> from umpteen import TopK
    >>> top = TopK(labels=[[0, 1], [1, 2]], scores=[[0.9, 0.6], [0.8, 0.2]])
    >>> [(at.precision, at.recall) for at in precision_at_thresholds([[0], [1, 0]], top, [0.5])]
    [(0.6666666666666666, 0.6666666666666666)]
    """
    answers = check_answers(top, n_answers(top))
    return thresholds_of(find_hits(Y, answers, answers.k), answers.scores, thresholds)


def thresholds_of(hits: Hits, scores: Any, thresholds: Any = THRESHOLDS) -> list[AtThreshold]:
    """Return `precision_at_thresholds` of hits and their scores."""
    given = hits.labels >= 0
    check_probabilities(scores[given])
    n_relevant = hits.relevant.nnz
    rows = []
    for threshold in thresholds:
        kept = given & (scores >= scores.dtype.type(threshold))
        n_kept, n_right = int(np.count_nonzero(kept)), int(np.count_nonzero(kept & hits.found))
        per_sample = n_kept / max(len(hits), 1)
        rows.append(
            AtThreshold(
                float(threshold), ratio(n_right, n_kept), ratio(n_right, n_relevant), per_sample
            )
        )
    return rows


def check_probabilities(probabilities: Any) -> npt.NDArray[Any]:
    """Return numbers from 0 to 1 as a flat array; what rounding put outside is put back."""
    values = np.asarray(probabilities).ravel()
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    # not (inside), so that NaN is outside
    if not np.all((values >= -_ROUNDING) & (values <= 1 + _ROUNDING)):
        raise ParameterError(
            f"scores from {values.min():.3g} to {values.max():.3g} are not probabilities, which "
            "are from 0 to 1; calibrate them first, or evaluate with probabilities=False"
        )
    return np.asarray(np.clip(values, 0, 1))


def _checked(probabilities: Any, hits: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    values, right = check_probabilities(probabilities), np.asarray(hits, bool)
    if np.shape(probabilities) != right.shape:
        raise ParameterError(
            f"probabilities have shape {np.shape(probabilities)}, hits {right.shape}; "
            "each probability needs to know whether its answer is right"
        )
    return values, right.ravel()
