"""Labels that come and go, and new samples, without learning everything again."""

import warnings
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsError, LabelsShapeError, ParameterError, RebuildDueWarning
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.replay import Replay
from umpteen.validation import check_names, check_texts

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger

_MANY_NEW = 0.2  # share of labels that were added, from which on a new fit is worth its time


def add_labels(tagger: "Tagger", names: Any, texts: Any, examples: Any) -> None:
    """Give the tagger new labels: see `Tagger.add_labels`."""
    names = check_names(names)
    own_texts = _by_name(texts, names, "texts")
    lists = {
        name: check_texts(found, f"examples of {name!r}")
        for name, found in _by_name(examples, names, "examples").items()
    }
    _check_new(tagger, names, own_texts, lists)
    own = check_texts(own_texts.values(), "texts of labels")
    for name, text in zip(own_texts, own, strict=True):
        lists.setdefault(name, [text])  # a text alone is the one example that there is
    learn_new(tagger, names, own_texts, lists)


def learn_new(
    tagger: "Tagger", names: list[str], own_texts: Mapping[str, str], lists: Mapping[str, list[str]]
) -> None:
    """The work of `add_labels`, for checked input."""
    samples = list(dict.fromkeys(text for found in lists.values() for text in found))
    row_of = {text: row for row, text in enumerate(samples)}
    grown = tagger.label_names_.with_new(names)
    rows = np.concatenate([[row_of[text] for text in lists[name]] for name in names])
    columns = np.repeat([grown.ids[name] for name in names], [len(lists[name]) for name in names])
    ones = np.ones(len(rows), np.float32)
    Y = csr_matrix((ones, (rows, columns)), shape=(len(samples), len(grown)))
    Y.data[:] = 1  # a text that was given twice
    learn_words(tagger.vectorizer_, samples)
    X = tagger._features(samples)
    _check_words(X, Y, grown)
    replay = tagger.replay_.widened(len(grown)).joined(X, Y, samples)
    label_features = tagger._features([own_texts.get(name, "") for name in names])
    if hasattr(tagger.classifier_, "add_labels"):
        first = len(tagger.label_names_)
        stands_for = tagger.n_samples_ / len(tagger.replay_)
        tagger.classifier_.add_labels(
            replay.X, replay.Y[:, first:], label_features, negative_weight=stands_for
        )
    else:
        _learn_again(tagger, replay.X, replay.Y)
    _adopt(tagger, replay)
    tagger.label_names_ = grown
    tagger.n_added_ += len(names)
    _make_room(tagger, len(names))


def remove_labels(tagger: "Tagger", names: Any) -> None:
    """Take labels from the tagger: see `Tagger.remove_labels`."""
    names = check_names(names)
    left = tagger.label_names_.without(names)
    ids = np.array([tagger.label_names_.id_of(name) for name in names], np.int32)
    if len(left.ids) == 0:
        raise LabelsError("these are all labels that there are; at least one must stay")
    Y = tagger.replay_.Y @ sparse.diags(~np.isin(np.arange(len(left)), ids), dtype=np.float32)
    Y = csr_matrix(Y, dtype=np.float32)
    Y.eliminate_zeros()
    if hasattr(tagger.classifier_, "remove_labels"):
        tagger.classifier_.remove_labels(ids)
    else:
        _learn_again(tagger, tagger.replay_.X, Y)
    tagger.label_names_, tagger.replay_ = left, replace(tagger.replay_, Y=Y)
    tagger.label_counts_[ids] = 0
    if tagger.held_out_ is not None:
        tagger.held_out_ = tagger.held_out_.without(ids)


def learn_more(
    tagger: "Tagger", texts: list[str], lists: list[list[str]], learned: Sequence[str]
) -> None:
    """More samples: see `Tagger.partial_fit`. Labels that were `learned` just now are left out."""
    learn_words(tagger.vectorizer_, texts)
    X, Y = tagger._features(texts), tagger.label_names_.matrix(lists)
    replay = tagger.replay_.joined(X, Y, texts, corrected=True)
    corrected = csr_matrix(replay.Y[: len(tagger.replay_)] - tagger.replay_.Y)
    corrected.eliminate_zeros()
    concerned = np.union1d(Y.indices, corrected.indices)
    concerned = np.setdiff1d(concerned, [tagger.label_names_.ids[name] for name in learned])
    kept = np.bincount(tagger.replay_.Y.indices, minlength=Y.shape[1])
    concerned = concerned[kept[concerned] == tagger.label_counts_[concerned]]
    if not hasattr(tagger.classifier_, "refit_labels"):
        _learn_again(tagger, replay.X, replay.Y)
    elif len(concerned):
        complete = len(tagger.replay_) == tagger.n_samples_
        tagger.classifier_.refit_labels(replay.X, replay.Y, concerned, nodes_too=complete)
    _adopt(tagger, replay)


def examples_of(
    texts: list[str], lists: list[list[str]], names: Iterable[str]
) -> dict[str, list[str]]:
    """The texts that have each of some names."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for text, own in zip(texts, lists, strict=True):
        for name in own:
            if name in found:
                found[name].append(text)
    return found


def rebuild_due(tagger: "Tagger") -> str | None:
    """Why a new `fit` would be worth its time, if it would."""
    ids = tagger.label_names_.ids
    first_new = len(tagger.label_names_) - tagger.n_added_
    n_new = sum(label >= first_new for label in ids.values())
    if n_new <= _MANY_NEW * len(ids):
        return None
    return (
        f"{n_new:,} of {len(ids):,} labels were added after the last fit, and every text is asked "
        "about each of them: fit again for quicker answers"
    )


def warn_if_rebuild_due(tagger: "Tagger") -> None:
    """To be called by a method of the tagger: the warning names the line that called that."""
    if reason := rebuild_due(tagger):
        warnings.warn(reason, RebuildDueWarning, stacklevel=3)


def check_kept(tagger: "Tagger") -> None:
    """Refuse to learn where no training samples were kept."""
    if len(tagger.replay_) == 0:
        raise ParameterError(
            "this tagger kept no training samples (replay=0), so nothing shows what a label "
            "is not: fit with replay=20_000, say"
        )


def learn_words(vectorizer: Any, texts: list[str]) -> None:
    """Words that no training text had, where the vectorizer can learn them."""
    if hasattr(vectorizer, "learn_words"):
        vectorizer.learn_words(texts)


def _adopt(tagger: "Tagger", replay: Replay) -> None:
    """Keep samples that new ones were joined to, and count what is new in them."""
    n_labels = replay.Y.shape[1]
    before, after = (
        np.bincount(Y.indices, minlength=n_labels) for Y in (tagger.replay_.Y, replay.Y)
    )
    room = np.zeros(n_labels - len(tagger.label_counts_), np.int64)
    tagger.label_counts_ = np.append(tagger.label_counts_, room) + after - before
    tagger.n_samples_ += len(replay) - len(tagger.replay_)
    tagger.replay_ = replay


def _learn_again(tagger: "Tagger", X: csr_matrix, Y: csr_matrix) -> None:
    """For classifiers that cannot do better: all of it, if all of it was kept."""
    if len(tagger.replay_) < tagger.n_samples_:
        raise ParameterError(
            f"{type(tagger.classifier_).__name__} has to learn everything again, but only "
            f"{len(tagger.replay_):,} of {tagger.n_samples_:,} samples were kept: fit with a "
            "higher `replay`, or use a LabelTree"
        )
    tagger.classifier_.fit(X, Y)


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


def _by_name(given: Any, names: list[str], what: str) -> dict[str, Any]:
    """Something for each name: a dictionary, or a list in the order of the names."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = _in_order(given, names, what)
    strangers = [str(name) for name in given if str(name) not in names]
    if strangers:
        raise LabelsError(f"{what} has {strangers[0]!r}, which is not among the names")
    return {
        str(name): value
        for name, value in given.items()
        if value is not None and (not isinstance(value, Sized) or len(value))
    }


def _in_order(given: Any, names: list[str], what: str) -> dict[str, Any]:
    if what == "examples" and len(names) == 1 and _are_texts(given):
        return {names[0]: given}
    values = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if len(values) != len(names):
        raise LabelsShapeError(
            f"{len(names):,} names but {what} for {len(values):,}; expected a dictionary by name, "
            f"or a list with the {what} of each name in order"
        )
    return dict(zip(names, values, strict=True))


def _are_texts(given: Any) -> bool:
    """Whether it is a list of texts, as one name alone may have."""
    return isinstance(given, list | tuple) and all(isinstance(text, str) for text in given)


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


def _check_new(
    tagger: "Tagger", names: list[str], texts: Mapping[str, Any], lists: Mapping[str, Any]
) -> None:
    if not names:
        raise LabelsError("there are no names: which labels are new?")
    for name in names:
        if name in tagger.label_names_.ids:
            raise LabelsError(
                f"{name!r} is a label already: use partial_fit to give it more examples"
            )
        if not lists.get(name) and not str(texts.get(name) or "").strip():
            raise LabelsError(
                f"{name!r} has neither examples nor a text: there is nothing to learn"
            )
    check_kept(tagger)
