"""What a fitted tagger knows, and how it answers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from umpteen.base import ExtremeClassifier, KnowsFeatures, TopK, is_able
from umpteen.data import LabelVocabulary
from umpteen.errors import ParameterError
from umpteen.metrics.hits import found_in
from umpteen.scratch import slices
from umpteen.tagger.calibration import RANKS, Calibration, ValidatedAnswers
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.learned_groups import LearnedGroups
from umpteen.tagger.replay import Replay
from umpteen.tagger.thresholds import Thresholds
from umpteen.tagger.vectorizing import Words
from umpteen.validation import as_csr, check_features


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a tagger learned; whatever changes it makes a new one.

    The fields are the attributes of `Tagger` that end in an underscore.
    """

    classifier: ExtremeClassifier
    vectorizer: Any
    seen_features: npt.NDArray[np.bool_]
    label_names: LabelNames
    label_counts: npt.NDArray[np.int64]
    n_samples: int
    n_added: int
    calibration: Calibration | None
    validated: ValidatedAnswers | None
    thresholds: Thresholds | None
    replay: Replay
    vocabulary: LabelVocabulary | None
    trials: dict[str, float]
    groups: LearnedGroups | None = None

    def features(self, texts: list[str]) -> csr_matrix:
        """Return the features of texts, one row each."""
        return as_csr(check_features(self.vectorizer.transform(texts)))

    def answer(self, X: csr_matrix, k: int) -> TopK:
        """Return the best labels with their probabilities; none that no word of a text supports."""
        top = self.scores(X, max(k, RANKS) if self.calibration else k)
        return (self.calibration(top) if self.calibration else top).first(k)

    def scores(self, X: csr_matrix, k: int) -> TopK:
        """Return the same with the classifier's own scores."""
        return self._supported(X, self.classifier.predict_topk(X, k).padded(k))

    @property
    def n_features(self) -> int:
        """The number of words and bigrams in the vocabulary."""
        return int(getattr(self.vectorizer, "n_features_used", self.classifier.n_features_in_))

    @cached_property
    def words(self) -> Words:
        """The words that features stand for."""
        return Words(self.vectorizer)

    @cached_property
    def parents(self) -> csr_matrix:
        """The broader labels of each label, as the vocabulary has them."""
        if self.vocabulary is None:
            raise ParameterError(
                "this tagger has no hierarchy of labels: fit(..., vocabulary=) gives it one"
            )
        return broader_labels(self.vocabulary, self.label_names)

    def _supported(self, X: csr_matrix, top: TopK) -> TopK:
        """Remove the answers that no word of the text supports.

        A classifier has an answer to any text, even if it knows no word of it: the most frequent
        labels. Words that were learned after `fit` support only the labels that learned them.
        """
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        seen = np.bincount(rows[self.seen_features[X.indices]], minlength=X.shape[0]) > 0
        if seen.all():
            return top
        kept = np.repeat(seen[:, None], top.k, axis=1)
        classifier: Any = self.classifier
        if is_able(classifier, KnowsFeatures):
            kept[~seen] = found_in(classifier.labels_with(X[~seen]), top.labels[~seen])
        return top.keep(kept)


def broader_labels(vocabulary: LabelVocabulary, names: LabelNames) -> csr_matrix:
    """Return the broader labels of each id as the vocabulary has them, CSR `(ids, ids)` of ones.

    Removed labels have none and are none: what is broader than they are takes their place.
    """
    id_of = {name: i for i, name in enumerate(names.names)} | names.ids
    links = vocabulary.parents(id_of).tocoo()
    ids = np.fromiter(id_of.values(), np.int64, len(id_of))
    shape = (len(names), len(names))
    parents = csr_matrix((np.ones(links.nnz, bool), (ids[links.row], ids[links.col])), shape=shape)
    is_removed = np.isin(np.arange(len(names)), names.removed)
    removed, kept = diags(is_removed, dtype=bool), diags(~is_removed, dtype=bool)
    while is_removed[parents.indices].any():
        parents = csr_matrix(parents @ kept + parents @ removed @ parents)
        parents.eliminate_zeros()
    return csr_matrix(kept @ parents)


def seen_features(
    classifier: ExtremeClassifier, X: csr_matrix, label_features: csr_matrix | None = None
) -> npt.NDArray[np.bool_]:
    """Return which features the classifier has learned about, from samples or from label texts.

    One that can tell which labels know a feature is asked about the others when it answers.
    """
    seen = np.zeros(X.shape[1], bool)
    for part in slices(X.nnz):  # which numpy copies, with 64 bits for each index
        seen[X.indices[part]] = True
    if label_features is not None and not is_able(classifier, KnowsFeatures):
        seen[label_features.indices] = True
    return seen
