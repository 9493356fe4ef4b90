"""Join the answers of several classifiers, and learn from a validation split how to rank them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import expit

from umpteen.base import TopK
from umpteen.kernels.joining import join_answers
from umpteen.kernels.nearest import merge_nearest
from umpteen.metrics import ndcg_at_k
from umpteen.metrics.hits import found_in
from umpteen.ranking import BoostedTrees
from umpteen.storage import Within, storable

FloatArray = npt.NDArray[np.float32]

PER_MEMBER = 3  # pieces of evidence: see `join_answers`
_LEAST = np.float32(1e-3)  # score of a label that a member does not offer, in a geometric mean
_FEWEST_RELEVANT = 100  # candidates of the validation split that weights are learned from
_K = 5  # labels that rankings are compared by
_CLEARLY = 0.002  # of nDCG, by which one member has to be better than all of them together
_SMOOTHING = 60.0  # of reciprocal ranks: Cormack, Clarke and Buettcher 2009


@dataclass(frozen=True, eq=False)
class Candidates:
    """The labels that any member offers a sample, and what each member says about them."""

    labels: npt.NDArray[np.int32]  # (n, candidates), -1 for none
    evidence: FloatArray  # (n, candidates, members * 3 + 1); last the logarithm of the frequency

    @classmethod
    def of(cls, answers: Sequence[TopK], counts: npt.NDArray[np.int64]) -> "Candidates":
        """Join the answers of all members."""
        k = max(answer.k for answer in answers)
        padded = [answer.padded(k) for answer in answers]
        labels, evidence = join_answers(
            np.stack([answer.labels for answer in padded]),
            np.stack([answer.scores for answer in padded]),
        )
        frequency = np.log1p(counts).astype(np.float32)[labels]
        return cls(labels, np.concatenate([evidence, frequency[..., None]], axis=2))

    def rows(self, chosen: npt.NDArray[np.bool_]) -> "Candidates":
        """Return the candidates of some samples."""
        return Candidates(self.labels[chosen], self.evidence[chosen])

    def without(self, labels: npt.NDArray[np.bool_]) -> "Candidates":
        """Return the candidates but for some labels."""
        return Candidates(np.where(labels[self.labels], -1, self.labels), self.evidence)

    def scores_of(self, member: int) -> FloatArray:
        """Return one member's scores of all candidates."""
        return self.evidence[..., PER_MEMBER * member]

    def reciprocal_ranks(self) -> FloatArray:
        """Return for each member 1 / rank of the candidates, 0 if not offered."""
        return self.evidence[..., PER_MEMBER - 1 : -1 : PER_MEMBER]


@storable
@dataclass(frozen=True, eq=False)
class Combination:
    """How candidates are ranked: by learned weights, by one member, or by their ranks.

    `trees` gives probabilities. With a `partner`, scores are the geometric mean of probability and
    that member's score: a label has to convince both. With `only`, that member decides alone.
    With none of these, scores are the mean over members of 60 / (60 + rank - 1).
    """

    trees: BoostedTrees | None = None
    partner: Annotated[int, Within(-1, 2**15)] = -1
    only: Annotated[int, Within(-1, 2**15)] = -1

    def scores(self, candidates: Candidates, worth: FloatArray | None = None) -> FloatArray:
        """Return the score of each candidate, times the worth of its label, `(n, candidates)`."""
        scores = self._scores(candidates)
        return scores if worth is None else scores * worth[candidates.labels]

    def _scores(self, candidates: Candidates) -> FloatArray:
        if self.only >= 0:
            offered = candidates.reciprocal_ranks()[..., self.only] > 0
            return np.where(offered, candidates.scores_of(self.only), -np.inf).astype(np.float32)
        if self.trees is None:
            ranks = candidates.reciprocal_ranks()
            found = np.where(
                ranks > 0, _SMOOTHING / (_SMOOTHING - 1 + 1 / np.maximum(ranks, 1e-9)), 0
            )
            return np.asarray(found.mean(axis=-1), np.float32)
        chances = expit(self.trees.log_odds(candidates.evidence)).astype(np.float32)
        if self.partner < 0:
            return chances
        return np.sqrt(chances * np.maximum(candidates.scores_of(self.partner), _LEAST))

    def topk(self, candidates: Candidates, k: int, worth: FloatArray | None = None) -> TopK:
        """Return the `k` best candidates of each sample."""
        scores = self.scores(candidates, worth)
        labels = np.where(np.isneginf(scores), -1, candidates.labels)
        return TopK(*merge_nearest(labels, scores, k))


@dataclass(frozen=True, eq=False)
class Choice:
    """The best combination, the nDCG of all that were tried, and its answers.

    Each answer is that of trees which did not learn from the sample.
    """

    combination: Combination
    tried: dict[str, float]
    answers: TopK


def choose(candidates: Candidates, Y: csr_matrix, names: Sequence[str], k: int) -> Choice:
    """Choose how to rank, by the nDCG of answers to a validation split.

    Trees are evaluated on the half of the samples that they did not learn from, then learned again
    from all. One member is kept alone only if it is clearly better than all of them together.
    """
    relevant = found_in(Y, candidates.labels)
    if relevant.sum() < _FEWEST_RELEVANT:
        plain = Combination()
        return Choice(plain, {}, plain.topk(candidates, k))
    half = np.arange(len(candidates.labels)) % 2 == 0
    fitted = [_fitted(candidates, relevant, rows) for rows in (~half, half)]
    partners = [i for i in range(len(names)) if _is_share(candidates.scores_of(i))]
    answers: dict[str, TopK] = {}
    for partner in (-1, *partners):
        both = [Combination(trees, partner) for trees in fitted]
        name = "boosted trees" if partner < 0 else f"boosted trees with {names[partner]}"
        answers[name] = _interleaved(
            both[0].topk(candidates.rows(half), k), both[1].topk(candidates.rows(~half), k)
        )
    together = len(answers)
    for i, name in enumerate(names):
        answers[f"{name} alone"] = Combination(only=i).topk(candidates, k)
    tried = {name: float(ndcg_at_k(Y, top, min(_K, k))) for name, top in answers.items()}
    values = list(tried.values())
    best, single = int(np.argmax(values[:together])), int(np.argmax(values[together:]))
    if values[together + single] > values[best] + _CLEARLY:
        chosen = Combination(only=single)
        best = together + single
    else:
        everyone = np.ones(len(half), bool)
        chosen = Combination(_fitted(candidates, relevant, everyone), (-1, *partners)[best])
    return Choice(chosen, tried, list(answers.values())[best])


def _fitted(
    candidates: Candidates, relevant: npt.NDArray[np.bool_], rows: npt.NDArray[np.bool_]
) -> BoostedTrees:
    there = (candidates.labels >= 0) & rows[:, None]
    return BoostedTrees.fitted(candidates.evidence[there], relevant[there])


def _is_share(scores: FloatArray) -> bool:
    """Whether scores may enter a geometric mean."""
    return bool(scores.min(initial=0) >= 0 and scores.max(initial=0) <= 1.0001)


def _interleaved(even: TopK, odd: TopK) -> TopK:
    n = len(even) + len(odd)
    labels, scores = np.empty((n, even.k), np.int32), np.empty((n, even.k), np.float32)
    labels[::2], labels[1::2], scores[::2], scores[1::2] = (
        even.labels, odd.labels, even.scores, odd.scores,
    )  # fmt: skip
    return TopK(labels, scores)
