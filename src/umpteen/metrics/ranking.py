"""How good the first k answers are, averaged over samples.

`Y` is what `fit` takes, `top` a `TopK` or a sparse matrix of scores, `k` a number (the value is
a float) or a sequence of numbers (an array). Values are in [0, 1].

Samples without labels: any answer to them is wrong, so precision and F1 count them as zero;
there is nothing to find, so recall and nDCG leave them out. Without samples, all is 0.
"""

from typing import Any

import numpy as np

from umpteen.metrics.hits import Hits, find_hits
from umpteen.metrics.inputs import FloatArray, Ks, Value, at_each


def precision_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return the share of the first `k` places with a relevant label; empty places count, too.

    >>> from umpteen import TopK
    >>> top = TopK(labels=[[2, 0], [1, -1]], scores=[[0.9, 0.5], [0.7, -np.inf]])
    >>> precision_at_k([[2], [0, 1]], top, k=(1, 2))
    array([1. , 0.5])
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: precision(hits, k))


def recall_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return the share of a sample's relevant labels that are among the first `k`.

    >>> from umpteen import TopK
    >>> recall_at_k([[2], [0, 1]], TopK([[2], [1]], [[0.9], [0.7]]), k=1)
    0.75
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: recall(hits, k))


def f1_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return the harmonic mean of a sample's precision and recall at `k`, averaged over samples.

    >>> from umpteen import TopK
    >>> round(f1_at_k([[2], [0, 1]], TopK([[2], [1]], [[0.9], [0.7]]), k=1), 4)
    0.8333
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: f1(hits, k))


def ndcg_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return hits weighted by 1 / log2(place + 1), divided by the best possible sum.

    >>> from umpteen import TopK
    >>> ndcg_at_k([[0]], TopK([[2, 0]], [[0.9, 0.5]]), k=[1, 2]).round(4)
    array([0.    , 0.6309])
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: ndcg(hits, k))


def coverage_at_k(Y: Any, top: Any, k: Ks) -> Value:
    """Return the share of the relevant labels that are found at least once.

    >>> from umpteen import TopK
    >>> coverage_at_k([[2], [0, 1]], TopK([[2, 0], [2, 1]], [[0.9, 0.5]] * 2), k=[1, 2]).round(4)
    array([0.3333, 0.6667])
    """
    hits = find_hits(Y, top, k)
    return at_each(k, lambda k: coverage(hits, k))


def precision(hits: Hits, k: int) -> float:
    """Return `precision_at_k` of hits."""
    return ratio(hits.total(k), k * len(hits))


def recall(hits: Hits, k: int) -> float:
    """Return `recall_at_k` of hits."""
    weights = 1.0 / np.maximum(hits.n_relevant, 1)
    return ratio(hits.total(k, sample_weights=weights), hits.n_labelled)


def f1(hits: Hits, k: int) -> float:
    """Return `f1_at_k` of hits."""
    return ratio(hits.total(k, sample_weights=2.0 / (k + hits.n_relevant)), len(hits))


def ndcg(hits: Hits, k: int) -> float:
    """Return `ndcg_at_k` of hits."""
    places = discounts(min(k, hits.labels.shape[1]))
    gain = hits.total(k, sample_weights=ideal_weights(hits, k), place_weights=places)
    return ratio(gain, hits.n_labelled)


def coverage(hits: Hits, k: int) -> float:
    """Return `coverage_at_k` of hits."""
    return ratio(np.count_nonzero(hits.per_label(k)), np.count_nonzero(hits.relevant_per_label))


def discounts(k: int) -> FloatArray:
    """Return what a hit is worth at each place.

    >>> discounts(3).round(4)
    array([1.    , 0.6309, 0.5   ])
    """
    return 1.0 / np.log2(np.arange(2, k + 2))


def ideal_weights(hits: Hits, k: int) -> FloatArray:
    """Return one over the DCG of a perfect answer, per sample; 0 where nothing is relevant."""
    n_ideal = np.minimum(hits.n_relevant, k)
    ideal = np.concatenate([[np.inf], np.cumsum(discounts(int(n_ideal.max(initial=0))))])
    return 1.0 / ideal[n_ideal]


def ratio(part: Any, whole: Any) -> float:
    """Return part of a whole, at most 1; 0 where there is nothing."""
    return float(min(part / whole, 1.0)) if whole else 0.0
