"""From scores to probabilities where labels are known only for groups of texts."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen import scratch
from umpteen.aggregated import Eagle
from umpteen.base import TopK
from umpteen.tagger.calibration import RANKS, Calibration, ValidatedAnswers
from umpteen.tagger.whose_labels import Claims, FloatArray

_SHARE, _MOST_TEXTS = 0.1, 5_000  # of the validation groups
_FEWEST_TEXTS, _FEWEST_GROUPS = 50, 20
_MOST_STEPS, _SETTLED = 30, 5e-4  # of expectation and maximization: mean change of a share
_FIRST_GUESS, _MISSED = 0.5, 0.1  # of an answer to be right, and of labels outside the answers


def calibrated_by_groups(
    eagle: Eagle, X: csr_matrix, groups: csr_matrix, group_labels: csr_matrix, seed: int
) -> tuple[Calibration | None, ValidatedAnswers | None]:
    """Return what scores mean, and answers to validation groups by a model without them.

    Groups that share a text with a validation group are left out of its training. Which answers
    are right is not known: it is drawn by their probability, given the labels of the groups.
    """
    split = _validation_groups(groups, seed)
    held = groups[split].getnnz(axis=0) > 0
    kept = ~split & (groups @ held.astype(np.float32) == 0)
    if not split.any() or group_labels[kept].nnz == 0 or group_labels[split].nnz == 0:
        return None, None
    learned = groups[kept].getnnz(axis=0) > 0
    trial = clone(eagle).fit(
        scratch.rows_at(X, learned),
        groups=groups[kept][:, learned],
        group_labels=group_labels[kept],
    )
    top = trial.predict_topk(X[held], RANKS).padded(RANKS)
    if not (top.labels >= 0).any():
        return None, None
    evidence = GroupEvidence.of(
        top, groups[split][:, held], group_labels[split], trial.samples_per_label_
    )
    calibration, shares = evidence.explained()
    hits, claims = shares[: top.labels.size], evidence.claims
    carriers = claims.counts if claims.exact else claims.total(shares)
    n_relevant = np.bincount(group_labels[split].indices, carriers, group_labels.shape[1])
    drawn = np.random.default_rng(seed).random(len(hits)) < hits
    answered = calibration(top)
    return calibration, ValidatedAnswers(
        answered.labels, answered.scores, drawn.reshape(top.labels.shape),
        np.rint(n_relevant).astype(np.int64),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class GroupEvidence:
    """Answers to the texts of groups, and what the groups' labels say about them.

    The claims are those of all answers, row by row, and then for each label of each group one of
    the texts whose answers do not have it: `unanswered` is the number of such texts, times the
    frequency of the label.
    """

    top: TopK
    claims: Claims
    unanswered: FloatArray

    @classmethod
    def of(
        cls, top: TopK, groups: csr_matrix, group_labels: csr_matrix, samples_per_label: str
    ) -> Self:
        """Return the evidence; a text of several groups counts in the first of them."""
        own = csr_matrix(groups.T.tocsr())
        group_of = own.indices[own.indptr[:-1]].astype(np.int64)
        if samples_per_label == "one":
            group_labels = csr_matrix(group_labels.astype(bool), dtype=np.float32)
        claims = Claims.of(
            np.repeat(group_of, top.k), top.labels.ravel().astype(np.int64), group_labels,
            exact=samples_per_label != "estimate",
        )  # fmt: skip
        sizes = np.bincount(group_of, minlength=groups.shape[0])
        pairs = np.arange(group_labels.nnz)
        group = np.repeat(np.arange(groups.shape[0]), np.diff(group_labels.indptr))
        n_silent = np.maximum(sizes[group] - claims.total(np.ones(top.labels.size)), 0)
        frequency = np.asarray(group_labels.sum(axis=0)).ravel() / len(group_of)
        unanswered = n_silent * frequency[group_labels.indices]
        return cls(top, replace(claims, pair=np.append(claims.pair, pairs)), unanswered)

    def explained(self) -> tuple[Calibration, FloatArray]:
        """Return the calibration that explains the groups' labels, and the share of each claim.

        Expectation and maximization. Answers are right by the share that their group's labels
        leave them; that gives a calibration and the share of labels that the answers miss; and
        their probabilities give new shares.
        """
        size, is_answer = self.top.labels.size, self.top.labels.ravel() >= 0
        p, missed = np.where(is_answer, _FIRST_GUESS, 0.0), _MISSED
        shares = np.zeros(len(self.claims.pair))
        for _ in range(_MOST_STEPS):
            outside = np.minimum(missed * self.unanswered, _FIRST_GUESS)
            before, shares = shares, self.claims.shares(np.append(p, outside))
            calibration = Calibration.learn(self.top, shares[:size].reshape(self.top.labels.shape))
            if np.abs(shares - before).mean() < _SETTLED:
                break
            p = np.where(is_answer, calibration(self.top).scores.ravel(), 0.0).astype(np.float64)
            missed = shares[size:].sum() / max(shares.sum(), 1.0)
        return calibration, shares


def _validation_groups(groups: csr_matrix, seed: int) -> npt.NDArray[np.bool_]:
    """A random tenth of the groups as a mask; none where there are too few."""
    n_groups, n_texts = groups.shape
    drawn = np.zeros(n_groups, bool)
    if n_texts >= _FEWEST_TEXTS and n_groups >= _FEWEST_GROUPS:
        order = np.random.default_rng(seed).permutation(n_groups)
        n_drawn = np.cumsum(np.diff(groups.indptr)[order])
        drawn[order[n_drawn <= min(_SHARE * n_texts, _MOST_TEXTS)]] = True
    return drawn
