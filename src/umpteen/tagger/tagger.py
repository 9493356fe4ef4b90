"""Tagger: texts in, label names out."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from numbers import Integral
from os import PathLike
from typing import Annotated, Any, ClassVar, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Interval

from umpteen import storage
from umpteen.base import (
    ExplainsByWeights,
    ExtremeClassifier,
    TopK,
)
from umpteen.data import LabelVocabulary
from umpteen.errors import (
    GroupsError,
    NotFittedError,
    ParameterError,
    RebuildDueWarning,
)
from umpteen.hub import push_to_hub
from umpteen.metrics import most_specific, with_ancestors
from umpteen.report import Report
from umpteen.storage import Given, Shape, Sizes, Within
from umpteen.storage.registry import is_storable
from umpteen.tagger import growth
from umpteen.tagger.assigning import assign_labels
from umpteen.tagger.calibration import RANKS, Calibration, ValidatedAnswers
from umpteen.tagger.evaluating import evaluate_tagger
from umpteen.tagger.explanation import TagExplanation, explain_tag
from umpteen.tagger.fitting import check_not_of_default, estimate_fit, fit_labelled
from umpteen.tagger.grouped import fit_groups
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.learned_groups import LearnedGroups
from umpteen.tagger.replay import Replay
from umpteen.tagger.state import State
from umpteen.tagger.thresholds import (
    Threshold,
    Thresholds,
    check_min_labels,
    check_validated,
    cut_as_asked,
    tune,
)
from umpteen.text.languages import check_language
from umpteen.validation import (
    check_k,
    check_label_lists,
    check_parameters,
    check_text,
    check_texts,
)

Tags = list[tuple[str, float]]

_K, _K_BY_THRESHOLD = 5, 20


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    state["validated_"] = state.pop("held_out_")


def _from_2(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    parameters.setdefault("language", None)
    if state:
        state.update(vocabulary_=None, trials_={})


def _from_3(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    if state:
        state["groups_"] = None


@storage.storable(version=4, upgrades={1: _from_1, 2: _from_2, 3: _from_3})
class Tagger(BaseEstimator):
    """Texts in, label names out: a vectorizer, a classifier and probabilities in one.

    `fit` takes texts and, for each, the names of its labels. `predict` returns names and
    probabilities: about 70 % of the labels with 0.7 are right. For that, `fit` first learns from
    nine tenths of the texts, calibrates on the rest (the validation split, 5,000 texts at most),
    and then learns from all of them. With `calibrate=False`, `fit` skips that, which saves a
    quarter of the time or more with a `LabelTree`, and `predict` returns the classifier's own
    scores.

    Parameters
    ----------
    classifier : any `ExtremeClassifier`; default `LabelTree.for_texts(cost="auto")`.
    language : ISO 639-1 code of the texts' language, such as "fi", for its stems; "auto" detects
        one or several languages. With 500 texts or more, `fit` compares plain words, stems, and
        both on part of the texts, then two costs of the default classifier, and uses the best;
        `trials_` has the nDCG@5 of each. With fewer texts, "auto" uses plain words and the default
        cost, as None always does.
    vectorizer : replaces the vectorizer that `language` chooses. Anything with `fit_transform` and
        `transform` works, but only those of umpteen can be saved.
    calibrate : whether to learn probabilities.
    replay : number of training samples whose features are kept, as negatives for `add_labels` and
        `partial_fit`; with 0, the model is smaller but has neither.
    keep_texts : whether to keep the texts of these samples as well, so that `explain` can show the
        nearest ones.
    random_state : seed of the validation split and of the kept samples.

    >>> texts = ["red apple pie", "green apple", "iron ore", "copper ore mine"] * 5
    >>> tagger = Tagger().fit(texts, [["fruit"], ["fruit"], ["metal"], ["metal", "mine"]] * 5)
    >>> [name for name, _ in tagger.predict("an apple", k=1)]
    ['fruit']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict_topk"]), None],
        "language": [str, None],
        "vectorizer": [HasMethods(["fit_transform", "transform"]), None],
        "calibrate": ["boolean"],
        "replay": [Interval(Integral, 0, None, closed="left")],
        "keep_texts": ["boolean"],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    classifier_: Annotated[ExtremeClassifier, Given("features", "labels")]
    vectorizer_: Annotated[Any, Given("features")]
    seen_features_: Annotated[npt.NDArray[np.bool_], Shape("features")]
    label_names_: Annotated[LabelNames, Given("labels")]
    label_counts_: Annotated[npt.NDArray[np.int64], Shape("labels"), Within(0, 2**62)]
    n_samples_: Annotated[int, Within(0, 2**62)]
    n_added_: Annotated[int, Within(0, 2**62)]
    calibration_: Calibration | None
    validated_: Annotated[ValidatedAnswers, Given("labels")] | None
    thresholds_: Annotated[Thresholds, Given("labels")] | None
    replay_: Annotated[Replay, Given("features", "labels")]
    vocabulary_: LabelVocabulary | None
    trials_: dict[str, float]
    groups_: LearnedGroups | None

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: members that cannot do what is asked of them."""
        if not hasattr(self.vectorizer_, "transform") or not is_storable(self.vectorizer_):
            yield f"has a {type(self.vectorizer_).__name__} in place of a vectorizer"
        if not hasattr(self.classifier_, "n_labels_"):
            yield "has a classifier that is not fitted"

    def __init__(
        self,
        classifier: ExtremeClassifier | None = None,
        *,
        language: str | None = "auto",
        vectorizer: Any = None,
        calibrate: bool = True,
        replay: int = 20_000,
        keep_texts: bool = False,
        random_state: int = 0,
    ) -> None:
        self.classifier = classifier
        self.language = language
        self.vectorizer = vectorizer
        self.calibrate = calibrate
        self.replay = replay
        self.keep_texts = keep_texts
        self.random_state = random_state

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, also those of a given part, such as `vectorizer__ngrams`."""
        check_not_of_default(self, parameters)
        super().set_params(**parameters)
        return self

    def fit(
        self,
        texts: Any,
        labels: Any = None,
        label_texts: Mapping[str, str] | str | None = "auto",
        vocabulary: LabelVocabulary | None = None,
        *,
        groups: Any = None,
        group_labels: Any = None,
        word_vectors: Callable[[list[str]], Any] | None = None,
    ) -> Self:
        """Learn from texts and their labels, and from what labels are called.

        `label_texts` maps labels to texts. `"names"` uses the words of the labels' names; by
        default, a `LabelTree` tries that on its validation split if there are 500 texts or more,
        and uses it if it helps; None does not. A `vocabulary` (`umpteen.data.read_vocabulary`) has
        names, alternative names and broader labels. Both may have labels that no training text has;
        a classifier that uses label texts can find them, too.

        If labels are known only for groups of texts, give `groups` and `group_labels` instead of
        `labels`: the group of each text, and a dictionary with the label names of each group. If
        several texts of a group are known to have a label, repeat its name; if no name is repeated,
        labels are only known to occur. If a group has no labels, its texts have none. The
        classifier learns from the labels that an `Eagle` assigns to texts, and probabilities are
        learned from validation groups. `groups_` says how the labels of groups were read.

        `word_vectors` returns the vectors that a list of words or n-grams starts from, as
        `umpteen.text.pretrained_vectors` does; a `SiameseXML` takes them.
        """
        check_parameters(self)
        check_language(self.language)
        if groups is not None or group_labels is not None:
            if labels is not None:
                raise GroupsError(
                    "fit takes either labels, those of each text, or groups and group_labels"
                )
            return self._adopt(
                fit_groups(self, texts, groups, group_labels, label_texts, vocabulary)
            )
        return self._adopt(fit_labelled(self, texts, labels, label_texts, vocabulary, word_vectors))

    @overload  # a str is an Iterable[str] as well
    def predict(  # type: ignore[overload-overlap]
        self,
        texts: str,
        k: int | None = ...,
        threshold: Threshold = ...,
        min_labels: int = ...,
        broader: str = ...,
    ) -> Tags: ...

    @overload
    def predict(
        self,
        texts: Iterable[str],
        k: int | None = ...,
        threshold: Threshold = ...,
        min_labels: int = ...,
        broader: str = ...,
    ) -> list[Tags]: ...

    def predict(
        self,
        texts: Any,
        k: int | None = None,
        threshold: Threshold = None,
        min_labels: int = 0,
        broader: str = "keep",
    ) -> Tags | list[Tags]:
        """Return the labels of a text, or of each of several: names and probabilities, best first.

        A text gets at most `k` labels (5 by default, or 20 with a threshold). `threshold=0.7`
        returns only labels whose probability is 0.7 or more, perhaps none. `threshold="tuned"` uses
        the thresholds of `tune_thresholds`; one of its metrics, such as `"precision@0.9"` or
        `"micro_f1"`, uses those that reach it. The best `min_labels` labels are always returned.
        With a vocabulary that has a hierarchy, `broader="drop"` leaves out labels that are broader
        than another answer of at least half their probability, and `"add"` adds all broader labels,
        each at least as probable as what is below it.
        Probabilities are rounded to six digits; ties are ordered by label id. A text without any
        word of the vocabulary gets no label. A text whose words all came after `fit` gets only
        labels that learned these words. With a hashing vectorizer, a new word that collides with
        a learned one counts as that word.
        """
        state = self._state
        min_labels = check_min_labels(min_labels, k)
        if k is None:
            k = max(_K if threshold is None else _K_BY_THRESHOLD, min_labels)
        one = isinstance(texts, str)
        top = self.predict_topk([texts] if one else texts, k)
        top = _with_broader(top, broader, state)
        cut = cut_as_asked(top, threshold, min_labels, state.thresholds, state.validated)
        found = cut.names(state.label_names.names)
        return found[0] if one else found

    def predict_topk(self, texts: Any, k: int = _K) -> TopK:
        """Return the `k` best labels of each text as ids: positions in `label_names_.names`.

        The result has at most one column per label, even if `k` is larger (see `TopK`).
        """
        state = self._state
        k = min(check_k(k), len(state.label_names))
        return state.answer(state.features(check_texts(texts)), k)

    def assign(
        self, texts: Any, groups: Any, group_labels: Any, *, none_of_these: float = 0.0
    ) -> list[Tags]:
        """Return the labels of each text, out of those of its group: names and confidences.

        The arguments are as in `fit`, for new groups; any fitted tagger can do this. A confidence
        is the probability that the text has the label, given that a text of its group has it. A
        label is assigned to as many texts of the group as it is repeated. If it is only known to
        occur, it is assigned to the best text and to all with a confidence of 0.5 or more. A label
        is left out if the probability that any text of its group has it is below `none_of_these`.
        Labels that the tagger does not know are left out, with a warning. Without calibration,
        confidences are computed from the classifier's scores.
        """
        return assign_labels(self._state, texts, groups, group_labels, none_of_these)

    def score(self, texts: Any, labels: Any) -> float:
        """Return the precision at 1: how often the best label is right."""
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        best = self.predict_topk(texts, k=1).names(self.label_names_.names)
        right = [bool(tags) and tags[0][0] in own for tags, own in zip(best, lists, strict=True)]
        return float(np.mean(right)) if right else 0.0

    def evaluate(
        self,
        texts: Any,
        labels: Any,
        *,
        ks: Iterable[int] = (1, 3, 5),
        title: str = "",
        n_examples: int = 12,
    ) -> Report:
        """Evaluate the answers to texts with given labels: a report to print, or `to_html`.

        Use texts that the tagger did not learn from. A few of them, drawn at random, are shown
        with the reasons for their best answer.
        """
        state, texts = self._state, check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        return evaluate_tagger(state, texts, lists, ks, title, n_examples)

    def tune_thresholds(
        self, metric: str = "micro_f1", texts: Any = None, labels: Any = None
    ) -> Thresholds:
        """Choose the threshold that `predict(threshold="tuned")` uses.

        `metric` is `"micro_f1"`, `"macro_f1"` (each label has its own threshold), or a goal such as
        `"precision@0.9"` (as many labels as possible, of which nine tenths are right) or
        `"recall@0.8"`. Without `texts` and `labels`, the validation split of `fit` is used. Never
        give texts that the tagger learned from.
        """
        state = self._state
        if texts is None and labels is not None:
            raise ParameterError("there are labels but no texts to tune on: give both, or neither")
        validated = (
            check_validated(state.validated) if texts is None else self._validated(texts, labels)
        )
        self.thresholds_ = tune(metric, validated)
        return self.thresholds_

    def add_labels(self, names: Any, texts: Any = None, examples: Any = None) -> Self:
        """Add labels from examples or from label texts, without training the rest again.

        `examples` has a list of texts for each name, `texts` a label text for each name; both are
        in the order of `names`, or dictionaries by name. A new label learns from its examples (or
        only from its label text), with those kept training samples as negatives that the
        classifier would confuse with it; without negatives it would be predicted everywhere. The
        scores of all other labels stay the same to the bit. So do their probabilities, unless a
        new label is among the best twenty of a text, which a probability takes into account.

        Words of the examples that no training text had are added to the vocabulary, and have
        weights for the new labels only. A `RebuildDueWarning` says that `fit` is due if more than a
        fifth of all labels are new, or if there is no room for more words. If an error is raised,
        the tagger is unchanged.
        """
        state, no_room = growth.add_labels(self._state, names, texts, examples)
        self._adopt(state)
        _warn(growth.rebuild_due(state), no_room)
        return self

    def remove_labels(self, names: Any) -> Self:
        """Remove labels: they are not predicted any more. The ids of the others stay."""
        return self._adopt(growth.remove_labels(self._state, names))

    def partial_fit(self, texts: Any, labels: Any, rejected: Any = None) -> Self:
        """Learn from more texts; new names become labels.

        The labels of these texts are trained again, on the kept samples and the new ones; scores of
        similar labels may change, too. So are the labels in `rejected`: for each text, those that
        were suggested and are wrong. If not all training samples were kept (`replay`), labels of
        which some samples are missing stay as they are, as they would lose more than they gain:
        `fit` again. If a text is among the kept ones, the given labels replace its labels. On a
        tagger that is not fitted yet, this is `fit`. If an error is raised, the tagger is
        unchanged.
        """
        if not hasattr(self, "replay_"):
            return self.fit(texts, labels)
        before = self._state
        growth.check_kept(before)
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        wrong = [] if rejected is None else check_label_lists(rejected, len(texts))
        state, no_room = growth.learn_more(before, texts, lists, wrong)
        self._adopt(state)
        _warn(growth.rebuild_due(state) if state.n_added > before.n_added else None, no_room)
        return self

    @property
    def labels(self) -> list[str]:
        """The names of all labels, in the order of their ids."""
        self._check_fitted()
        return list(self.label_names_.ids)

    @property
    def n_features(self) -> int:
        """The number of words and bigrams in the vocabulary."""
        return self._state.n_features

    @property
    def calibrated(self) -> bool:
        """Whether scores are probabilities.

        They are not with `calibrate=False`, with fewer than 50 texts, or with fewer than 20 groups.
        """
        self._check_fitted()
        return self.calibration_ is not None

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that `fit` chose by trials: forms of words, their language, and the cost.

        Empty if nothing was tried; `trials_` has the nDCG@5 of everything that was.
        """
        self._check_fitted()
        found: dict[str, Any] = {}
        if "words" in self.trials_:
            language, forms = self.vectorizer_.language, self.vectorizer_.forms
            found = (
                {"forms": "words"} if language is None else {"forms": forms, "language": language}
            )
        if any(name.startswith("cost") for name in self.trials_):
            found["cost"] = getattr(self.classifier_, "cost", None)
        return found

    @property
    def rebuild_due(self) -> str | None:
        """Why a new `fit` would be worth its time, or None."""
        return growth.rebuild_due(self._state)

    def explain(self, text: str, label: Any = None) -> TagExplanation:
        """Explain why a text gets a label (its best one by default): words, path, neighbours."""
        state = self._state
        text = check_text(text)
        number = None if label is None else state.label_names.id_of(label)
        return explain_tag(state, text, number)

    def label_keywords(self, label: Any, k: int = 10) -> Tags:
        """Return the words with the largest weights for a label, and these weights."""
        self._check_fitted()
        number = self.label_names_.id_of(label)
        if not isinstance(self.classifier_, ExplainsByWeights):
            raise ParameterError(f"{type(self.classifier_).__name__} has no keywords for labels")
        found = self.classifier_.label_keywords(number, check_k(k))
        words = self._state.words
        return [(words.name(feature), round(weight, 4)) for feature, weight in found]

    def estimate(self, texts: Any, labels: Any) -> Any:
        """Estimate what `fit` will need (memory, time, size of the model), from a small sample."""
        return estimate_fit(self, texts, labels)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tagger to the folder `path`; `umpteen.load(path)` loads it."""
        self._check_fitted()
        storage.save(self, path)

    def push_to_hub(self, repository: str, **options: Any) -> str:
        """Push the tagger to the Hugging Face Hub; `options` are those of `um.push_to_hub`."""
        self._check_fitted()
        return push_to_hub(self, repository, **options)

    def _validated(self, texts: Any, labels: Any) -> ValidatedAnswers:
        """Answers to texts that the tagger did not learn from, and which are right."""
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        if not texts:
            raise ParameterError("there are no texts to tune on: the list is empty")
        names = self._state.label_names.with_unknown(lists)
        return ValidatedAnswers.of(
            self.predict_topk(texts, RANKS).padded(RANKS), names.matrix(lists)
        )

    @property
    def _state(self) -> State:
        """What was learned; the same object as long as nothing changes."""
        self._check_fitted()
        learned = {field.name: getattr(self, f"{field.name}_") for field in fields(State)}
        last: State | None = self.__dict__.get("_last_state")
        if last is None or any(getattr(last, name) is not learned[name] for name in learned):
            last = self._last_state = State(**learned)
        return last

    def _adopt(self, state: State) -> Self:
        """Take a new state in one step, so that an interruption leaves the old one."""
        replay = state.replay.redrawn(self.replay, self.random_state, state.label_counts)
        state = replace(state, replay=replay)
        learned = {f"{field.name}_": getattr(state, field.name) for field in fields(State)}
        self.__dict__.update(learned)
        return self

    def _check_fitted(self) -> None:
        if not hasattr(self, "replay_"):
            raise NotFittedError(
                "this Tagger is not fitted yet: call fit(texts, labels) first, or umpteen.load a "
                "saved one"
            )


def _with_broader(top: TopK, broader: str, state: State) -> TopK:
    if broader not in ("keep", "drop", "add"):
        raise ParameterError(f"broader={broader!r} is not possible: use 'keep', 'drop' or 'add'")
    if broader == "keep":
        return top
    return (most_specific if broader == "drop" else with_ancestors)(top, state.parents)


def _warn(*reasons: str | None) -> None:
    """Warn at the line that called a method of the tagger."""
    for reason in filter(None, reasons):
        warnings.warn(reason, RebuildDueWarning, stacklevel=3)
