"""Training data in two parts: samples to learn from, and samples to judge by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.softmax.prediction import Answers
from umpteen.validation import Features

_FEWEST = 20  # samples of which some can be held out
_MOST_JUDGED, _MOST_SCORES = 2_000, 2e8  # held-out samples, and scores that judging them takes


class Judgement(NamedTuple):
    """Precision at 1, and the discount of frequencies with which it is reached."""

    precision: float
    discount: float


@dataclass(frozen=True, eq=False)
class Part:
    """Some samples and their labels."""

    X: Features
    Y: csr_matrix

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each label occurs."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1])

    def judge(self, answers: Answers, discounts: Sequence[float]) -> Judgement:
        """How often the best label is a relevant one, with the discount that makes it so most."""
        rows = np.arange(len(self))
        found = [
            float(np.asarray(self.Y[rows, best] != 0).mean())
            for best in answers.best_by_discount(self.X, discounts)
        ]
        best = int(np.argmax(found))
        return Judgement(found[best], float(discounts[best]))


def hold_out(X: Features, Y: csr_matrix, fraction: float, seed: int) -> tuple[Part, Part | None]:
    """Samples to learn from, and some to judge by, all of whose labels the former have too."""
    n = X.shape[0]
    n_judged = int(min(fraction * n, _MOST_JUDGED, max(200, _MOST_SCORES // Y.shape[1])))
    if n < _FEWEST or n_judged == 0:
        return Part(X, Y), None
    order = np.random.default_rng(seed).permutation(n)
    held_out, rest = np.sort(order[:n_judged]), np.sort(order[n_judged:])
    seen = Part(X, Y[rest]).counts > 0
    n_labels = np.diff(Y[held_out].indptr)
    known = (n_labels > 0) & (Y[held_out] @ seen == n_labels)
    rest = np.sort(np.concatenate([rest, held_out[~known]]))
    judges = held_out[known]
    return Part(X[rest], Y[rest]), Part(X[judges], Y[judges]) if len(judges) else None
