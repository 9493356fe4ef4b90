"""From a classifier's scores to probabilities, learned on samples that it has not seen."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from umpteen.base import TopK
from umpteen.metrics.hits import found_in
from umpteen.storage import NotEmpty, Shape, Within, storable

RANKS = 20  # answers per sample that take part
_FEWEST_ANSWERS = 20  # per step of the isotonic curve
_FEWEST_STEPS, _MOST_STEPS = 10, 200  # few answers are better cut too fine than all alike
_MOST = 1e100  # of stored numbers: beyond, sums of products would be NaN
_POSSIBLE = Within(1e-300, 1 - 1e-15)  # probabilities that have log-odds
_LARGEST = 13.0  # margin: its probability is below 1 also in 32 bits and in six digits

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@storable
@dataclass(eq=False, frozen=True)
class Calibration:
    """A score's probability of being right, given the other scores of the same sample.

    Two steps. An isotonic curve (`knots`, `heights`) takes any score to a first guess `p`. A
    logistic regression then corrects it by how far `p` is below the sample's best guess, and by
    the sum of its guesses: a label among many strong ones is not what it is alone. The order of
    a sample's labels does not change, and different scores get different probabilities.
    """

    knots: Annotated[FloatArray, Shape("steps"), NotEmpty(), Within(-_MOST, _MOST)]
    heights: Annotated[FloatArray, Shape("steps"), _POSSIBLE]
    # of logit p, its distance from the best, log of the sum, and 1
    weights: Annotated[FloatArray, Shape(4), Within(-_MOST, _MOST)]

    @classmethod
    def learn(cls, top: TopK, hits: BoolArray | FloatArray) -> "Calibration":
        """Learn from answers to samples and which of them are right, both (samples, RANKS).

        Instead of true and false, `hits` may have the probability that each answer is right.
        """
        given = top.labels >= 0
        knots, heights = _isotonic_steps(top.scores[given].astype(np.float64), hits[given])
        first = cls(knots, heights, np.array([1.0, 0.0, 0.0, 0.0]))
        if hits[given].min() == 1 or hits[given].max() == 0:
            return first
        evidence = np.stack(np.broadcast_arrays(*first._evidence(top)), axis=-1)[given]
        model = _logistic(evidence, hits[given])
        weights = np.append(model.coef_[0], model.intercept_[0])
        return cls(knots, heights, weights) if weights[0] + weights[1] > 0 else first

    def __call__(self, top: TopK) -> TopK:
        """The same answers with probabilities for scores."""
        if top.labels.size == 0:
            return top
        probabilities = self._probabilities(*self._evidence(top))
        distinct = _falling(probabilities.astype(np.float32), top.scores)
        return TopK(top.labels, np.where(top.labels >= 0, distinct, -np.inf))

    def of_scores(
        self, scores: FloatArray, samples: npt.NDArray[np.int64], top: TopK
    ) -> FloatArray:
        """Return probabilities of any labels' scores, given the best answers to their samples."""
        best, _, total = self._evidence(top)
        margin = self._margin(scores, np.interp(scores, self.knots, self.heights))
        return self._probabilities(margin, margin - best[samples, 0], total[samples, 0])

    def _probabilities(
        self, margin: FloatArray, distance: FloatArray, total: FloatArray
    ) -> FloatArray:
        own, other, among, constant = self.weights
        margins = own * margin + other * distance + among * total + constant
        return np.asarray(expit(np.clip(margins, -_LARGEST, _LARGEST)))

    def _evidence(self, top: TopK) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What the logistic regression looks at, (samples, k) and (samples, 1)."""
        given = top.labels >= 0
        scores = np.where(given, top.scores, 0).astype(np.float64)
        guess = np.interp(scores, self.knots, self.heights)
        total = np.log(np.where(given, guess, 0)[:, :RANKS].sum(axis=1, keepdims=True) + 1e-9)
        margin = self._margin(scores, guess)
        return margin, margin - margin[:, :1], total

    def _margin(self, scores: FloatArray, guess: FloatArray) -> FloatArray:
        first, last = self.knots[0], self.knots[-1]
        beyond = (scores - np.clip(scores, first, last)) / ((last - first) or 1.0)
        return np.asarray(logit(guess) + beyond)  # rises beyond the ends as well


@storable
@dataclass(eq=False, frozen=True)
class ValidatedAnswers:
    """Answers to the validation split: labels, probabilities, and which are right."""

    labels: Annotated[npt.NDArray[np.int32], Shape("samples", "k"), Within(-1, "labels")]
    probabilities: Annotated[npt.NDArray[np.float32], Shape("samples", "k")]
    hits: Annotated[npt.NDArray[np.bool_], Shape("samples", "k")]
    n_relevant: Annotated[npt.NDArray[np.int64], Shape("labels")]  # samples of each label

    @classmethod
    def of(cls, top: TopK, Y: csr_matrix) -> "ValidatedAnswers":
        """Return the answers and probabilities that count, with the right labels."""
        n_relevant = np.bincount(Y.indices, minlength=Y.shape[1])
        return cls(top.labels, top.scores, found_in(Y, top.labels), n_relevant)

    @cached_property
    def tuned(self) -> dict[str, Any]:
        """Thresholds that were chosen on these answers, by their metric."""
        return {}

    def without(self, labels: npt.NDArray[np.int32]) -> "ValidatedAnswers":
        """Return the same as if some labels were neither answered nor relevant."""
        gone = np.isin(self.labels, labels)
        n_relevant = self.n_relevant.copy()
        n_relevant[labels] = 0
        return ValidatedAnswers(
            np.where(gone, -1, self.labels), self.probabilities, self.hits & ~gone, n_relevant
        )


def calibrated(top: TopK, Y: csr_matrix) -> tuple[Calibration | None, ValidatedAnswers | None]:
    """Return what scores mean, and the probabilities, from answers to a validation split.

    If no sample got an answer, nothing can be learned.
    """
    top = top.padded(RANKS)
    if not (top.labels >= 0).any():
        return None, None
    calibration = Calibration.learn(top, found_in(Y, top.labels))
    return calibration, ValidatedAnswers.of(calibration(top), Y)


def _falling(
    probabilities: npt.NDArray[np.float32], scores: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Lowered to the next number of 32 bits where a score falls and its probability does not.

    So that equal ones, which are to stand by label id, are those of equal scores. The bits of
    positive numbers, read as whole numbers, are in the order of the numbers.
    """
    falls = np.zeros(scores.shape, bool)
    falls[:, 1:] = scores[:, 1:] < scores[:, :-1]
    n_falls = np.cumsum(falls, axis=1)
    bits = probabilities.view(np.int32) + n_falls
    lowest = np.minimum.accumulate(bits, axis=1) - n_falls
    return np.asarray(lowest, np.int32).view(np.float32)


def _logistic(evidence: FloatArray, hits: BoolArray | FloatArray) -> LogisticRegression:
    """A regression on answers that are right, wrong, or right by some probability."""
    model = LogisticRegression(C=10.0, max_iter=1000)
    if hits.dtype == np.bool_:
        return model.fit(evidence, hits)
    is_right = np.repeat([True, False], len(hits))
    weights = np.concatenate([hits, 1 - hits])
    return model.fit(np.concatenate([evidence, evidence]), is_right, sample_weight=weights)


def _isotonic_steps(
    scores: FloatArray, hits: BoolArray | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Scores and the shares of right answers near them, both rising.

    Between steps the curve is drawn straight, so that different scores stay different, and no
    step claims certainty: half a right and half a wrong answer are added to each.
    """
    order = np.argsort(scores, kind="stable")
    fewest = min(len(order), _FEWEST_STEPS)
    n_steps = int(np.clip(len(order) // _FEWEST_ANSWERS, fewest, _MOST_STEPS))
    bins = np.array_split(order, n_steps)
    sizes = np.array([len(rows) for rows in bins])
    means = np.array([scores[rows].mean() for rows in bins])
    shares = np.array([hits[rows].mean() for rows in bins])
    rising = IsotonicRegression().fit_transform(means, shares, sample_weight=sizes)
    _, block = np.unique(rising, return_inverse=True)
    size = np.bincount(block, sizes)
    knots = np.bincount(block, means * sizes) / size
    heights = (np.bincount(block, shares * sizes) + 0.5) / (size + 1)
    return knots, np.maximum.accumulate(heights)
