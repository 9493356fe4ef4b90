"""Eagle: any classifier, from labels that are known only per group of samples."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, identity, vstack
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen import scratch
from umpteen.aggregated.assignment import similarities
from umpteen.aggregated.background import Background
from umpteen.aggregated.confidence import assign_new
from umpteen.aggregated.embeddings import Search
from umpteen.aggregated.presence import SHARES, understood
from umpteen.aggregated.problem import Problem
from umpteen.aggregated.recipe import EagleRecipe, upgrade_from_1, upgrade_from_2
from umpteen.aggregated.rounds import Outcome, hand_out_anew
from umpteen.aggregated.validating import best_labels
from umpteen.base import ExtremeClassifier, HasRecipe, TopK
from umpteen.errors import GroupsError, ParameterError
from umpteen.linear import LabelTree
from umpteen.progress import Verbose, progress_bar
from umpteen.storage import Given, Shape, storable
from umpteen.validation import N_JOBS, VERBOSE, Features, check_parameters, check_seed

_LESS = 0.4  # cost of errors where only presence is known (benchmarks/aggregated_choices.py)
_USUAL_ROUNDS = 2
_KEPT_FEATURES = 100  # of each label's embedding: what it is about


_KNOWN = {
    "count": "how many samples have each label",
    "estimate": "which labels occur",
    "one": "which labels occur, each in one sample",
}


@storable(version=3, upgrades={1: upgrade_from_1, 2: upgrade_from_2})
class Eagle(HasRecipe, ExtremeClassifier):
    """A classifier that learns from labels that are known only per group of samples.

    Examples are a page's tags for its paragraphs, a brand's attributes for its products, or a
    day's alarms for its log lines. Each label belongs to some sample of the group, but nobody
    knows to which. Eagle assigns the labels to samples, and trains `solver` on the assignment
    (Shen et al. 2020).

    **How it works.** Each label gets an embedding: the sum of all samples of its groups, corrected
    for the background of all groups. In each group it is assigned to the samples that are closest
    to its embedding (`samples_per_label`). Then, `rounds` times, solvers trained on other groups
    score the samples of a group, and the labels are assigned again. If only presence is known, the
    scores also tell how many samples of a group have a label (docs/aggregated.md). The final
    solver is trained on the last `votes` assignments together; a label on which they disagree gets
    a fractional weight. Validation groups decide between this, the first assignment, and all
    labels of the groups (`chosen_`).

    `Eagle.paper()` is the published algorithm: no background, one sample per label and group, 20
    iterations, no rounds. `Eagle.paper(recipe__iterations=0)` is the paper's EAGLE-0. On texts,
    both can be worse than ignoring the groups (papers/eagle/README.md).

    Parameters
    ----------
    solver : any classifier of this library; a LabelTree by default.
    samples_per_label : "count" if `group_labels` says how many samples of a group have a label;
        "estimate" if it only says that it occurs; "one" assigns it to one sample of each group.
        "auto" is "estimate" if all counts are 1 although, by chance, some would be higher, and
        otherwise "count"; `samples_per_label_` says which.
    rounds : number of rounds. None means two, or, if only presence is known, up to four, until the
        estimated numbers of samples change by less than a tenth.
    votes : number of assignments that the final solver is trained on. This needs a solver with a
        `cost`; other solvers, and `votes=1`, learn from `assigned_labels_`.
    recipe : a `umpteen.aggregated.EagleRecipe` with settings that few users change: Algorithm 1,
        the background and the folds. `set_params` and `paper` take `recipe__iterations` and so on.
    n_jobs : number of threads, except for the solver; any number gives the same bits.

    Attributes
    ----------
    solver_ : the fitted solver.
    chosen_ : what the solver learned from: the assignments of the "rounds", the "first" assignment,
        or all labels of the groups (the paper's "baseline").
    assigned_labels_ : the labels that were assigned to each training sample, `(n, n_labels)`.
    label_embeddings_ : the hundred largest values of each label's embedding, `(n_labels, d)`.
    agreement_ : an estimate of the quality of each assignment, without true labels of samples: the
        share of predicted labels that fit into the labels of their groups, for samples that the
        solvers did not learn from. A label fits as often as its count in the group. The first
        entry is for solvers that learned from the first assignment, the second for solvers that
        learned from the first round, and so on.

    >>> X = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
    >>> groups = [[0, 1], [2, 3], [4, 5]]
    >>> model = Eagle().fit(X, groups=groups, group_labels=[[0, 1], [0, 2], [1, 2]])
    >>> model.predict_topk(X[:2], k=1).labels.ravel()
    array([0, 1], dtype=int32)
    """

    _recipe_class: ClassVar[type[EagleRecipe]] = EagleRecipe
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [ExtremeClassifier, None],
        "samples_per_label": [StrOptions(set(SHARES))],
        "rounds": [Interval(Integral, 0, None, closed="left"), None],
        "votes": [Interval(Integral, 1, None, closed="left")],
        "recipe": [EagleRecipe, None],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "verbose": VERBOSE,
    }

    solver_: Annotated[ExtremeClassifier, Given("features", "labels")]
    assigned_labels_: Annotated[csr_matrix, Shape("samples", "labels")]
    label_embeddings_: Annotated[csr_matrix, Shape("labels", "features")]
    agreement_: list[float]
    chosen_: str
    samples_per_label_: str

    def __init__(
        self,
        solver: ExtremeClassifier | None = None,
        *,
        samples_per_label: str = "auto",
        rounds: int | None = None,
        votes: int = 2,
        recipe: EagleRecipe | None = None,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        verbose: Verbose = "auto",
    ) -> None:
        self.solver = solver
        self.samples_per_label = samples_per_label
        self.rounds = rounds
        self.votes = votes
        self.recipe = recipe
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, solver: ExtremeClassifier | None = None, **changes: Any) -> Self:
        """Return Algorithms 1 and 2 of the paper as printed.

        The paper is ambiguous in two places, and both readings are available. With
        `recipe__unlabelled="drop"`, the default, samples without an assigned label are left out of
        the training; with "keep" they are used, since Algorithm 2 returns all of X. With
        `recipe__merge="list"`, the default, a label that occurs c times in a group counts c times,
        as the lists of labels in the paper's experiments suggest; with "set" it counts once, since
        M_k is a set of groups.
        """
        recipe = EagleRecipe(iterations=20, background="none", compare=False)
        printed = {"samples_per_label": "one", "rounds": 0, "recipe": recipe}
        return cls(solver).set_params(**{**printed, **changes})

    def fit(self, X: Any, Y: Any = None, *, groups: Any = None, group_labels: Any = None) -> Self:
        """Learn from samples, their groups, and the groups' labels.

        `groups` `(n_groups, n)` marks the samples of each group (or is a list with each group's
        sample numbers, or an array with each sample's group number); groups may overlap.
        `group_labels` `(n_groups, n_labels)` says how often each label occurs in each group (or
        is a list with each group's label ids), or, with ones only, that it occurs. The samples of
        a group without labels have none. With `Y` instead, every sample is a group of its own, and
        the solver is simply fitted on `Y`.
        """
        if groups is None and group_labels is None:
            X, Y = self._check_fit(X, Y)
            single = identity(X.shape[0], format="csr", dtype=np.float32)
            return self._fit(Problem.of(X, single, Y))
        check_parameters(self)
        self._check_all_given(Y, groups, group_labels)
        problem = Problem.of(X, groups, group_labels)
        self._forget()
        self.n_features_in_ = int(problem.X.shape[1])
        self.n_labels_ = problem.n_labels
        self.single_label_ = False
        self.labels_per_sample_ = problem.n_answers(understood(problem, self.samples_per_label))
        return self._fit(problem)

    def assign(
        self, X: Any, groups: Any, group_labels: Any, *, none_of_these: float | None = None
    ) -> csr_matrix:
        """Return which samples of new groups have their labels, `(n, n_labels)`, with confidences.

        The arguments are as in `fit`, but `group_labels` has labels of this model. Labels go to
        the samples that the fitted solver scores highest: to one sample of the group if only
        presence was known in `fit`, otherwise to as many as the label's count. A confidence is
        the share of the group's scores that a sample has for the label, times the number of
        samples that get it, at most 1. With `none_of_these`, a label is left out if all samples
        of its group score below that.

        >>> X = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
        >>> groups = [[0, 1], [2, 3], [4, 5]]
        >>> model = Eagle().fit(X, groups=groups, group_labels=[[0, 1], [0, 2], [1, 2]])
        >>> model.assign([[1, 0, 0], [0, 0, 1]], [[0, 1]], [[2]]).toarray() > 0.5
        array([[False, False, False],
               [False, False,  True]])
        """
        self._check_fitted()
        least = _check_least(none_of_these)
        problem = Problem.of(X, groups, group_labels, n_labels=self.n_labels_)
        scores = self.score_labels(problem.features, problem.candidates)
        return assign_new(problem, scores, self.samples_per_label_, least)

    def _fit(self, problem: Problem) -> Self:
        solver = LabelTree(n_jobs=self.n_jobs) if self.solver is None else self.solver
        seed = check_seed(self.random_state)
        self.samples_per_label_ = understood(problem, self.samples_per_label)
        open_question = problem.n_groups > 1 and problem.sizes().max() > 1
        rounds = self.rounds if open_question else 0
        task = f"Whose labels are they? Known: {_KNOWN[self.samples_per_label_]}"
        n_rounds = _USUAL_ROUNDS if rounds is None else int(rounds)
        with progress_bar(task, 2 + n_rounds, self.verbose) as bar:
            scores, self.label_embeddings_ = self._similarities(problem, seed)
            bar.advance()
            found = hand_out_anew(
                problem, scores, solver, rounds=rounds, folds=int(self._used_recipe().folds),
                samples_per_label=self.samples_per_label_, seed=seed, done=bar.advance,
            )  # fmt: skip
            self.assigned_labels_, self.agreement_ = found.assigned, found.agreement
            found = self._compared(found, problem, solver, seed) if open_question else found
        self.chosen_ = found.name
        self.solver_ = self._final(solver, problem, found)
        return self

    def _compared(
        self, found: Outcome, problem: Problem, solver: ExtremeClassifier, seed: int
    ) -> Outcome:
        """What was found, or what validation groups say is better (see `best_labels`)."""
        if not self._used_recipe().compare:
            return found
        candidates = {"first": found.ballots[0]} | {found.name: found.ballots[-1]}
        best = best_labels(problem, candidates, solver, seed)
        if best == found.name:
            return found
        labels = problem.everything if best == "baseline" else found.ballots[0]
        return replace(found, assigned=labels, ballots=[labels], name=best)

    def _similarities(self, problem: Problem, seed: int) -> tuple[csr_matrix, csr_matrix]:
        recipe, background = self._used_recipe(), self._background(problem, seed)
        search = Search(int(recipe.iterations), float(recipe.step), background)
        weighed = problem if recipe.merge == "list" else problem.without_counts()
        return similarities(weighed, search, seed, self.n_jobs, keep=_KEPT_FEATURES)

    def _background(self, problem: Problem, seed: int) -> Background:
        recipe = self._used_recipe()
        if recipe.background == "none" or problem.sizes().max() == 1:
            return Background.none(problem.X.shape[1])
        if recipe.background == "mean":
            return Background.of_mean(problem.X)
        return Background.of_groups(problem, int(recipe.n_directions), seed)

    def _final(
        self, solver: ExtremeClassifier, problem: Problem, found: Outcome
    ) -> ExtremeClassifier:
        """Return the solver trained once on all votes; they share the cost of an error."""
        model, ballots = clone(solver), found.ballots[-self.votes :]
        cost = model.get_params(deep=False).get("cost")
        cost = 1.0 if cost == "auto" else cost  # as `LabelTree` takes it
        if cost is None or self.votes == 1:
            ballots = [found.assigned]
        if cost is not None:
            model.set_params(cost=cost * self._trust(problem, found) / len(ballots))
        keep = self._used_recipe().unlabelled == "keep"
        everyone = np.arange(problem.X.shape[0])
        rows = [everyone if keep else problem.worth_learning(ballot) for ballot in ballots]
        Y = vstack([ballot[own] for ballot, own in zip(ballots, rows, strict=True)], format="csr")
        X = scratch.rows_at(problem.features, np.concatenate(rows))
        fitted: ExtremeClassifier = model.fit(X, csr_matrix(Y))
        return fitted

    def _trust(self, problem: Problem, found: Outcome) -> float:
        """How much the cost of errors counts: less where many labels are wrong."""
        is_guess = self.samples_per_label_ == "estimate" and problem.sizes().max() > 1
        return _LESS if is_guess and found.name != "baseline" else 1.0

    def _topk(self, X: Features, k: int) -> TopK:
        return self.solver_._topk(X, k)

    def _scores_of(self, X: Features, candidates: csr_matrix) -> npt.NDArray[np.float32]:
        return self.solver_._scores_of(X, candidates)

    def _every_label(self, X: Features) -> TopK:
        return self.solver_._every_label(X)

    def _check_all_given(self, Y: Any, groups: Any, group_labels: Any) -> None:
        if Y is not None or groups is None or group_labels is None:
            raise GroupsError(
                "fit takes either Y, each sample's labels, or both groups and group_labels: "
                "fit(X, groups=groups, group_labels=group_labels)"
            )


def _check_least(none_of_these: Any) -> float:
    """Return the lowest score of a label that is assigned; any score may be negative."""
    if none_of_these is None:
        return -np.inf
    is_number = isinstance(none_of_these, Real) and not isinstance(none_of_these, bool)
    if not is_number or not np.isfinite(float(none_of_these)):
        raise ParameterError(
            f"none_of_these={none_of_these!r} is not possible: expected a score, or None"
        )
    return float(none_of_these)
