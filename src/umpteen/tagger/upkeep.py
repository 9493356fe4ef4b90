"""Room for new words and labels, and when a new `fit` is due."""

import warnings
from typing import TYPE_CHECKING, Any

from umpteen.errors import ParameterError, RebuildDueWarning

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger

_MANY_NEW = 0.2  # share of labels that were added, from which on a new fit is worth its time


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


def warn_of(*reasons: str | None) -> None:
    """To be called by a method of the tagger: the warning names the line that called that."""
    for reason in filter(None, reasons):
        warnings.warn(reason, RebuildDueWarning, stacklevel=3)


def learn_words(vectorizer: Any, texts: list[str]) -> str | None:
    """Words that no training text had, where the vectorizer can learn them.

    Returns what there was no room for, if anything.
    """
    if not hasattr(vectorizer, "learn_words"):
        return None
    vectorizer.learn_words(texts)
    word = _word_without_room(vectorizer, texts)
    if word is None:
        return None
    return (
        f"the vectorizer has no column left for new words such as {word!r}, which therefore do "
        "not count: fit again, with a higher Vectorizer(spare=...) if many are still to come"
    )


def _word_without_room(vectorizer: Any, texts: list[str]) -> str | None:
    if vectorizer.n_known < vectorizer.n_features_ or vectorizer.vocabulary_ is None:
        return None  # there is room, or hashing knows all words
    for text in texts:
        known = set(vectorizer.named_features(text).values())
        for word in vectorizer.words(text):
            if word not in known:
                return str(word)
    return None


def check_kept(tagger: "Tagger") -> None:
    """Refuse to learn where no training samples were kept."""
    if len(tagger.replay_) == 0:
        raise ParameterError(
            "this tagger kept no training samples (replay=0), so nothing shows what a label "
            "is not: fit with replay=20_000, say"
        )
