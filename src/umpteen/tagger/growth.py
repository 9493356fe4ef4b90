"""Labels that come and go, and new samples, without learning everything again.

Each function takes the state of a tagger and returns another one; nothing is written into the old.
"""

from collections.abc import Iterable, Mapping, Sized
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen.base import AddsLabels, RefitsLabels, RemovesLabels, is_able
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.tagger.described_labels import text_with_name
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.replay import Replay
from umpteen.tagger.state import State, seen_features
from umpteen.tagger.vectorizing import learn_words
from umpteen.validation import check_names, check_texts

_MANY_NEW = 0.2  # share of labels that were added, from which on a new fit is worth its time

Changed = tuple[State, str | None]  # and what there was no room for


@dataclass(frozen=True)
class NewLabels:
    """Names that are new, the texts that have each of them, and their own texts where given."""

    names: list[str]
    examples: Mapping[str, list[str]]
    own_texts: Mapping[str, str]

    @classmethod
    def checked(cls, names: Any, own_texts: Any, examples: Any) -> "NewLabels":
        """Return the new labels that the arguments of `Tagger.add_labels` describe."""
        names = check_names(names)
        if not names:
            raise LabelsError("names is empty: give the names of the new labels")
        texts = _by_name(own_texts, names, "texts")
        lists = {
            name: check_texts(found, f"examples of {name!r}")
            for name, found in _by_name(examples, names, "examples").items()
        }
        for name in names:
            if not lists.get(name) and not str(texts.get(name) or "").strip():
                raise LabelsError(
                    f"{name!r} has neither examples nor a text: there is nothing to learn"
                )
        own = dict(zip(texts, check_texts(texts.values(), "texts of labels"), strict=True))
        # a text alone is the one example that there is
        return cls(names, {name: lists.get(name) or [own[name]] for name in names}, own)


def add_labels(state: State, names: Any, texts: Any, examples: Any) -> Changed:
    """Return the state with new labels: see `Tagger.add_labels`."""
    new = NewLabels.checked(names, texts, examples)
    for name in new.names:
        if name in state.label_names.ids:
            raise LabelsError(
                f"{name!r} is a label already: use partial_fit to give it more examples"
            )
    check_kept(state)
    return _with_new(_copied(state), new)


def learn_more(
    state: State, texts: list[str], lists: list[list[str]], rejected: list[list[str]]
) -> Changed:
    """Return the state after more samples: see `Tagger.partial_fit`."""
    check_kept(state)
    ids = state.label_names.ids
    wrong = [ids[name] for name in chain.from_iterable(rejected) if name in ids]
    names = sorted(set(chain.from_iterable(lists)) - state.label_names.ids.keys())
    state = _copied(state)
    if names:
        state, _ = _with_new(state, NewLabels(names, examples_of(texts, lists, names), {}))
    no_room = learn_words(state.vectorizer, texts)
    return _with_samples(state, texts, lists, names, wrong), no_room


def remove_labels(state: State, names: Any) -> State:
    """Return the state without some labels: see `Tagger.remove_labels`."""
    names = check_names(names)
    left = state.label_names.without(names)
    ids = np.array([state.label_names.id_of(name) for name in names], np.int32)
    if len(left.ids) == 0:
        raise LabelsError("this would remove all labels; at least one must stay")
    stays = ~np.isin(np.arange(len(left)), ids)
    Y = csr_matrix(state.replay.Y @ sparse.diags(stays, dtype=np.float32), dtype=np.float32)
    Y.eliminate_zeros()
    replay = replace(state.replay, Y=Y)
    state = _copied(state)
    if is_able(state.classifier, RemovesLabels):
        state.classifier.remove_labels(ids)  # type: ignore[attr-defined]
    else:
        state = _learned_again(state, replay)
    return replace(
        state,
        label_names=left,
        replay=replay,
        label_counts=state.label_counts * stays,
        validated=None if state.validated is None else state.validated.without(ids),
    )


def rebuild_due(state: State) -> str | None:
    """Return why a new `fit` would be worth its time, or None."""
    ids = state.label_names.ids
    first_new = len(state.label_names) - state.n_added
    n_new = sum(label >= first_new for label in ids.values())
    if n_new <= _MANY_NEW * len(ids):
        return None
    return (
        f"{n_new:,} of {len(ids):,} labels were added after the last fit, and every text is scored "
        "for each of them: fit again for faster predictions"
    )


def check_kept(state: State) -> None:
    """Refuse to learn where no training samples were kept."""
    if len(state.replay) == 0:
        raise ParameterError(
            "this tagger kept no training samples (replay=0), so a label would have "
            "no negatives: fit with a higher replay, such as replay=20_000"
        )


def _copied(state: State) -> State:
    """What methods of the vectorizer and the classifier change, they change in these copies."""
    return replace(state, vectorizer=copy(state.vectorizer), classifier=copy(state.classifier))


def _own_texts(state: State, new: NewLabels) -> list[str]:
    """The texts of new labels; with their names, if those of other labels count."""
    texts = [new.own_texts.get(name, "") for name in new.names]
    if getattr(state.classifier, "label_texts_", None) is None:
        return texts
    texts = [text_with_name(name, text) for name, text in zip(new.names, texts, strict=True)]
    learn_words(state.vectorizer, texts)
    return texts


def _with_new(state: State, new: NewLabels) -> Changed:
    samples = list(dict.fromkeys(chain.from_iterable(new.examples.values())))
    grown = state.label_names.with_new(new.names)
    Y = _labels_of(samples, new, grown)
    no_room = learn_words(state.vectorizer, samples)
    X = state.features(samples)
    _check_words(X, Y, grown)
    replay = state.replay.widened(len(grown)).joined(X, Y, samples)
    own_texts = state.features(_own_texts(state, new))
    if is_able(state.classifier, AddsLabels):
        state.classifier.add_labels(  # type: ignore[attr-defined]
            replay.X, replay.Y[:, len(state.label_names) :], own_texts,
            negative_weight=state.n_samples / len(state.replay),
        )  # fmt: skip
    else:
        state = _learned_again(state, replay)
    state = _with_room(_adopted(state, replay), len(new.names))
    return replace(state, label_names=grown, n_added=state.n_added + len(new.names)), no_room


def _with_samples(
    state: State, texts: list[str], lists: list[list[str]], learned: list[str], wrong: list[int]
) -> State:
    """Labels that were `learned` just now are left out; those that were `wrong` take part."""
    X, Y = state.features(texts), state.label_names.matrix(lists)
    replay = state.replay.joined(X, Y, texts, corrected=True)
    corrected = csr_matrix(replay.Y[: len(state.replay)] - state.replay.Y)
    corrected.eliminate_zeros()
    concerned = np.union1d(np.union1d(Y.indices, corrected.indices), np.array(wrong, np.int64))
    concerned = np.setdiff1d(concerned, [state.label_names.ids[name] for name in learned])
    kept = np.bincount(state.replay.Y.indices, minlength=Y.shape[1])
    concerned = concerned[kept[concerned] == state.label_counts[concerned]]
    if not is_able(state.classifier, RefitsLabels):
        state = _learned_again(state, replay)
    elif len(concerned):
        complete = len(state.replay) == state.n_samples
        state.classifier.refit_labels(  # type: ignore[attr-defined]
            replay.X, replay.Y, concerned, nodes_too=complete
        )
    return _adopted(state, replay)


def _labels_of(samples: list[str], new: NewLabels, names: LabelNames) -> csr_matrix:
    """(samples, labels): which of them are examples of which new label."""
    row_of = {text: row for row, text in enumerate(samples)}
    pairs = {(row_of[text], names.ids[name]) for name in new.names for text in new.examples[name]}
    rows, columns = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    ones = np.ones(len(rows), np.float32)
    return csr_matrix((ones, (rows, columns)), shape=(len(samples), len(names)))


def _adopted(state: State, replay: Replay) -> State:
    """Take samples that new ones were joined to, and count what is new in them."""
    n_labels = replay.Y.shape[1]
    before, after = (np.bincount(Y.indices, minlength=n_labels) for Y in (state.replay.Y, replay.Y))
    room = np.zeros(n_labels - len(state.label_counts), np.int64)
    return replace(
        state,
        label_counts=np.append(state.label_counts, room) + after - before,
        n_samples=state.n_samples + len(replay) - len(state.replay),
        replay=replay,
    )


def _learned_again(state: State, replay: Replay) -> State:
    """Fit the classifier again on all samples, if all of them were kept."""
    if len(state.replay) < state.n_samples:
        raise ParameterError(
            f"{type(state.classifier).__name__} has to learn everything again, but only "
            f"{len(state.replay):,} of {state.n_samples:,} samples were kept: fit with a "
            "higher `replay`, or use a LabelTree"
        )
    own = getattr(state.classifier, "label_features_", None)
    more = {} if own is None else {"label_features": own}
    classifier = clone(state.classifier).fit(replay.X, replay.Y, **more)
    return replace(state, classifier=classifier, seen_features=seen_features(classifier, replay.X))


def _with_room(state: State, n_new: int) -> State:
    """New labels in what was learned on the validation split, where they do not occur."""
    validated, thresholds = state.validated, state.thresholds
    if validated is not None:
        n_relevant = np.append(validated.n_relevant, np.zeros(n_new, np.int64))
        validated = replace(validated, n_relevant=n_relevant)
    if thresholds is not None and thresholds.per_label is not None:
        room: npt.NDArray[np.float32] = np.full(n_new, thresholds.least, np.float32)
        per_label = np.append(thresholds.per_label, room)
        thresholds = replace(thresholds, per_label=per_label)
    return replace(state, validated=validated, thresholds=thresholds)


def _check_words(X: csr_matrix, Y: csr_matrix, names: LabelNames) -> None:
    """A label without any feature would be given to every sample without features."""
    n_examples, n_nonempty = (
        np.bincount(part.indices, minlength=len(names)) for part in (Y, Y[np.diff(X.indptr) > 0])
    )
    for label in np.flatnonzero((n_examples > 0) & (n_nonempty == 0)):
        raise LabelsError(
            f"{names.names[label]!r} cannot be learned, as no word of its examples is in the "
            "vocabulary, and the vectorizer has no room for new ones (Vectorizer(spare=10_000) has)"
        )


def examples_of(
    texts: list[str], lists: list[list[str]], names: Iterable[str]
) -> dict[str, list[str]]:
    """Return the texts that have each of some names."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for text, own in zip(texts, lists, strict=True):
        for name in own:
            if name in found:
                found[name].append(text)
    return found


def _by_name(given: Any, names: list[str], what: str) -> dict[str, Any]:
    """Something for each name: a dictionary, or a list in the order of the names."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = _in_order(given, names, what)
    wanted = set(names)
    unasked = [str(name) for name in given if str(name) not in wanted]
    if unasked:
        raise LabelsError(f"{what} has {unasked[0]!r}, which is not among the names")
    return {
        str(name): value
        for name, value in given.items()
        if value is not None and (not isinstance(value, Sized) or len(value))
    }


def _in_order(given: Any, names: list[str], what: str) -> dict[str, Any]:
    given = given.tolist() if isinstance(given, np.ndarray) else given
    values = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if what == "examples" and len(names) == 1 and all(isinstance(value, str) for value in values):
        return {names[0]: values}
    if len(values) != len(names):
        raise LabelsShapeError(
            f"{len(names):,} names but {what} for {len(values):,}; expected a dictionary by name, "
            f"or a list with the {what} of each name in order"
        )
    return dict(zip(names, values, strict=True))
