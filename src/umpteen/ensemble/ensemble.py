"""Ensemble: several classifiers as one."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from umpteen import markup
from umpteen.base import (
    AddsLabels,
    Combines,
    Explains,
    ExtremeClassifier,
    LearnsFromLabelFeatures,
    MatchesLabelNames,
    RemovesLabels,
    StartsFromTokenVectors,
    TopK,
    is_able,
)
from umpteen.ensemble.combining import PER_MEMBER, Candidates, Choice, Combination, choose
from umpteen.errors import ParameterError
from umpteen.metrics.propensity import LabelCounts, label_worth
from umpteen.progress import Verbose, progress_bar
from umpteen.sharding import OnRows, Sharded, over_blocks
from umpteen.splitting import learned_labels, validation_split
from umpteen.storage import Given, NotEmpty, Shape, Sizes, Within
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    check_describes,
    check_features,
    check_k,
    check_label,
    check_labels,
    check_rows,
    check_seed,
)

_BLOCK = 1024  # samples whose candidates are held at a time by each thread

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What `fit` takes besides samples and their labels; each member gets what it can use."""

    label_features: Any = None
    label_names: Any = None
    token_vectors: Any = None

    def usable_by(self, member: Any) -> dict[str, Any]:
        """Return the arguments for a member's `fit`."""
        found: dict[str, Any] = {}
        if self.label_features is not None and is_able(member, LearnsFromLabelFeatures):
            found["label_features"] = self.label_features
            if self.label_names is not None and is_able(member, MatchesLabelNames):
                found["label_names"] = self.label_names
        if self.token_vectors is not None and is_able(member, StartsFromTokenVectors):
            found["token_vectors"] = self.token_vectors
        return found


@dataclass(frozen=True)
class MemberContribution:
    """The contribution of one member to the score of a label.

    `rank` counts from 1, and is None if the member does not propose the label. `contribution` is by
    how much the log-odds of the ensemble would fall if the member had not proposed it.
    """

    member: str
    score: float
    rank: int | None
    contribution: float


@dataclass(frozen=True)
class EnsembleExplanation:
    """Why a sample gets a label from an ensemble."""

    label: int
    score: float
    members: list[MemberContribution]

    def __str__(self) -> str:
        lines = [
            f"  {each.contribution:+.3f}  {each.member}: "
            + (
                "does not offer it"
                if each.rank is None
                else f"score {each.score:.3f}, rank {each.rank}"
            )
            for each in self.members
        ]
        return "\n".join([f"label {self.label}: {self.score:.3f}", *lines])

    def _repr_html_(self) -> str:
        rows = [
            [
                each.member,
                "-" if each.rank is None else each.rank,
                f"{each.score:.3f}",
                each.contribution,
            ]
            for each in self.members
        ]
        caption = f"label {self.label}: {self.score:.3f}"
        headings = ["member", "rank", "score", "contribution"]
        return markup.notebook(markup.contributions(caption, headings, rows))


class Ensemble(
    Combines, MatchesLabelNames, StartsFromTokenVectors, AddsLabels, RemovesLabels, Explains,
    ExtremeClassifier,
):  # fmt: skip
    """An ensemble of several classifiers, whose candidates are ranked by learned weights.

    Each member is fitted on all samples. A model that was not trained on the validation split (a
    tenth of the samples, 5,000 at most, near copies together) also predicts that split. From these
    answers, boosted trees learn the probability that a candidate is relevant, given each member's
    score, its distance from the sample's best score, its rank, and the frequency of the label. The
    geometric mean of that probability and one member's score is tried as well. If one member alone
    has a clearly higher nDCG on the split than all of them together, only that member is used, and
    `combination_.only` is its number. `validation_scores_` has the nDCG of everything that was
    tried.

    With fewer than 50 samples, or hardly any relevant candidates in the split, members have equal
    weights: a score is the mean over members of 60 / (59 + rank).

    Parameters
    ----------
    members : the classifiers; they are cloned, and not changed themselves.
    n_candidates : number of labels that each member proposes for a sample. No other label is
        returned, however large `k` is.
    tail : above 0, scores are divided by propensity^`tail`, in favour of rare labels; try 0.5 to 1
        for PSP@k. It may be changed after `fit`.

    >>> from umpteen import LabelTree, NearestCentroid
    >>> X = np.eye(6)[np.arange(120) % 6]
    >>> model = Ensemble([LabelTree(), NearestCentroid()]).fit(X, np.arange(120) % 6)
    >>> model.predict_topk(X[:3], k=1).labels.ravel()
    array([0, 1, 2], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "members": [list, tuple],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "tail": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    members_: Annotated[list[Annotated[ExtremeClassifier, Given("features", "labels")]], NotEmpty()]
    combination_: Combination
    label_counts_: Annotated[npt.NDArray[np.int64], Shape("labels"), Within(0, 2**62)]
    n_samples_: Annotated[int, Within(0, 2**62)]
    validation_scores_: dict[str, float]

    def __init__(
        self,
        members: Any,
        *,
        n_candidates: int = 50,
        tail: float = 0.0,
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.members = members
        self.n_candidates = n_candidates
        self.tail = tail
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: weights for other members than there are."""
        n, combination = len(self.members_), self.combination_
        if max(combination.partner, combination.only) >= n:
            yield f"has {n} members, and weights for more"
        trees = combination.trees
        if trees is not None and trees.n_evidence != PER_MEMBER * n + 1:
            yield f"has {n} members, and weights for {trees.n_evidence // PER_MEMBER}"

    def fit(
        self, X: Any, Y: Any, label_features: Any = None, label_names: Any = None,
        token_vectors: Any = None,
    ) -> Self:  # fmt: skip
        """Fit all members, and learn how to combine them from a validation split.

        Members get features of the labels, features of the names of labels, and initial vectors of
        features, if they can use them.
        """
        checked, labels = self._check_fit_input(X, Y)
        seed = check_seed(self.random_state)
        split = validation_split(checked, labels, seed, copies_together=True)
        self._learn(X, Y, Inputs(label_features, label_names, token_vectors), split)
        return self

    def fit_validated(
        self, X: Any, Y: Any, validation: Any, k: int = 20, label_features: Any = None,
        label_names: Any = None, token_vectors: Any = None,
    ) -> TopK:  # fmt: skip
        """Fit on all samples, and return unbiased answers to the validation split.

        Neither the members nor the weights behind an answer have learned from its sample.
        """
        checked, labels = self._check_fit_input(X, Y)
        split = check_rows(validation, checked.shape[0], "validation")
        k = min(check_k(k), labels.shape[1])
        inputs = Inputs(label_features, label_names, token_vectors)
        return self._learn(X, Y, inputs, split, k).answers

    def explain(self, x: Any, label: int) -> EnsembleExplanation:
        """Return each member's contribution to the score of a label, for one sample."""
        x = self._check_one(x)
        label = check_label(label, self.n_labels_)
        candidates = self._joined([each._topk(x, self._n_each) for each in self.members_])
        (places,) = np.nonzero(candidates.labels[0] == label)
        names = member_names(self.members_)
        if len(places) == 0:
            absent = [MemberContribution(name, 0.0, None, 0.0) for name in names]
            return EnsembleExplanation(label, 0.0, absent)
        place = int(places[0])
        score = float(self.combination_.scores(candidates, self._worth())[0, place])
        if not np.isfinite(score):  # the one member that answers does not offer it
            score = 0.0
        evidence = candidates.evidence[0, place]
        members = [
            MemberContribution(
                name,
                float(evidence[PER_MEMBER * i]),
                round(1 / evidence[PER_MEMBER * i + 2]) if evidence[PER_MEMBER * i + 2] else None,
                self._contribution(candidates, place, i),
            )
            for i, name in enumerate(names)
        ]
        return EnsembleExplanation(label, score, members)

    def add_labels(
        self, X: Any = None, Y: Any = None, label_features: Any = None, *,
        negative_weight: float = 1.0,
    ) -> Self:  # fmt: skip
        """Add labels to every member, without training the others or the weights again."""
        self._check_able(AddsLabels, "add")
        labels = check_labels(Y, n_samples=self._check_predict(X).shape[0])
        members = [
            copy(member).add_labels(  # type: ignore[attr-defined]
                X, Y, label_features, negative_weight=negative_weight
            )
            for member in self.members_
        ]
        counts = np.bincount(labels.indices, minlength=labels.shape[1])
        counts = np.concatenate([self.label_counts_, counts])
        self.__dict__.update(members_=members, label_counts_=counts, n_labels_=len(counts))
        return self

    def remove_labels(self, labels: Any) -> Self:
        """Remove labels: they are not predicted any more. The ids of the others stay."""
        self._check_able(RemovesLabels, "remove")
        self.members_ = [
            copy(member).remove_labels(labels)  # type: ignore[attr-defined]
            for member in self.members_
        ]
        return self

    def _learn(self, X: Any, Y: Any, inputs: Inputs, split: Mask | None, k: int = 20) -> Choice:
        """Fit members, and learn how to combine them."""
        self._check_members()
        checked, labels = self._check_fit(X, Y)
        if inputs.token_vectors is not None and not is_able(self, StartsFromTokenVectors):
            raise ParameterError(
                "token_vectors has no effect on these members, none of which starts from vectors "
                "of features: add a SiameseXML, or leave token_vectors out"
            )
        if inputs.label_features is not None:
            texts = check_features(
                inputs.label_features, n_features=checked.shape[1], name="label_features", model="X"
            )
            check_describes(texts, labels.shape[1])
        members = [clone(member) for member in self.members]
        answers = [self._fit_member(each, X, Y, inputs, split) for each in members]
        counts = np.bincount(labels.indices, minlength=labels.shape[1])
        if split is None:
            choice = Choice(Combination(), {}, _no_answers(k))
        else:
            # A label that only the split has would be found by its frequency of zero.
            expected, unlearned = learned_labels(labels, split)
            rest = np.bincount(labels[~split].indices, minlength=len(counts))
            candidates = Candidates.of(answers, rest).without(unlearned)
            choice = choose(candidates, expected, member_names(members), k)
        self.members_, self.combination_ = members, choice.combination
        self.label_counts_, self.validation_scores_ = counts, choice.tried
        self.n_samples_ = int(labels.shape[0])
        return choice

    def _fit_member(self, member: Any, X: Any, Y: Any, inputs: Inputs, split: Mask | None) -> TopK:
        more = inputs.usable_by(member)
        if split is None:
            member.fit(X, Y, **more)
            return _no_answers(1)
        found: TopK = member.fit_validated(X, Y, split, self._n_each, **more)
        return found

    def _topk(self, X: Features, k: int) -> TopK:
        worth = self._worth()
        if self.combination_.only >= 0 and worth is None:
            return self.members_[self.combination_.only]._topk(X, k)
        answers = [member._topk(X, self._n_each) for member in self.members_]
        if X.shape[0] == 0:
            return _no_answers(k)
        tables = [table for each in answers for table in (each.labels, each.scores)]
        shared = Sharded(*tables), self.combination_, self.label_counts_, worth, k
        with progress_bar("Ranking", -(-X.shape[0] // _BLOCK), self.verbose) as bar:
            return TopK.concatenate(
                over_blocks(
                    _ranked, X.shape[0], _BLOCK, shared, n_jobs=self.n_jobs,
                    done=lambda _: bar.advance(),
                )
            )  # fmt: skip

    def _worth(self) -> npt.NDArray[np.float32] | None:
        return label_worth(LabelCounts(self.label_counts_, self.n_samples_), self.tail)

    def _joined(self, answers: Sequence[TopK]) -> Candidates:
        return Candidates.of(answers, self.label_counts_)

    def _contribution(self, candidates: Candidates, place: int, member: int) -> float:
        """Return by how much a candidate's log-odds fall if a member had not proposed it."""
        own = candidates.evidence[:1, place : place + 1]
        lowest = candidates.evidence[0, candidates.labels[0] >= 0, PER_MEMBER * member].min()
        without = own.copy()
        first = PER_MEMBER * member
        without[..., first + 1] -= without[..., first] - lowest
        without[..., first], without[..., first + 2] = lowest, 0
        labels = candidates.labels[:1, place : place + 1]
        scores = [
            float(self.combination_.scores(Candidates(labels, evidence))[0, 0])
            for evidence in (own, without)
        ]
        with_it, without_it = np.clip(scores, 1e-6, 1 - 1e-6)
        return float(np.log(with_it / (1 - with_it)) - np.log(without_it / (1 - without_it)))

    @property
    def _n_each(self) -> int:
        return min(int(self.n_candidates), self.n_labels_)

    def _check_members(self) -> None:
        others = [m for m in self.members if not isinstance(m, ExtremeClassifier)]
        if others or not self.members:
            raise ParameterError(
                "members must be a list of classifiers of umpteen, at least one, such as "
                f"[LabelTree(), NearestCentroid()]; got {others[0] if others else []!r}"
            )

    def _check_able(self, ability: type, verb: str) -> None:
        self._check_fitted()
        for member in self.members_:
            if not is_able(member, ability):
                raise ParameterError(
                    f"{type(member).__name__} cannot {verb} labels, and an ensemble can only do "
                    "what all its members can: fit again"
                )


def _ranked(
    task: OnRows, sharded: Sharded, combination: Combination, counts: npt.NDArray[np.int64],
    worth: npt.NDArray[np.float32] | None, k: int,
) -> TopK:  # fmt: skip
    """Return the best candidates of some samples, given labels and scores of each member."""
    tables, places = sharded.at(task.rows)
    own = [table[places.start : places.stop] for table in tables]
    answers = [TopK(*pair) for pair in zip(own[::2], own[1::2], strict=True)]
    return combination.topk(Candidates.of(answers, counts), k, worth).padded(k)


def _no_answers(k: int) -> TopK:
    return TopK(np.empty((0, k), np.int32), np.empty((0, k), np.float32))


def member_names(members: list[Any]) -> list[str]:
    """Return the names of the members' classes, numbered where one occurs twice.

    >>> from umpteen import LabelTree, NearestCentroid
    >>> member_names([LabelTree(), NearestCentroid(), LabelTree()])
    ['LabelTree 1', 'NearestCentroid', 'LabelTree 2']
    """
    names = [type(member).__name__ for member in members]
    return [
        f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]
