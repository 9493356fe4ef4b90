"""Which texts of new groups have the groups' labels."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import expit

from umpteen.base import TopK
from umpteen.errors import LabelsError, ParameterError, warn_caller
from umpteen.tagger.calibration import RANKS
from umpteen.tagger.grouped import count_matrix
from umpteen.tagger.state import State
from umpteen.tagger.whose_labels import Claims, FloatArray, IntArray
from umpteen.validation import check_named_groups, check_number, check_texts

_AT_ONCE = 2**22  # claims in memory: a group of 20,000 texts and labels has 400 million
_RATHER = 0.5  # from which share on a second text has the label, too

Tags = list[tuple[str, float]]


def assign_labels(
    state: State, texts: Any, groups: Any, group_labels: Any, none_of_these: Any
) -> list[Tags]:
    """Return the labels of each text with confidences: see `Tagger.assign`."""
    texts = check_texts(texts)
    named = check_named_groups(groups, group_labels, len(texts))
    least = check_number(none_of_these, "none_of_these")
    if least > 1:
        raise ParameterError(
            f"none_of_these={none_of_these!r} is not a probability between 0 and 1"
        )
    exact = named.repeats_labels or (state.groups is not None and state.groups.is_exact)
    if exact:
        named.check_counts()
    counts = count_matrix(state.label_names, _known(state, named.labels))
    X = state.features(texts)
    top = state.scores(X, RANKS)
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    for pairs in _blocks(named.members, counts):
        text, label, claims = _claims(named.members, counts, pairs, exact)
        p = _probabilities(state, X, top, text, label)
        shares = claims.shares(p)
        chosen = _winners(claims, shares) | (not exact and shares >= _RATHER)
        chosen &= claims.occurs(p)[claims.pair] >= least
        found.append((text[chosen], label[chosen], shares[chosen]))
    return _named(state, len(texts), found)


def _known(state: State, lists: list[list[str]]) -> list[list[str]]:
    """The labels that the tagger knows; of others nothing can be said."""
    ids = state.label_names.ids
    unknown = {name for labels in lists for name in labels if name not in ids}
    if unknown:
        if not any(name in ids for labels in lists for name in labels):
            raise LabelsError(
                f"the tagger knows none of the groups' labels, such as {min(unknown)!r}: it "
                "can only assign labels that it learned"
            )
        warn_caller(
            "labels of groups that the tagger does not know are left out: "
            f"{len(unknown):,}, such as {min(unknown)!r}"
        )
    return [[name for name in labels if name in ids] for labels in lists]


def _blocks(members: csr_matrix, counts: csr_matrix) -> Iterator[slice]:
    """Yield pairs of group and label, some at a time: a large group has many claims to each."""
    sizes = np.diff(members.indptr)[_group_of_pair(counts)].astype(np.int64)
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        done = ends[first] - sizes[first]
        last = max(first + 1, int(np.searchsorted(ends, done + _AT_ONCE, "right")))
        yield slice(first, last)
        first = last


def _claims(
    members: csr_matrix, counts: csr_matrix, pairs: slice, exact: bool
) -> tuple[IntArray, IntArray, Claims]:
    """Text and label of each claim: every text of a group may have each of its labels."""
    group_of_pair = _group_of_pair(counts)[pairs]
    sizes = np.diff(members.indptr)[group_of_pair].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    pair = np.repeat(np.arange(len(sizes)), sizes)
    text = members.indices[members.indptr[group_of_pair[pair]] + place].astype(np.int64)
    label = counts.indices[pairs][pair].astype(np.int64)
    return text, label, Claims(pair, counts.data[pairs].astype(np.float64), exact)


def _group_of_pair(counts: csr_matrix) -> IntArray:
    return np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))


def _probabilities(
    state: State, X: csr_matrix, top: TopK, text: IntArray, label: IntArray
) -> FloatArray:
    """The probability of each claim without the groups; without calibration, its score."""
    asked = csr_matrix(
        (np.ones(len(text), np.float32), (text, label)), shape=(X.shape[0], len(state.label_names))
    )
    asked.data[:] = 1
    scores = state.classifier.score_labels(X, asked)
    place = np.searchsorted(_keys(scores), text * scores.shape[1] + label)
    own = scores.data[place].astype(np.float64)
    if state.calibration is not None:
        p = state.calibration.of_scores(own, text, top)
    else:
        within = own.min(initial=0) >= 0 and own.max(initial=0) <= 1
        p = own if within else np.asarray(expit(own))
    return np.where(top.labels[text, 0] >= 0, p, 0.0)  # 0 where no word of the text is known


def _winners(claims: Claims, shares: FloatArray) -> npt.NDArray[np.bool_]:
    """As many of the largest shares as a label's count in its group; of equal ones the first."""
    order = np.lexsort((-shares, claims.pair))
    pair = claims.pair[order]
    place = np.arange(len(pair)) - np.searchsorted(pair, pair)
    wins = np.zeros(len(pair), bool)
    wins[order] = place < (claims.counts if claims.exact else np.ones_like(claims.counts))[pair]
    return wins


def _named(
    state: State, n_texts: int, blocks: list[tuple[IntArray, IntArray, FloatArray]]
) -> list[Tags]:
    """Names and confidences, best first; a label of several groups has its best one."""
    found: list[dict[int, float]] = [{} for _ in range(n_texts)]
    for block in blocks:
        for i, own, share in zip(*(each.tolist() for each in block), strict=True):
            found[i][own] = max(found[i].get(own, 0.0), round(share, 6))
    names = state.label_names.names
    return [
        [
            (names[own], share)
            for own, share in sorted(tags.items(), key=lambda tag: (-tag[1], tag[0]))
        ]
        for tags in found
    ]


def _keys(pairs: csr_matrix) -> IntArray:
    rows = np.repeat(np.arange(pairs.shape[0], dtype=np.int64), np.diff(pairs.indptr))
    return np.asarray(rows * pairs.shape[1] + pairs.indices)
