"""Tagger: texts in, label names out."""

from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from os import PathLike
from typing import Annotated, Any, ClassVar, Self, overload

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, Interval

from umpteen import storage
from umpteen.base import ExtremeClassifier, TopK
from umpteen.errors import LabelsError, NotFittedError, ParameterError
from umpteen.linear import LabelTree
from umpteen.progress import compile_line
from umpteen.report import Report
from umpteen.storage import Given, Shape, Sizes, Within
from umpteen.storage.registry import is_storable
from umpteen.tagger.calibration import Calibration, hold_out
from umpteen.tagger.evaluating import evaluate_tagger
from umpteen.tagger.evidence import seen_features, without_guesses
from umpteen.tagger.explanation import TagExplanation, explain_tag
from umpteen.tagger.growth import add_labels, learn_more, remove_labels
from umpteen.tagger.held_out import RANKS, HeldOut, judged
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.reading import read_texts
from umpteen.tagger.replay import Replay
from umpteen.tagger.thresholds import (
    Threshold,
    Thresholds,
    check_min_labels,
    cut_as_asked,
    tune,
)
from umpteen.tagger.upkeep import check_kept, rebuild_due, warn_of
from umpteen.tagger.words import Words
from umpteen.text import Vectorizer
from umpteen.validation import (
    as_csr,
    check_features,
    check_k,
    check_label_lists,
    check_label_texts,
    check_parameters,
    check_texts,
)

Tags = list[tuple[str, float]]

_K, _K_BY_THRESHOLD = 5, 20
_N_KERNELS = 9  # that the first fit on a machine compiles
_SPARE = 10_000  # columns for words that come with new labels and samples


@storage.storable
class Tagger(BaseEstimator):
    """Texts in, label names out: a vectorizer, a classifier and probabilities in one.

    `fit` takes texts and, for each, the names of its labels. `predict` answers with names and
    probabilities: of the labels that get 0.7, about 70 % are right. For that, `fit` first learns
    from nine tenths of the texts and looks how often it is right on the rest (5,000 at most),
    then learns from all of them; `calibrate=False` saves that half of the time, and `predict`
    then answers with the classifier's own scores.

    Parameters
    ----------
    classifier : any `ExtremeClassifier`; default `LabelTree.for_texts()`.
    vectorizer : default `umpteen.text.Vectorizer(spare=10_000)`; anything with `fit_transform` and
        `transform` works, but only ours can be saved.
    calibrate : whether to learn probabilities.
    replay : training samples that are kept as numbers, for `add_labels` and `partial_fit` to
        learn against; 0 for a smaller model that can do neither.
    keep_texts : whether to keep the texts of those as well, for `explain` to show the nearest.

    >>> texts = ["red apple pie", "green apple", "iron ore", "copper ore mine"] * 5
    >>> tagger = Tagger().fit(texts, [["fruit"], ["fruit"], ["metal"], ["metal", "mine"]] * 5)
    >>> [name for name, _ in tagger.predict("an apple", k=1)]
    ['fruit']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict_topk"]), None],
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
    held_out_: Annotated[HeldOut, Given("labels")] | None
    thresholds_: Annotated[Thresholds, Given("labels")] | None
    replay_: Annotated[Replay, Given("features", "labels")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: parts that cannot do what is asked of them."""
        if not hasattr(self.vectorizer_, "transform") or not is_storable(self.vectorizer_):
            yield f"has a {type(self.vectorizer_).__name__} in place of a vectorizer"
        if not hasattr(self.classifier_, "n_labels_"):
            yield "has a classifier that is not fitted"

    def __init__(
        self,
        classifier: ExtremeClassifier | None = None,
        *,
        vectorizer: Any = None,
        calibrate: bool = True,
        replay: int = 20_000,
        keep_texts: bool = False,
        random_state: int = 0,
    ) -> None:
        self.classifier = classifier
        self.vectorizer = vectorizer
        self.calibrate = calibrate
        self.replay = replay
        self.keep_texts = keep_texts
        self.random_state = random_state

    def fit(self, texts: Any, labels: Any, label_texts: Mapping[str, str] | None = None) -> Self:
        """Learn from texts and the names of their labels, and from texts of the labels if given.

        `label_texts` maps names to texts; it may have labels that no text has, which a
        classifier that learns from texts of labels can find all the same.
        """
        check_parameters(self)
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        if label_texts is not None:
            label_texts = check_label_texts(label_texts)
        if texts and not any(lists):
            raise LabelsError(
                "no text has a label, so there is nothing to learn; expected a list of label "
                "names for each text"
            )
        names = LabelNames.of(lists, label_texts)
        vectorizer, classifier = self._new_vectorizer(), self._new_classifier()
        own_texts = None if label_texts is None else names.texts(label_texts)
        with compile_line(_N_KERNELS, getattr(classifier, "verbose", False)):
            X, more = read_texts(vectorizer, classifier, texts, own_texts)
        Y, seed = names.matrix(lists), self.random_state
        trial = self._new_classifier() if self.calibrate else None
        calibration, held_out = hold_out(trial, X, Y, more, seed) if trial else (None, None)
        classifier.fit(X, Y, **more)
        kept = list(texts) if self.keep_texts else None
        learned = {
            "classifier_": classifier,
            "vectorizer_": vectorizer,
            "seen_features_": seen_features(classifier, X, more.get("label_features")),
            "label_names_": names,
            "label_counts_": np.bincount(Y.indices, minlength=Y.shape[1]),
            "n_samples_": len(texts),
            "n_added_": 0,
            "calibration_": calibration,
            "held_out_": held_out,
            "thresholds_": None,
            "replay_": Replay.drawn(X, Y, kept, self.replay, seed),
        }
        self.__dict__.update(learned)  # one step: an interrupted fit leaves what there was
        return self

    @overload  # a str is an Iterable[str] as well
    def predict(  # type: ignore[overload-overlap]
        self, texts: str, k: int | None = ..., threshold: Threshold = ..., min_labels: int = ...
    ) -> Tags: ...

    @overload
    def predict(
        self,
        texts: Iterable[str],
        k: int | None = ...,
        threshold: Threshold = ...,
        min_labels: int = ...,
    ) -> list[Tags]: ...

    def predict(
        self, texts: Any, k: int | None = None, threshold: Threshold = None, min_labels: int = 0
    ) -> Tags | list[Tags]:
        """The labels of a text, or of each of several texts: names and probabilities, best first.

        At most `k` labels (5, or 20 with a threshold). `threshold=0.7` gives only labels whose
        probability is 0.7 or more, so that a text may get none; `threshold="tuned"` those that
        `tune_thresholds` chose, and one of its metrics such as `"precision@0.9"` or `"micro_f1"`
        those that reach it. The best `min_labels` labels are returned whatever their probability.
        Probabilities are rounded to six digits; ties are ordered by label id. A text without any
        known word gets no label. A text whose words all came after `fit` gets only labels that
        learned these words. With a hashing vectorizer, an unknown word that collides with a known
        one counts as that word.
        """
        self._check_fitted()
        min_labels = check_min_labels(min_labels, k)
        if k is None:
            k = max(_K if threshold is None else _K_BY_THRESHOLD, min_labels)
        one = isinstance(texts, str)
        top = self.predict_topk([texts] if one else texts, min(check_k(k), self._n_labels))
        found = cut_as_asked(self, top, threshold, min_labels).names(self.label_names_.names)
        return found[0] if one else found

    def predict_topk(self, texts: Any, k: int = _K) -> TopK:
        """Return the `k` best labels of each text as ids: positions in `label_names_.names`.

        The result has at most one column per label, even if `k` is larger (see `TopK`).
        """
        self._check_fitted()
        k = min(check_k(k), self._n_labels)
        return self._answer(self._features(check_texts(texts)), k)

    def score(self, texts: Any, labels: Any) -> float:
        """Precision at 1: how often the best label is right."""
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
        """How good the answers to texts are whose labels are known: print it, or `to_html`.

        Use texts that the tagger did not learn from. A few of them, drawn at random, are shown
        with the reasons for their best answer.
        """
        self._check_fitted()
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        return evaluate_tagger(self, texts, lists, ks, title, n_examples)

    def tune_thresholds(
        self, metric: str = "micro_f1", texts: Any = None, labels: Any = None
    ) -> Thresholds:
        """Choose from which probability on a label is given; `predict(threshold="tuned")` uses it.

        `metric` is `"micro_f1"`, `"macro_f1"` (each label has its own threshold), or a promise
        such as `"precision@0.9"` (as many labels as possible, of which nine tenths are right) or
        `"recall@0.8"`. Without `texts` and `labels` of your own, it is decided on the texts that
        `fit` held out. Never give texts that the tagger learned from.
        """
        self._check_fitted()
        self.thresholds_ = tune(metric, judged(self, texts, labels))
        return self.thresholds_

    def add_labels(self, names: Any, texts: Any = None, examples: Any = None) -> Self:
        """New labels, from examples or from their own texts, without learning the rest again.

        `examples` has a list of texts for each name, `texts` a text that describes the label;
        both in the order of `names`, or as dictionaries by name. A new label learns from its
        examples (or from its text, if that is all) against the training samples that were kept:
        those that the classifier would confuse it with, so that a label which comes with
        positive examples only does not fire on everything. The scores of all other labels stay
        the same to the bit, and so do their probabilities unless a new label is among the best
        twenty, which a probability takes into account.

        Words of the examples that no training text had are learned with them, and speak for
        these labels only. A `RebuildDueWarning` says that `fit` is due when a fifth of all
        labels are newcomers, or when there is no room for more words. If anything goes wrong,
        the tagger stays as it was.
        """
        self._check_fitted()
        no_room = add_labels(self, names, texts, examples)
        warn_of(rebuild_due(self), no_room)
        return self

    def remove_labels(self, names: Any) -> Self:
        """Forget labels: they are not answered any more. The ids of the others stay."""
        self._check_fitted()
        remove_labels(self, names)
        return self

    def partial_fit(self, texts: Any, labels: Any) -> Self:
        """Learn from more texts; names that are new become labels.

        The labels of these texts are learned again, from the samples that were kept and the new
        ones; the scores of labels that are like them may move with theirs. Where fewer samples
        were kept than there were (`replay`), labels that miss some of theirs stay as they are,
        as they would lose more than they gain: `fit` again. A text that was kept is corrected:
        it has the given labels from now on, and no others. On a tagger that is not fitted yet,
        this is `fit`. If anything goes wrong, the tagger stays as it was.
        """
        if not hasattr(self, "replay_"):
            return self.fit(texts, labels)
        check_kept(self)
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        n_added = self.n_added_
        no_room = learn_more(self, texts, lists)
        warn_of(rebuild_due(self) if self.n_added_ > n_added else None, no_room)
        return self

    @property
    def labels(self) -> list[str]:
        """The names of all labels, in the order of their ids."""
        self._check_fitted()
        return list(self.label_names_.ids)

    @property
    def _n_labels(self) -> int:
        """How many ids there are, also of labels that were removed."""
        return len(self.label_names_)

    @property
    def n_features(self) -> int:
        """How many words, and runs of words, are known."""
        self._check_fitted()
        return int(getattr(self.vectorizer_, "n_known", self.classifier_.n_features_in_))

    @property
    def calibrated(self) -> bool:
        """Whether scores are probabilities: not below 50 texts, or with `calibrate=False`."""
        self._check_fitted()
        return self.calibration_ is not None

    @property
    def rebuild_due(self) -> str | None:
        """Why a new `fit` would be worth its time, or None."""
        self._check_fitted()
        return rebuild_due(self)

    def explain(self, text: str, label: Any = None) -> TagExplanation:
        """Why a text gets a label (its best one by default): words, the way to it, neighbours."""
        self._check_fitted()
        (text,) = check_texts([text], "text")
        number = None if label is None else self.label_names_.id_of(label)
        return explain_tag(self, text, number)

    def label_keywords(self, label: Any, k: int = 10) -> Tags:
        """The words that speak most for a label, with their weights."""
        self._check_fitted()
        number = self.label_names_.id_of(label)
        if not hasattr(self.classifier_, "label_keywords"):
            raise ParameterError(f"{type(self.classifier_).__name__} has no keywords for labels")
        found = self.classifier_.label_keywords(number, check_k(k))
        return [(self._words.name(feature), round(weight, 4)) for feature, weight in found]

    def estimate(self, texts: Any, labels: Any) -> Any:
        """What `fit` will need (memory, time, size of the model), from a small part of the work."""
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        classifier = self._new_classifier()
        if not hasattr(classifier, "estimate"):
            raise ParameterError(f"{type(classifier).__name__} cannot estimate what it will need")
        X = self._new_vectorizer().fit_transform(texts)
        return classifier.estimate(X, LabelNames.of(lists).matrix(lists))

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything into the folder `path`; `umpteen.load(path)` gives it back."""
        self._check_fitted()
        storage.save(self, path)

    def _new_vectorizer(self) -> Any:
        return Vectorizer(spare=_SPARE) if self.vectorizer is None else clone(self.vectorizer)

    def _new_classifier(self) -> ExtremeClassifier:
        if self.classifier is not None:
            return clone(self.classifier)  # type: ignore[no-any-return]
        return LabelTree.for_texts(random_state=self.random_state)

    def _features(self, texts: list[str]) -> csr_matrix:
        return as_csr(check_features(self.vectorizer_.transform(texts)))

    def _answer(self, X: csr_matrix, k: int) -> TopK:
        """Labels with probabilities; none that no word of a text speaks for."""
        n_asked = max(k, RANKS) if self.calibration_ else k
        top = without_guesses(self, X, self.classifier_.predict_topk(X, n_asked).padded(n_asked))
        return (self.calibration_(top) if self.calibration_ else top).first(k)

    @property
    def _words(self) -> Words:
        """The words of features, read once as long as no new ones are learned."""
        words: Words | None = getattr(self, "_last_words", None)
        if words is None or words.vectorizer is not self.vectorizer_:
            words = self._last_words = Words(self.vectorizer_)
        return words

    def _check_fitted(self) -> None:
        if not hasattr(self, "replay_"):
            raise NotFittedError(
                "this Tagger is not fitted yet: call fit(texts, labels) first, or umpteen.load a "
                "saved one"
            )
