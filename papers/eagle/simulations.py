"""The simulations of Section 7.1 and Appendix B.1, on data made up as the paper says."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from papers.eagle.theory import (
    FloatArray,
    assigned,
    least_squares,
    no_assignment,
    with_assignment,
)

DEVIATIONS = (0.0, 0.1, 1.0, 5.0, 10.0)
N_TEST = 10_000


@dataclass(frozen=True)
class Size:
    """The paper's sizes."""

    n_samples: int = 1000
    group_size: int = 10
    n_features: int = 10
    n_labels: int = 5

    @property
    def n_groups(self) -> int:
        """Groups of equally many samples."""
        return self.n_samples // self.group_size

    def groups(self) -> csr_matrix:
        """Neighbours form a group, `(n_groups, n_samples)`."""
        return csr_matrix(np.kron(np.eye(self.n_groups), np.ones(self.group_size)))


PAPER = Size()


@dataclass(frozen=True)
class Outcome:
    """Errors of the three estimators in one run, and the share of outputs put to their sample."""

    oracle: float
    no_assignment: float
    with_assignment: float
    rightly_assigned: float


def regression(
    within: float, rng: np.random.Generator, size: Size = PAPER, between: float = 1.0
) -> Outcome:
    """Figure 3: errors are root mean squares of the coefficients' errors.

    Centres of groups deviate by `between`, samples from their centre by `within`, outputs by 1;
    the true coefficients are random, with spectral norm 1.
    """
    true = rng.standard_normal((size.n_features, size.n_labels))
    true /= np.linalg.norm(true, 2)
    centres = between * rng.standard_normal((size.n_groups, size.n_features))
    X = np.repeat(centres, size.group_size, axis=0)
    X += within * rng.standard_normal(X.shape)
    Z = X @ true + rng.standard_normal((len(X), size.n_labels))
    groups = size.groups()
    start = no_assignment(X, Z, groups)
    chosen = assigned(X, Z, groups, start)

    def error(coefficients: FloatArray) -> float:
        return float(np.sqrt(np.mean((coefficients - true) ** 2)))

    return Outcome(
        error(least_squares(X, Z)),
        error(start),
        error(with_assignment(X, Z, groups, start)),
        rightly_assigned=float((chosen == np.arange(len(X))).mean()),
    )


def classification(
    sameness: float,
    rng: np.random.Generator,
    size: Size = PAPER,
    length: float = 1.0,
    noise: float = 0.1,
) -> Outcome:
    """Figure 6, right: errors are shares of wrong answers on new samples of even labels.

    Each group prefers one random label by the factor exp(`sameness`); the print's prior does
    not add up to 1. Samples are a label's embedding, of the given `length`, with `noise`; their
    label is the one with the largest inner product. NoAS, which the paper leaves open, learns
    from the share that each label has in a sample's group. An assignment is right if the
    sample has the label.
    """
    embeddings = rng.standard_normal((size.n_labels, size.n_features))
    embeddings *= length / np.linalg.norm(embeddings, axis=1, keepdims=True)
    X, labels = _samples(rng, embeddings, _drawn(rng, sameness, size), noise)
    Z, groups = np.eye(size.n_labels)[labels], size.groups()
    shares = groups.T @ (groups @ Z) / size.group_size  # (samples, labels)
    start = least_squares(X, shares)
    chosen = assigned(X, Z, groups, start)
    even = rng.integers(size.n_labels, size=N_TEST)
    X_test, labels_test = _samples(rng, embeddings, even, noise)

    def error(coefficients: FloatArray) -> float:
        return float(((X_test @ coefficients).argmax(axis=1) != labels_test).mean())

    return Outcome(
        error(least_squares(X, Z)),
        error(start),
        error(with_assignment(X, Z, groups, start)),
        rightly_assigned=float((labels[chosen] == labels).mean()),
    )


def prior(sameness: float, preferred: int, n_labels: int) -> FloatArray:
    """How likely each label is in a group that prefers one.

    >>> prior(0.0, preferred=1, n_labels=4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    weights: FloatArray = np.ones(n_labels)
    weights[preferred] = np.exp(sameness)
    weights /= weights.sum()
    return weights


def _drawn(rng: np.random.Generator, sameness: float, size: Size) -> npt.NDArray[np.int64]:
    """The embedding that each sample of each group is drawn around."""
    preferred = rng.integers(size.n_labels, size=size.n_groups)
    drawn = [
        rng.choice(size.n_labels, size.group_size, p=prior(sameness, label, size.n_labels))
        for label in preferred.tolist()
    ]
    return np.concatenate(drawn)


def _samples(
    rng: np.random.Generator, embeddings: FloatArray, around: npt.NDArray[np.int64], noise: float
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    X = embeddings[around] + noise * rng.standard_normal((len(around), embeddings.shape[1]))
    return X, (X @ embeddings.T).argmax(axis=1)
