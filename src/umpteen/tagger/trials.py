"""What suits the texts: found on a part of them, before everything is trained."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen.base import TopK
from umpteen.linear import LabelTree
from umpteen.metrics import ndcg_at_k
from umpteen.shards import Texts, lengths_of, texts_at
from umpteen.splitting import learned_labels, validation_split
from umpteen.tagger.described_labels import FEWEST_TEXTS, DescribedLabels
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.vectorizing import read_texts
from umpteen.text import Vectorizer
from umpteen.text.languages import UNSPACED, main_languages, unspaced_language
from umpteen.validation import as_csr

_CHARACTERS = 5_000_000  # of the texts that decide, at most
_MOST_TEXTS = 8_000
_FRACTION, _RANKED = 0.25, 0.15  # of them, to compare on, and to learn and compare rankers on
_K = 5
_WORD = re.compile(r"\w")
_COMPOUNDS = {"da", "de", "et", "fi", "hu", "nl", "no", "sv"}  # written as one word
_COSTS = {
    "cost 1": {"cost": 1.0, "positive_weight": 1.0},  # for long texts
    "cost 0.25": {"cost": 0.25, "positive_weight": 2.0},  # for short ones
}
_GAIN = {"both": 0.005, "characters": 0.01}  # of nDCG, to be worth the time


@dataclass(eq=False)
class Trials:
    """Some texts to try settings on, and the nDCG@5 of everything that was tried.

    Without texts, nothing is tried: a language that is given is used all the same.
    """

    language: str | None
    texts: list[str]
    labels: list[list[str]]
    languages: list[str]  # of the texts
    seed: int
    scores: dict[str, float] = field(default_factory=dict)

    @classmethod
    def drawn(cls, language: str | None, texts: Texts, lists: list[list[str]], seed: int) -> Self:
        """Draw texts, unless no language is wanted or there are too few to choose by."""
        if language is None or len(texts) < FEWEST_TEXTS:
            return cls(language, [], [], [], seed)
        languages = [language]
        if language == "auto":
            unspaced = unspaced_language(texts)
            languages = main_languages(texts) if unspaced is None else [unspaced]
        rows = _drawn(lengths_of(texts), seed)
        drawn = texts_at(texts, rows)
        if not any(map(_WORD.search, drawn)):
            return cls(language, [], [], [], seed)
        return cls(language, drawn, [lists[i] for i in rows], languages, seed)

    def best_vectorizer(self, spare: int) -> Vectorizer:
        """Return the vectorizer for these texts.

        Plain words, stems, and both are compared by a small `LabelTree`; sequences of characters,
        too, in languages that write compounds as one word, and they alone where words are not
        separated. Features that cost more time must be clearly better.
        """
        if not self.texts:
            given = None if self.language == "auto" else self.language
            return Vectorizer(spare=spare, language=given)
        plain = Vectorizer(spare=spare)
        if not self.languages:
            return plain
        # Of several languages, "auto" finds them again.
        code = self.language if len(self.languages) > 1 else self.languages[0]
        tried = ["stems", "both"] + ["characters"] * bool(_COMPOUNDS & {*self.languages})
        if code in UNSPACED:
            tried = ["characters"]
        options = {"words": plain} | {
            forms: Vectorizer(spare=spare, language=code, forms=forms) for forms in tried
        }
        Y = LabelNames.of(self.labels).matrix(self.labels)
        split = None
        for forms, vectorizer in options.items():
            X = as_csr(clone(vectorizer).fit_transform(self.texts))
            split = self._split(X, Y, _FRACTION) if split is None else split
            if split is None:
                return plain
            tree = LabelTree.for_texts(random_state=self.seed, verbose=False)
            tree.fit(X[~split], Y[~split])
            self.scores[forms] = _quality(tree.predict_topk(X[split], _K), Y, split)
        return options[self._best(options)]

    def best_costs(
        self, tree: LabelTree, vectorizer: Vectorizer, described: DescribedLabels
    ) -> dict[str, Any]:
        """Return the costs that are best for a tree with the texts and names of labels."""
        if not self.texts:
            return {}
        described = described.only(self.labels)
        X, more = read_texts(clone(vectorizer), self.texts, described.texts, described.names)
        Y = described.labels.matrix(self.labels)
        split = self._split(X, Y, _RANKED)
        if split is None:
            return {}
        for name, costs in _COSTS.items():
            trial = clone(tree).set_params(**costs, verbose=False)
            top = trial.validate(X, Y, split, _K, **more)
            self.scores[name] = _quality(top, Y, split)
        return _COSTS[self._best(_COSTS)]

    def _best(self, options: Iterable[str]) -> str:
        return max(options, key=lambda name: self.scores[name] - _GAIN.get(name, 0))

    def _split(self, X: csr_matrix, Y: csr_matrix, fraction: float) -> npt.NDArray[np.bool_] | None:
        return validation_split(X, Y, self.seed, fraction=fraction, copies_together=True)


def _quality(top: TopK, Y: csr_matrix, split: npt.NDArray[np.bool_]) -> float:
    return float(ndcg_at_k(learned_labels(Y, split)[0], top, _K))


def _drawn(lengths: npt.NDArray[np.integer], seed: int) -> npt.NDArray[Any]:
    """Some texts, in order: neighbours may be near copies, so whole stretches are drawn."""
    n_texts = len(lengths)
    n = int(min(_MOST_TEXTS, n_texts, n_texts * _CHARACTERS / max(1, lengths.sum())))
    n = max(n, min(n_texts, FEWEST_TEXTS))
    stretch = 40
    starts = np.random.default_rng(seed).permutation(-(-n_texts // stretch))
    chosen = np.sort(starts[: -(-n // stretch)])
    rows = (chosen[:, None] * stretch + np.arange(stretch)).ravel()
    return rows[rows < n_texts]
