"""What labels are called: their texts and names, before anything is learned."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from umpteen.base import (
    ExtremeClassifier,
    LearnsFromLabelFeatures,
    MatchesLabelNames,
    WeighsLabelFeatures,
    is_able,
)
from umpteen.data import LabelVocabulary
from umpteen.data.label_matching import last_part
from umpteen.errors import ParameterError
from umpteen.tagger.label_names import LabelNames
from umpteen.text.names import has_words, words_of_name
from umpteen.validation import check_label_texts

FEWEST_TEXTS = 500  # below, there is nothing to choose by
_LONGEST_NAME = 8  # words
_SEPARATOR = re.compile(r"\.|::|/")  # of paths


@dataclass(frozen=True, eq=False)
class DescribedLabels:
    """The labels of a tagger, and the texts and names that its classifier learns from.

    `texts` has a text for each label, and `names` all its names; None if they are not used.
    """

    labels: LabelNames
    texts: list[str] | None
    names: list[list[str]] | None
    vocabulary: LabelVocabulary | None

    @classmethod
    def of(
        cls, label_texts: Any, vocabulary: Any, lists: list[list[str]],
        classifier: ExtremeClassifier,
    ) -> Self:  # fmt: skip
        """Return what the arguments of `Tagger.fit` say, as far as the classifier can use it.

        Names alone are used if the classifier finds out by itself whether they help and there are
        enough samples for that, or on request.
        """
        given = _checked(label_texts)
        vocabulary = _matching(vocabulary, lists)
        described = _described(given, vocabulary)
        labels = LabelNames.of(lists, described)
        able = is_able(classifier, LearnsFromLabelFeatures)
        if isinstance(given, dict) and not able:
            raise ParameterError(
                f"{type(classifier).__name__} does not learn from texts of labels: leave out "
                "label_texts, or use a LabelTree"
            )
        if described is None or not able:
            return cls(labels, _own_names(labels, given, classifier, len(lists)), None, vocabulary)
        texts = [text_with_name(label, described.get(label, "")) for label in labels.names]
        names = None
        if is_able(classifier, MatchesLabelNames):
            listed = {} if vocabulary is None else vocabulary.names()
            names = [
                list(listed.get(label) or names_in(label, described.get(label, "")))
                for label in labels.names
            ]
        return cls(labels, texts, names, vocabulary)

    def only(self, lists: list[list[str]]) -> "DescribedLabels":
        """Return the labels of some of the samples."""
        labels = LabelNames.of(lists)
        ids = [self.labels.ids[name] for name in labels.names]
        return replace(
            self,
            labels=labels,
            texts=None if self.texts is None else [self.texts[i] for i in ids],
            names=None if self.names is None else [self.names[i] for i in ids],
        )


def _checked(label_texts: Any) -> dict[str, str] | str | None:
    if label_texts is None or (isinstance(label_texts, str) and label_texts in ("auto", "names")):
        return label_texts
    if isinstance(label_texts, str):
        raise ParameterError(
            f"label_texts={label_texts!r} is not possible: use a dictionary from labels to texts, "
            "'names', 'auto' or None"
        )
    return check_label_texts(label_texts)


def _matching(vocabulary: Any, lists: list[list[str]]) -> LabelVocabulary | None:
    """The vocabulary, with labels as the samples write them."""
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, LabelVocabulary):
        raise ParameterError(
            f"vocabulary is a {type(vocabulary).__name__}; expected the LabelVocabulary that "
            "umpteen.data.read_vocabulary(file) returns"
        )
    return vocabulary.matching({name for names in lists for name in names})


def _described(
    given: dict[str, str] | str | None, vocabulary: LabelVocabulary | None
) -> Mapping[str, str] | None:
    """Texts by label, of the vocabulary and as given; None if there are none but names."""
    texts = given if isinstance(given, dict) else {}
    if vocabulary is None:
        return given if isinstance(given, dict) else None
    listed = vocabulary.texts().items()
    return texts | {label: f"{text} {texts.get(label, '')}" for label, text in listed}


def _own_names(
    labels: LabelNames, given: Any, classifier: ExtremeClassifier, n_samples: int
) -> list[str] | None:
    """The words of the labels' names, if they are to be used."""
    tries = is_able(classifier, WeighsLabelFeatures) and n_samples >= FEWEST_TEXTS
    wanted = given == "names" and is_able(classifier, LearnsFromLabelFeatures)
    if not wanted and not (given == "auto" and tries):
        return None
    texts = [text_with_name(label, "") for label in labels.names]
    return texts if any(texts) else None


def text_with_name(name: str, text: str) -> str:
    """Return a label's text after the words of its name, unless it has them or the name is a code.

    >>> (
    ...     text_with_name("re.split", "Split by a pattern."),
    ...     text_with_name("n00001740", "entity"),
    ...     text_with_name("b-tree", ""),
    ... )
    ('re split Split by a pattern.', 'entity', 'b tree')
    """
    words, lower = _words_of(name), text.lower()
    if not words or (text and all(word in lower for word in words.lower().split())):
        return text
    return f"{words} {text}".strip()


def _words_of(name: str) -> str:
    """The words of a name, or "" for a code. Of a URI, only the last part is a name.

    >>> _words_of("http://example.org/Heart_attack"), _words_of("<http://example.org/onto#c7>")
    ('Heart attack', '')
    """
    words = words_of_name(last_part(name.strip("<>")) if "://" in name else name)
    return words if has_words(words) else ""


def _last_of_path(name: str) -> str:
    """What follows the last separator of a path, "" if a name is none."""
    is_path = "://" not in name and len(name.split()) == 1
    _, *rest = _SEPARATOR.split(name)
    return rest[-1] if is_path and rest else ""


def names_in(name: str, text: str) -> list[str]:
    """Return the names of a label: that of its id, and phrases between semicolons in its text.

    An id that is a path, such as `re.split`, has two names: people ask for its last part alone. A
    text that is no such list is the name of a label whose id is a code.

    >>> names_in("c_2", "heart attack; myocardial infarction"), names_in("b-tree", "Sorted data.")
    (['heart attack', 'myocardial infarction'], ['b tree'])
    >>> names_in("re.split", "Split by a pattern.")
    ['re split', 'split']
    """
    own = list(dict.fromkeys(filter(None, (_words_of(name), _words_of(_last_of_path(name))))))
    phrases = [phrase.strip() for phrase in text.split(";") if phrase.strip()]
    if len(phrases) < 2 or any(len(phrase.split()) > _LONGEST_NAME for phrase in phrases):
        return own or [text]
    return list(dict.fromkeys(own + phrases))
