"""Labels that come and go, and new samples, without learning everything again."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from inspect import signature
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen.errors import LabelsError, ParameterError
from umpteen.tagger.evidence import seen_features
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.new_labels import NewLabels, examples_of
from umpteen.tagger.replay import Replay
from umpteen.tagger.upkeep import check_kept, learn_words
from umpteen.validation import check_names

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger


@contextmanager
def all_or_nothing(tagger: "Tagger") -> Iterator["Tagger"]:
    """A copy to change, which takes the tagger's place unless an error or Ctrl-C comes first.

    Changes replace what the tagger has learned and never write into it. At the end, as many
    samples are kept as `replay` allows.
    """
    draft = copy(tagger)
    draft.vectorizer_, draft.classifier_ = copy(tagger.vectorizer_), copy(tagger.classifier_)
    yield draft
    draft.replay_ = draft.replay_.redrawn(draft.replay, draft.random_state, draft.label_counts_)
    tagger.__dict__.update(draft.__dict__)  # one step, which cannot be interrupted


def add_labels(tagger: "Tagger", names: Any, texts: Any, examples: Any) -> str | None:
    """Give the tagger new labels: see `Tagger.add_labels`. Returns what had no room."""
    new = NewLabels.checked(names, texts, examples)
    for name in new.names:
        if name in tagger.label_names_.ids:
            raise LabelsError(
                f"{name!r} is a label already: use partial_fit to give it more examples"
            )
    check_kept(tagger)
    with all_or_nothing(tagger) as draft:
        return _learn_new(draft, new)


def learn_more(tagger: "Tagger", texts: list[str], lists: list[list[str]]) -> str | None:
    """More samples: see `Tagger.partial_fit`. Returns what had no room."""
    names = sorted(set(chain.from_iterable(lists)) - tagger.label_names_.ids.keys())
    with all_or_nothing(tagger) as draft:
        if names:
            _learn_new(draft, NewLabels(names, examples_of(texts, lists, names), {}))
        no_room = learn_words(draft.vectorizer_, texts)
        _learn_samples(draft, texts, lists, names)
    return no_room


def remove_labels(tagger: "Tagger", names: Any) -> None:
    """Take labels from the tagger: see `Tagger.remove_labels`."""
    names = check_names(names)
    left = tagger.label_names_.without(names)
    ids = np.array([tagger.label_names_.id_of(name) for name in names], np.int32)
    if len(left.ids) == 0:
        raise LabelsError("these are all labels that there are; at least one must stay")
    stays = ~np.isin(np.arange(len(left)), ids)
    Y = csr_matrix(tagger.replay_.Y @ sparse.diags(stays, dtype=np.float32), dtype=np.float32)
    Y.eliminate_zeros()
    with all_or_nothing(tagger) as draft:
        if hasattr(draft.classifier_, "remove_labels"):
            draft.classifier_.remove_labels(ids)
        else:
            _learn_again(draft, replace(draft.replay_, Y=Y))
        draft.label_names_, draft.replay_ = left, replace(draft.replay_, Y=Y)
        draft.label_counts_ = draft.label_counts_ * stays
        if draft.held_out_ is not None:
            draft.held_out_ = draft.held_out_.without(ids)


def _learn_new(tagger: "Tagger", new: NewLabels) -> str | None:
    samples = list(dict.fromkeys(chain.from_iterable(new.examples.values())))
    grown = tagger.label_names_.with_new(new.names)
    Y = _labels_of(samples, new, grown)
    no_room = learn_words(tagger.vectorizer_, samples)
    X = tagger._features(samples)
    _check_words(X, Y, grown)
    replay = tagger.replay_.widened(len(grown)).joined(X, Y, samples)
    own_texts = tagger._features([new.own_texts.get(name, "") for name in new.names])
    if hasattr(tagger.classifier_, "add_labels"):
        first = len(tagger.label_names_)
        more: dict[str, Any] = {}
        if "negative_weight" in signature(tagger.classifier_.add_labels).parameters:
            more["negative_weight"] = tagger.n_samples_ / len(tagger.replay_)
        tagger.classifier_.add_labels(
            X=replay.X, Y=replay.Y[:, first:], label_features=own_texts, **more
        )
    else:
        _learn_again(tagger, replay)
    _adopt(tagger, replay)
    tagger.label_names_ = grown
    tagger.n_added_ += len(new.names)
    _make_room(tagger, len(new.names))
    return no_room


def _learn_samples(
    tagger: "Tagger", texts: list[str], lists: list[list[str]], learned: list[str]
) -> None:
    """Labels that were `learned` just now are left out."""
    X, Y = tagger._features(texts), tagger.label_names_.matrix(lists)
    replay = tagger.replay_.joined(X, Y, texts, corrected=True)
    corrected = csr_matrix(replay.Y[: len(tagger.replay_)] - tagger.replay_.Y)
    corrected.eliminate_zeros()
    concerned = np.union1d(Y.indices, corrected.indices)
    concerned = np.setdiff1d(concerned, [tagger.label_names_.ids[name] for name in learned])
    kept = np.bincount(tagger.replay_.Y.indices, minlength=Y.shape[1])
    concerned = concerned[kept[concerned] == tagger.label_counts_[concerned]]
    if not hasattr(tagger.classifier_, "refit_labels"):
        _learn_again(tagger, replay)
    elif len(concerned):
        complete = len(tagger.replay_) == tagger.n_samples_
        tagger.classifier_.refit_labels(replay.X, replay.Y, concerned, nodes_too=complete)
    _adopt(tagger, replay)


def _labels_of(samples: list[str], new: NewLabels, names: LabelNames) -> csr_matrix:
    """(samples, labels): which of them are examples of which new label."""
    row_of = {text: row for row, text in enumerate(samples)}
    pairs = {(row_of[text], names.ids[name]) for name in new.names for text in new.examples[name]}
    rows, columns = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    ones = np.ones(len(rows), np.float32)
    return csr_matrix((ones, (rows, columns)), shape=(len(samples), len(names)))


def _adopt(tagger: "Tagger", replay: Replay) -> None:
    """Take samples that new ones were joined to, and count what is new in them."""
    n_labels = replay.Y.shape[1]
    before, after = (
        np.bincount(Y.indices, minlength=n_labels) for Y in (tagger.replay_.Y, replay.Y)
    )
    room = np.zeros(n_labels - len(tagger.label_counts_), np.int64)
    tagger.label_counts_ = np.append(tagger.label_counts_, room) + after - before
    tagger.n_samples_ += len(replay) - len(tagger.replay_)
    tagger.replay_ = replay


def _learn_again(tagger: "Tagger", replay: Replay) -> None:
    """For classifiers that cannot do better: all of it, if all of it was kept."""
    if len(tagger.replay_) < tagger.n_samples_:
        raise ParameterError(
            f"{type(tagger.classifier_).__name__} has to learn everything again, but only "
            f"{len(tagger.replay_):,} of {tagger.n_samples_:,} samples were kept: fit with a "
            "higher `replay`, or use a LabelTree"
        )
    own = getattr(tagger.classifier_, "label_features_", None)
    more = {} if own is None else {"label_features": own}
    tagger.classifier_ = clone(tagger.classifier_).fit(replay.X, replay.Y, **more)
    tagger.seen_features_ = seen_features(tagger.classifier_, replay.X)


def _make_room(tagger: "Tagger", n_new: int) -> None:
    """New labels in what was learned on held-out samples, where they do not occur."""
    if tagger.held_out_ is not None:
        n_relevant = np.append(tagger.held_out_.n_relevant, np.zeros(n_new, np.int64))
        tagger.held_out_ = replace(tagger.held_out_, n_relevant=n_relevant)
    thresholds = tagger.thresholds_
    if thresholds is not None and thresholds.per_label is not None:
        room: npt.NDArray[np.float32] = np.full(n_new, thresholds.least, np.float32)
        per_label = np.append(thresholds.per_label, room)
        tagger.thresholds_ = replace(thresholds, per_label=per_label)


def _check_words(X: csr_matrix, Y: csr_matrix, names: LabelNames) -> None:
    """A label that is known by nothing would be given to whatever else is not known."""
    n_examples, n_known = (
        np.bincount(part.indices, minlength=len(names)) for part in (Y, Y[np.diff(X.indptr) > 0])
    )
    for label in np.flatnonzero((n_examples > 0) & (n_known == 0)):
        raise LabelsError(
            f"{names.names[label]!r} cannot be learned, as no word of its examples is known, and "
            "the vectorizer has no room for new ones (Vectorizer(spare=10_000) has)"
        )
