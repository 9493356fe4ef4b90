"""Fit a tagger on texts and the labels of each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen.base import Estimates, ExtremeClassifier, is_able
from umpteen.errors import LabelsError, ParameterError
from umpteen.linear import LabelTree
from umpteen.progress import compile_line
from umpteen.shards import Texts, check_text_source
from umpteen.splitting import validation_split
from umpteen.tagger.calibration import RANKS, calibrated
from umpteen.tagger.described_labels import DescribedLabels
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.replay import Replay
from umpteen.tagger.state import State, seen_features
from umpteen.tagger.trials import Trials
from umpteen.tagger.vectorizing import read_texts, vectors_of_features
from umpteen.validation import check_label_lists, check_texts

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger

N_KERNELS = 16  # that the first fit on a machine compiles, for texts of a language
_SPARE = 10_000  # columns for words that come with new labels and samples


def fit_labelled(
    tagger: "Tagger",
    texts: Any,
    labels: Any,
    label_texts: Any,
    vocabulary: Any,
    word_vectors: Callable[[list[str]], Any] | None,
) -> State:
    """Return what `Tagger.fit` learns from texts with labels."""
    texts = check_text_source(texts)
    lists = check_label_lists(labels, len(texts))
    classifier, seed = new_classifier(tagger), tagger.random_state
    described = DescribedLabels.of(label_texts, vocabulary, lists, classifier)
    if len(texts) and not any(lists):
        raise LabelsError(
            "no text has a label, so there is nothing to learn; expected a list of label "
            "names for each text"
        )
    with compile_line(N_KERNELS, getattr(classifier, "verbose", False)):
        vectorizer, trials = choose(tagger, texts, lists, classifier, described)
        X, more = read_texts(vectorizer, texts, described.texts, described.names)
    if word_vectors is not None:
        more["token_vectors"] = vectors_of_features(vectorizer, classifier, word_vectors)
    Y = described.labels.matrix(lists)
    split = validation_split(X, Y, seed, copies_together=True) if tagger.calibrate else None
    if split is None:
        classifier.fit(X, Y, **more)
        calibration, validated = None, None
    else:
        top = classifier.fit_validated(X, Y, split, RANKS, **more)
        calibration, validated = calibrated(top, Y[split])
    return new_state(
        tagger,
        texts,
        X,
        Y,
        described,
        classifier=classifier,
        vectorizer=vectorizer,
        seen_features=seen_features(classifier, X, more.get("label_features")),
        calibration=calibration,
        validated=validated,
        trials=trials,
    )


def new_state(
    tagger: "Tagger",
    texts: Texts,
    X: csr_matrix,
    Y: csr_matrix,
    described: DescribedLabels,
    **learned: Any,
) -> State:
    """Return what a tagger knows after `fit`: samples with their labels, and what it learned."""
    kept = texts if tagger.keep_texts else None
    return State(
        label_names=described.labels,
        label_counts=np.bincount(Y.indices, minlength=Y.shape[1]),
        n_samples=len(texts),
        n_added=0,
        thresholds=None,
        replay=Replay.drawn(X, Y, kept, tagger.replay, tagger.random_state),
        vocabulary=described.vocabulary,
        **learned,
    )


def estimate_fit(tagger: "Tagger", texts: Any, labels: Any) -> Any:
    """Return what `Tagger.fit` would need, as the classifier estimates it."""
    texts = check_texts(texts)
    lists = check_label_lists(labels, len(texts))
    classifier = new_classifier(tagger)
    if not is_able(classifier, Estimates):
        raise ParameterError(f"{type(classifier).__name__} cannot estimate what it will need")
    described = DescribedLabels.of(None, None, lists, classifier)
    vectorizer, _ = choose(tagger, texts, lists, classifier, described)
    return classifier.estimate(  # type: ignore[attr-defined]
        vectorizer.fit_transform(texts), LabelNames.of(lists).matrix(lists)
    )


def new_classifier(tagger: "Tagger") -> ExtremeClassifier:
    """Return a copy of the tagger's classifier, or the default one."""
    if tagger.classifier is not None:
        return clone(tagger.classifier)  # type: ignore[no-any-return]
    return LabelTree.for_texts(cost="auto", random_state=tagger.random_state)


def check_not_of_default(tagger: "Tagger", parameters: dict[str, Any]) -> None:
    """Refuse parameters such as `vectorizer__ngrams` if there is no vectorizer to have them."""
    examples = {"classifier": "LabelTree.for_texts()", "vectorizer": "Vectorizer()"}
    for name in parameters:
        part, _, inner = name.partition("__")
        if inner and part in examples and parameters.get(part, getattr(tagger, part)) is None:
            raise ParameterError(
                f"{name} is not possible, since fit chooses the {part} of this Tagger: pass one, "
                f"such as Tagger({part}={examples[part]})"
            )


def choose(
    tagger: "Tagger",
    texts: Texts,
    lists: list[list[str]],
    classifier: Any,
    described: DescribedLabels,
) -> tuple[Any, dict[str, float]]:
    """Set the classifier's costs; return a vectorizer and the quality of what was tried."""
    if tagger.vectorizer is not None:
        return clone(tagger.vectorizer), {}
    trials = Trials.drawn(tagger.language, texts, lists, tagger.random_state)
    vectorizer = trials.best_vectorizer(_SPARE)
    if getattr(classifier, "cost", None) == "auto":
        classifier.set_params(**trials.best_costs(classifier, vectorizer, described))
    return vectorizer, trials.scores
