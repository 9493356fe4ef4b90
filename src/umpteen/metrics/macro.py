"""How good the first k answers are, averaged over labels: each label counts the same.

Counted are the labels with a relevant sample in `Y`. Of the others nothing can be learned from
`Y`, and with many labels they would drown the average. napkinXC counts them as zeros; where
every label has a relevant sample, its values are the same.
"""

from typing import Any

import numpy as np

from umpteen.metrics.hits import Hits, find_hits
from umpteen.metrics.inputs import FloatArray, Ks, Value, at_each


def macro_precision_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return the precision of each label at `k`, averaged over labels; 0 if never predicted.

    >>> from umpteen import TopK
    >>> macro_precision_at_k([[0], [1], [1]], TopK([[0], [0], [1]], [[0.9]] * 3), k=1)
    0.75
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: macro_precision(hits, k))


def macro_recall_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return the recall of each label at `k`, averaged over labels.

    >>> from umpteen import TopK
    >>> macro_recall_at_k([[0], [1], [1]], TopK([[0], [0], [1]], [[0.9]] * 3), k=1)
    0.75
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: macro_recall(hits, k))


def macro_f1_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return the harmonic mean of a label's precision and recall at `k`, averaged over labels.

    >>> from umpteen import TopK
    >>> round(macro_f1_at_k([[0], [1], [1]], TopK([[0], [0], [1]], [[0.9]] * 3), k=1), 4)
    0.6667
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: macro_f1_of_hits(hits, k))


def macro_precision(hits: Hits, k: int) -> float:
    """Return `macro_precision_at_k` of hits."""
    return mean_over_relevant(hits.per_label(k), hits.answers_per_label(k), hits.relevant_per_label)


def macro_recall(hits: Hits, k: int) -> float:
    """Return `macro_recall_at_k` of hits."""
    return mean_over_relevant(hits.per_label(k), hits.relevant_per_label, hits.relevant_per_label)


def macro_f1_of_hits(hits: Hits, k: int) -> float:
    """Return `macro_f1_at_k` of hits."""
    either = hits.answers_per_label(k) + hits.relevant_per_label
    return mean_over_relevant(2 * hits.per_label(k), either, hits.relevant_per_label)


def mean_over_relevant(part: Any, whole: Any, relevant: Any) -> float:
    """Return the mean of part / whole (0 / 0 = 0) over labels with a relevant sample."""
    counted = np.flatnonzero(relevant)
    if len(counted) == 0:
        return 0.0
    values: FloatArray = part[counted] / np.maximum(whole[counted], 1)
    return float(values.mean())
