"""What a method may be able to do beyond the contract of all methods.

A class declares an ability by inheriting from it, and `is_able` asks for it. Each ability has one
signature, whichever method has it; the contract's tests run for every class that declares it.
"""

from abc import ABC, abstractmethod
from typing import Any, Self

from scipy.sparse import csr_matrix


class LearnsFromLabelFeatures(ABC):
    """Learns from features of the labels as well, such as those of their texts."""

    @abstractmethod
    def fit(self, X: Any, Y: Any, label_features: Any = None) -> Self:
        """Learn from samples, their labels, and features of the labels `(n_labels, d)`."""


class WeighsLabelFeatures(LearnsFromLabelFeatures):
    """Learns on a validation split how much features of labels count, and whether they help."""


class MatchesLabelNames(WeighsLabelFeatures):
    """Looks for each name of a label by itself: `fit` takes `label_names`, too."""


class StartsFromTokenVectors(LearnsFromLabelFeatures):
    """Starts from given vectors of its features: `fit` takes `token_vectors`, too."""


class AddsLabels(ABC):
    """Adds labels without training the others again."""

    @abstractmethod
    def add_labels(
        self, X: Any = None, Y: Any = None, label_features: Any = None, *,
        negative_weight: float = 1.0,
    ) -> Self:  # fmt: skip
        """Add a label for each column of `Y`, numbered from `n_labels_` on.

        `X` has samples with and without the new labels. Those without are negatives, and each
        counts `negative_weight` times. A method that finds labels by their features needs no
        samples.
        """


class RemovesLabels(ABC):
    """Removes labels without training the others again."""

    @abstractmethod
    def remove_labels(self, labels: Any) -> Self:
        """Remove these labels from all answers; the ids of the others stay."""


class RefitsLabels(ABC):
    """Trains some labels again without training all of them."""

    @abstractmethod
    def refit_labels(self, X: Any, Y: Any, labels: Any, *, nodes_too: bool = True) -> Self:
        """Learn `labels` again from all samples that they should learn from."""


class Explains(ABC):
    """Explains why a sample gets a label."""

    @abstractmethod
    def explain(self, x: Any, label: int) -> Any:
        """Return the contributions for and against a label, for one sample."""


class ExplainsByWeights(Explains):
    """Explains an answer by the weights of features, along each path to the label.

    The explanation has `paths`, `cosine`, `text_weight`, `covered` and `is_ranked`, as that of
    `LabelTree` has.
    """

    @abstractmethod
    def label_keywords(self, label: int, k: int = 10) -> list[tuple[int, float]]:
        """Return the `k` features with the largest weights for a label, and these weights."""


class LearnsRoughly(ABC):
    """Has faster settings for labels that are full of errors."""

    @abstractmethod
    def roughly(self) -> Self:
        """Return an unfitted copy that learns in less time and trusts each label less."""


class Combines(ABC):
    """Combines the answers of several classifiers, its `members`."""

    members: Any


class Estimates(ABC):
    """Estimates what training will cost before it starts."""

    @abstractmethod
    def estimate(self, X: Any, Y: Any) -> Any:
        """Return the memory, model size and time that `fit(X, Y)` will take."""


class KnowsFeatures(ABC):
    """Tells which labels have learned something about a feature."""

    @abstractmethod
    def labels_with(self, X: Any) -> csr_matrix:
        """Return `(n, n_labels)` with a 1 for each label that knows a feature of the sample."""


def is_able(classifier: Any, ability: type) -> bool:
    """Return whether a classifier has an ability.

    An ensemble has those that all its members have, and learns from features and names of labels,
    and starts from vectors of features, if one of them does.

    >>> from umpteen import LabelTree, NearestCentroid
    >>> is_able(LabelTree(), AddsLabels), is_able(NearestCentroid(), AddsLabels)
    (True, False)
    """
    if not isinstance(classifier, ability):
        return False
    if not isinstance(classifier, Combines):
        return True
    members = classifier.members
    if ability is WeighsLabelFeatures:  # members that cannot learn from them are not given any
        members = [m for m in members if is_able(m, LearnsFromLabelFeatures)]
        return bool(members) and all(is_able(member, ability) for member in members)
    of_one = LearnsFromLabelFeatures, MatchesLabelNames, StartsFromTokenVectors
    is_enough = any if ability in of_one else all
    return not members or is_enough(is_able(member, ability) for member in members)
