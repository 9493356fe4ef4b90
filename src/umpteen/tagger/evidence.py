"""Answers that rest on words of the text, and those that are guesses."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier, TopK
from umpteen.metrics.hits import found_in
from umpteen.tagger.thresholds import keep

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger


def seen_features(
    classifier: ExtremeClassifier, X: csr_matrix, label_features: csr_matrix | None = None
) -> npt.NDArray[np.bool_]:
    """Which features the classifier has learned about, from samples or from texts of labels.

    One that can tell which labels have a feature (`labels_with`) is asked about the rest.
    """
    seen = np.zeros(X.shape[1], bool)
    seen[X.indices] = True
    if label_features is not None and not hasattr(classifier, "labels_with"):
        seen[label_features.indices] = True
    return seen


def without_guesses(tagger: "Tagger", X: csr_matrix, top: TopK) -> TopK:
    """Take away the answers that no word of the text speaks for.

    A classifier has something to say about any text: where it knows no word of it, how frequent
    its labels are. Words that came after `fit` speak for the labels only that learned them.
    """
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    seen = np.bincount(rows[tagger.seen_features_[X.indices]], minlength=X.shape[0]) > 0
    if seen.all():
        return top
    kept = np.repeat(seen[:, None], top.k, axis=1)
    classifier: Any = tagger.classifier_
    if hasattr(classifier, "labels_with"):
        kept[~seen] = found_in(classifier.labels_with(X[~seen]), top.labels[~seen])
    return keep(top, kept)
