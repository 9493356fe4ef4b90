"""Data sets whose labels have texts, models to compare on them, and how good they are."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from papers import sets
from papers.sets import some_rows, texts_of, train_and_test
from umpteen import SiameseXML, TopK, data, save
from umpteen.metrics import ndcg_at_k, precision_at_k, propensity, psndcg_at_k, psp_at_k
from umpteen.text import Vectorizer, pretrained_vectors

DEPTHS = (1, 3, 5)
METRICS = ("N", "PSN", "P", "PSP")
_QUICK_TRAIN, _QUICK_TEST = 2_500, 500
_MOST_DOCUMENTS = {"eurlex57k": 24_000}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """Samples to learn from and to test on, with labels that have features and names."""

    name: str
    X: csr_matrix
    Y: csr_matrix
    X_test: csr_matrix
    Y_test: csr_matrix
    label_features: csr_matrix
    label_names: list[str]
    texts_test: list[str]
    feature_names: list[str] = field(default_factory=list)

    def in_words(self) -> str:
        """Its size in words."""
        once = int((self.Y.getnnz(axis=0) == 1).sum())
        return (
            f"{self.name}: {self.X.shape[0]:,} samples to learn from, {self.X_test.shape[0]:,} to "
            f"test on, {self.Y.shape[1]:,} labels, of which {once:,} have one sample."
        )


@cache
def task(name: str, quick: bool, ngrams: int = 1) -> Task:
    """A data set as TF-IDF of single words (or n-grams up to `ngrams`), label texts alike.

    Labels without a training sample are left out, and test samples that then have none.
    """
    dataset = data.load(name)
    train, test = train_and_test(name)
    texts, every_text = texts_of(train), texts_of(test)
    most = _QUICK_TRAIN if quick else _MOST_DOCUMENTS.get(name, len(train))
    rows = some_rows(len(train), most)
    Y = csr_matrix(train.Y[rows])
    learned = np.flatnonzero(Y.getnnz(axis=0))
    Y_test = csr_matrix(test.Y[:, learned])
    test_rows = np.flatnonzero(Y_test.getnnz(axis=1))[: _QUICK_TEST if quick else None]
    words = Vectorizer(ngrams=ngrams, min_df=2)
    X = words.fit_transform([texts[row] for row in rows])
    texts_test = [every_text[row] for row in test_rows]
    names = dataset.label_names or [str(label) for label in range(train.Y.shape[1])]
    described = dataset.label_texts or names
    features = words.transform([described[label] for label in learned])
    return Task(
        name, X, Y[:, learned], words.transform(texts_test), Y_test[test_rows], features,
        [_title(described[label] or names[label]) for label in learned], texts_test,
        words.get_feature_names_out().tolist(),
    )  # fmt: skip


def available(names: Sequence[str]) -> list[str]:
    """Those that can be loaded; a built-in set if none can."""
    return sets.available(names) or ["pydocs"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A trained model, its answers to the test split, and what it took."""

    model: Any
    top: TopK
    figures: Floats  # (metrics, depths), in %
    megabytes: float
    seconds: float


def outcome(chosen: Task, model: Any, described: bool, pretrained: bool = False) -> Outcome:
    """Train and evaluate; `pretrained` vectors of words are those of `umpteen.text`."""
    more: dict[str, Any] = {"label_features": chosen.label_features} if described else {}
    if pretrained:
        more["token_vectors"] = pretrained_vectors(chosen.feature_names)
    start = time.perf_counter()
    model.fit(chosen.X, chosen.Y, **more)
    seconds = time.perf_counter() - start
    return evaluated(chosen, model, seconds)


def fixed_vectors(seed: int) -> SiameseXML:
    """A model in the manner of SLICE: linear classifiers on vectors that stay as they are.

    Fit it with pretrained vectors of words, of 256 dimensions, and without label texts. A sample is
    the sum of its words' vectors, and hard negatives are the labels of the nearest centroids.
    """
    model: SiameseXML = SiameseXML(dim=256, random_state=seed, verbose=False).set_params(
        recipe__modules=("mine", "refine"), recipe__activation="linear", recipe__alpha=1.0,
        recipe__weights="fixed", recipe__dropout=0.0,
    )  # fmt: skip
    return model


def evaluated(chosen: Task, model: Any, seconds: float) -> Outcome:
    """What a trained model makes of the test split."""
    top = model.predict_topk(chosen.X_test, k=max(DEPTHS))
    return Outcome(model, top, figures(chosen, top), megabytes(model), seconds)


def figures(chosen: Task, top: TopK) -> Floats:
    """(metrics, depths), in %."""
    chances = propensity(chosen.Y)
    return 100 * np.array([
        ndcg_at_k(chosen.Y_test, top, DEPTHS),
        psndcg_at_k(chosen.Y_test, top, DEPTHS, chances),
        precision_at_k(chosen.Y_test, top, DEPTHS),
        psp_at_k(chosen.Y_test, top, DEPTHS, chances),
    ])  # fmt: skip


def megabytes(model: Any) -> float:
    """Of the model on disk."""
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model")
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return sum(path.stat().st_size for path in files) / 1e6


def _title(text: str) -> str:
    """What stands for a label: the beginning of its text."""
    return text.split(". ")[0].split(": ")[0][:60]
