"""Fit a tagger on texts whose labels are known only per group."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.aggregated import Eagle
from umpteen.base import ExtremeClassifier
from umpteen.errors import LabelsError, ParameterError
from umpteen.linear import LabelTree
from umpteen.progress import compile_line
from umpteen.tagger.described_labels import DescribedLabels
from umpteen.tagger.fitting import N_KERNELS, choose, new_classifier, new_state
from umpteen.tagger.group_calibration import calibrated_by_groups
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.learned_groups import LearnedGroups
from umpteen.tagger.state import State, seen_features
from umpteen.tagger.vectorizing import read_texts
from umpteen.validation import NamedGroups, check_named_groups, check_texts

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger


def fit_groups(
    tagger: "Tagger", texts: Any, groups: Any, group_labels: Any, label_texts: Any, vocabulary: Any
) -> State:
    """Return what `Tagger.fit` learns from groups of texts."""
    texts = check_texts(texts)
    named = check_named_groups(groups, group_labels, len(texts))
    if not any(named.labels):
        raise LabelsError(
            "no group has a label, so there is nothing to learn; expected a list of label names "
            "for at least one group"
        )
    if isinstance(label_texts, Mapping):
        raise ParameterError(
            "label_texts cannot be used with groups, because Eagle does not learn from them: "
            "leave them out"
        )
    eagle = _eagle(tagger)
    if eagle.samples_per_label in ("auto", "count"):
        named.check_counts()
    described = DescribedLabels.of(label_texts, vocabulary, named.labels, eagle)
    with compile_line(N_KERNELS, getattr(tagger.classifier, "verbose", False)):
        documents, lists = _as_documents(texts, named)
        vectorizer, trials = choose(tagger, documents, lists, eagle, described)
        X, _ = read_texts(vectorizer, texts, None)
    counts = count_matrix(described.labels, named.labels)
    calibration, validated = None, None
    if tagger.calibrate:
        calibration, validated = calibrated_by_groups(
            eagle, X, named.members, counts, tagger.random_state
        )
    eagle.fit(X, groups=named.members, group_labels=counts)
    return new_state(
        tagger,
        texts,
        X,
        eagle.assigned_labels_,
        described,
        classifier=_solver(eagle),
        vectorizer=vectorizer,
        seen_features=seen_features(eagle.solver_, X),
        calibration=calibration,
        validated=validated,
        trials=trials,
        groups=LearnedGroups(
            n_groups=len(named.names),
            largest=int(np.diff(named.members.indptr).max()),
            samples_per_label=eagle.samples_per_label_,
            chosen=eagle.chosen_,
            agreement=eagle.agreement_,
        ),
    )


def count_matrix(names: LabelNames, lists: list[list[str]]) -> csr_matrix:
    """Return how often each label is in each list, `(lists, labels)`."""
    ids = [[names.ids[name] for name in labels] for labels in lists]
    indptr = np.cumsum([0, *map(len, ids)])
    indices = np.fromiter((label for own in ids for label in own), np.int32, count=indptr[-1])
    ones = np.ones(len(indices), np.float32)
    counts = csr_matrix((ones, indices, indptr), shape=(len(ids), len(names)))
    counts.sum_duplicates()
    return counts


def _eagle(tagger: "Tagger") -> Eagle:
    """The Eagle that was given, or one around the classifier that was."""
    given = new_classifier(tagger)
    if isinstance(given, Eagle):
        return given
    if not isinstance(given, ExtremeClassifier):
        raise ParameterError(
            f"the classifier is a {type(given).__name__}; groups need a classifier of umpteen, "
            "such as LabelTree(), to assign labels with"
        )
    return Eagle(given, random_state=tagger.random_state)


def _solver(eagle: Eagle) -> ExtremeClassifier:
    """What the tagger goes on with; labels that come later are of single texts, and certain."""
    solver, given = eagle.solver_, eagle.solver or LabelTree()
    if "cost" in given.get_params(deep=False):
        solver.set_params(cost=given.get_params(deep=False)["cost"])
    return solver


def _as_documents(texts: list[str], named: NamedGroups) -> tuple[list[str], list[list[str]]]:
    """Each group as one text: its labels are certain, so that forms of words can be compared."""
    starts, members = named.members.indptr, named.members.indices
    joined = [
        "\n".join(texts[i] for i in members[first:last])
        for first, last in pairwise(starts.tolist())
    ]
    return joined, [list(dict.fromkeys(labels)) for labels in named.labels]
