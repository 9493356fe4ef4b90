"""`recommend`: compares a few methods on a sample of texts, and chooses one."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.base import LearnsFromLabelFeatures, is_able
from umpteen.centroid import NearestCentroid
from umpteen.ensemble import Ensemble
from umpteen.errors import LabelsError
from umpteen.linear import LabelTree
from umpteen.splitting import validation_split
from umpteen.tagger import Tagger
from umpteen.text import Vectorizer
from umpteen.validation import check_label_lists, check_number, check_texts

_SAMPLE = 4_000  # texts that are tried
_FEWEST = 100  # texts from which a comparison says something
_TEST = 0.2  # of the sample
_MARGIN = 0.005  # nDCG@5 that a slower method must gain
_GROWTH = 1.17  # power of the number of texts, by benchmarks/growth.py

_CANDIDATES: dict[str, Callable[[int], Tagger]] = {
    "um.Tagger()": lambda seed: Tagger(random_state=seed),
    "um.Tagger(um.NearestCentroid())": lambda seed: Tagger(NearestCentroid(), random_state=seed),
    "um.Tagger(um.Ensemble([um.LabelTree.for_texts(), um.NearestCentroid()]))": lambda seed: Tagger(
        Ensemble([LabelTree.for_texts(), NearestCentroid()], random_state=seed), random_state=seed
    ),
}
_DEFAULT = next(iter(_CANDIDATES))


@dataclass(frozen=True)
class Trial:
    """The result of a candidate: quality on the test part of the sample, and seconds to fit."""

    code: str
    precision_at_1: float
    ndcg_at_5: float
    seconds: float


@dataclass(frozen=True)
class Recommendation:
    """The recommended tagger and the reasons: `print` it, or see `to_dict`.

    `code` is the code that creates the tagger, and `tagger()` returns it, not fitted yet.
    `seconds`, `memory` and `model_size` (bytes) are rough estimates for a fit on all texts.
    """

    code: str
    reasons: list[str]
    trials: list[Trial]
    seconds: float
    memory: int
    model_size: int
    random_state: int = 0

    def tagger(self) -> Tagger:
        """Return the recommended tagger, to be fitted."""
        return _CANDIDATES[self.code](self.random_state)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"Use {self.code}"]
        lines += [f"- {reason}" for reason in self.reasons]
        lines += [
            f"  {trial.code}: P@1 {100 * trial.precision_at_1:.1f}, nDCG@5 "
            f"{100 * trial.ndcg_at_5:.1f}, {trial.seconds:.1f} s"
            for trial in self.trials
        ]
        memory, size = ceil(self.memory / 1e6), ceil(self.model_size / 1e6)
        lines.append(
            f"A fit on all texts takes about {ceil(self.seconds):,} s and needs {memory:,} MB on "
            f"top of the data; the model has about {size:,} MB"
        )
        return "\n".join(lines)


def recommend(
    texts: Any,
    labels: Any,
    *,
    label_texts: Any = "auto",
    max_seconds: float = 120.0,
    random_state: int = 0,
) -> Recommendation:
    """Choose a method for texts and their labels by trying a few on a sample.

    At most 4,000 texts are drawn; each candidate learns from four fifths of them and is tested on
    the rest. Near copies that follow one another are on the same side. A slower candidate is
    recommended only if its nDCG@5 is half a point higher than that of the default tagger. No
    candidate is started after `max_seconds`, except the default; with enough time, the same
    `random_state` gives the same recommendation. `label_texts` are those of `Tagger.fit`. On a
    sample, labels have fewer texts than they will have, so values are lower than those of the final
    model.
    """
    texts = check_texts(texts)
    lists = check_label_lists(labels, len(texts))
    check_number(max_seconds, "max_seconds")
    if not any(lists):
        raise LabelsError("no text has a label, so there is nothing to compare methods on")
    estimate = Tagger(random_state=random_state).estimate(texts, lists)
    trials = (
        _try_all(texts, lists, label_texts, max_seconds, random_state)
        if len(texts) >= _FEWEST
        else []
    )
    code, reasons = _choose(trials, texts, lists)
    n_tried = min(len(texts), _SAMPLE)
    fitted = {trial.code: trial.seconds for trial in trials}
    seconds = fitted.get(code, 0.0) * (len(texts) / n_tried) ** _GROWTH
    return Recommendation(
        code=code,
        reasons=reasons,
        trials=trials,
        seconds=max(seconds, estimate.seconds),
        memory=int(estimate.memory),
        model_size=int(estimate.model_size),
        random_state=random_state,
    )


def _try_all(
    texts: list[str], lists: list[list[str]], label_texts: Any, max_seconds: float, seed: int
) -> list[Trial]:
    train, test = _split(texts, lists, seed)
    start = time.perf_counter()
    trials: list[Trial] = []
    for code, make in _CANDIDATES.items():
        if trials and time.perf_counter() - start > max_seconds:
            break
        begun = time.perf_counter()
        tagger = make(seed)
        described = isinstance(label_texts, str) or is_able(
            tagger.classifier or LabelTree(), LearnsFromLabelFeatures
        )
        more = {"label_texts": label_texts if described else None}
        tagger.fit(*_rows(texts, lists, train), **more)
        seconds = time.perf_counter() - begun
        report = tagger.evaluate(*_rows(texts, lists, test), ks=(1, 5), n_examples=0)
        precision, ndcg = report.metrics["precision@1"], report.metrics["nDCG@5"]
        trials.append(Trial(code, precision, ndcg, seconds))
    return trials


def _split(texts: list[str], lists: list[list[str]], seed: int) -> tuple[Any, Any]:
    """Return the texts to learn from and those to test on, as numbers in their order."""
    drawn = np.sort(np.random.default_rng(seed).permutation(len(texts))[:_SAMPLE])
    sample, own = _rows(texts, lists, drawn)
    is_test = validation_split(
        Vectorizer().fit_transform(sample),
        csr_matrix([[len(names)] for names in own]),
        seed,
        fraction=_TEST,
        fewest=_FEWEST,
        copies_together=True,
    )
    if is_test is None:  # all texts are alike, or have no words
        is_test = np.arange(len(drawn)) < _TEST * len(drawn)
    return drawn[~is_test], drawn[is_test]


def _rows(texts: list[str], lists: list[list[str]], rows: Any) -> tuple[list[str], list[list[str]]]:
    return [texts[i] for i in rows], [lists[i] for i in rows]


def _choose(trials: list[Trial], texts: list[str], lists: list[list[str]]) -> tuple[str, list[str]]:
    """Return the code of the best candidate, and the reasons in words."""
    n_labels = len({name for names in lists for name in names})
    per_text = sum(map(len, lists)) / len(lists)
    about = f"{len(texts):,} texts with {n_labels:,} labels, {per_text:.1f} per text"
    if not trials:
        return _DEFAULT, [about, f"below {_FEWEST} texts a comparison says nothing: the default"]
    default, best = trials[0], max(trials, key=lambda trial: trial.ndcg_at_5)
    gain = best.ndcg_at_5 - default.ndcg_at_5
    if gain <= _MARGIN:
        reason = f"no other candidate gained more than {100 * _MARGIN:.1f} points of nDCG@5"
        best = default
    else:
        reason = f"it gained {100 * gain:.1f} points of nDCG@5 over the default"
    left = [code for code in _CANDIDATES if code not in {trial.code for trial in trials}]
    more = [f"not tried, as the time was up: {', '.join(left)}"] if left else []
    return best.code, [about, f"on a sample, {reason}", *more]
