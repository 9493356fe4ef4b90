"""Split training data into training samples and validation samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import scratch
from umpteen.softmax.prediction import Answers
from umpteen.splitting import validation_split
from umpteen.validation import Features

_FEWEST = 20  # samples that are split at all
_MOST_SAMPLES, _MOST_SCORES = 2_000, 2e8  # of the validation split


class ValidationScore(NamedTuple):
    """The precision at 1, and the frequency discount that reaches it."""

    precision: float
    discount: float


@dataclass(frozen=True, eq=False)
class Samples:
    """Features and labels of some samples."""

    X: Features
    Y: csr_matrix

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each label occurs."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1])

    def evaluate(self, answers: Answers, discounts: Sequence[float]) -> ValidationScore:
        """Return the best precision at 1 over some frequency discounts."""
        rows = np.arange(len(self))
        found = [
            float(np.asarray(self.Y[rows, best] != 0).mean())
            for best in answers.best_by_discount(self.X, discounts)
        ]
        best = int(np.argmax(found))
        return ValidationScore(found[best], float(discounts[best]))


def split_samples(
    X: Features, Y: csr_matrix, fraction: float, seed: int
) -> tuple[Samples, Samples | None]:
    """Return training and validation samples; all labels of the latter occur in the former.

    At most 2,000 samples are for validation. Of fewer than 20 samples, none are: None.
    """
    most = int(min(fraction * X.shape[0], _MOST_SAMPLES, max(200, _MOST_SCORES // Y.shape[1])))
    drawn = validation_split(X, Y, seed, fraction=fraction, most=most, fewest=_FEWEST)
    if drawn is None:
        return Samples(X, Y), None
    seen = np.bincount(Y[~drawn].indices, minlength=Y.shape[1]) > 0
    n_labels = np.diff(Y.indptr)
    drawn &= (n_labels > 0) & (Y @ seen == n_labels)
    if not drawn.any():
        return Samples(X, Y), None
    return Samples(scratch.rows_at(X, ~drawn), Y[~drawn]), Samples(X[drawn], Y[drawn])
