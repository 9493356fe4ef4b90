"""Which forms of words suit the texts: found on a part of them, before everything is trained."""

from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.linear import LabelTree
from umpteen.metrics import ndcg_at_k
from umpteen.splitting import learned_labels, validation_split
from umpteen.tagger.label_names import LabelNames
from umpteen.text import Vectorizer
from umpteen.text.languages import main_languages
from umpteen.validation import as_csr

FEWEST_TEXTS = 500  # below, there is nothing to choose by
_CHARACTERS = 5_000_000  # of the texts that decide, at most
_MOST_TEXTS = 8_000
_FRACTION = 0.25  # of them, to compare on
_K = 5
_COMPOUNDS = {"da", "de", "et", "fi", "hu", "nl", "no", "sv"}  # written as one word
_GAIN = {"words": 0.0, "stems": 0.0, "both": 0.005, "characters": 0.01}  # of nDCG, to be worth it


def chosen_vectorizer(
    language: str | None, texts: list[str], lists: list[list[str]], seed: int, spare: int
) -> tuple[Vectorizer, dict[str, float]]:
    """Return the vectorizer for these texts, and the nDCG@5 of everything that was tried.

    Plain words, stems, and both are compared by a small `LabelTree` on part of the texts; sequences
    of characters, too, in languages that write compounds as one word. Features that cost more time
    must be clearly better.
    """
    plain = Vectorizer(spare=spare)
    if language is None or (language == "auto" and len(texts) < FEWEST_TEXTS):
        return plain, {}
    if len(texts) < FEWEST_TEXTS:
        return Vectorizer(spare=spare, language=language), {}
    found = main_languages(texts) if language == "auto" else [language]
    if not found:
        return plain, {}
    code = language if len(found) > 1 else found[0]  # several: "auto" finds them again
    options = {"words": plain} | {
        forms: Vectorizer(spare=spare, language=code, forms=forms)
        for forms in ("stems", "both", "characters")
        if forms != "characters" or _COMPOUNDS & {*found}
    }
    rows = _drawn(texts, seed)
    some = [texts[i] for i in rows]
    scores = _scores(options, some, [lists[i] for i in rows], seed)
    best = max(scores, key=lambda forms: scores[forms] - _GAIN[forms], default="words")
    return options[best], scores


def _scores(
    options: dict[str, Vectorizer], texts: list[str], lists: list[list[str]], seed: int
) -> dict[str, float]:
    Y = LabelNames.of(lists).matrix(lists)
    found: dict[str, float] = {}
    split = None
    for forms, vectorizer in options.items():
        X = as_csr(Vectorizer(**vectorizer.get_params()).fit_transform(texts))
        if split is None:
            split = validation_split(X, Y, seed, fraction=_FRACTION, copies_together=True)
            if split is None:
                return {}
            expected, _ = learned_labels(Y, split)
        tree = LabelTree.for_texts(random_state=seed, verbose=False).fit(X[~split], Y[~split])
        found[forms] = float(ndcg_at_k(expected, tree.predict_topk(X[split], _K), _K))
    return found


def _drawn(texts: list[str], seed: int) -> npt.NDArray[Any]:
    """Some texts, in order: neighbours may be near copies, so whole stretches are drawn."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    n = int(min(_MOST_TEXTS, len(texts), len(texts) * _CHARACTERS / max(1, lengths.sum())))
    n = max(n, min(len(texts), FEWEST_TEXTS))
    stretch = 40
    starts = np.random.default_rng(seed).permutation(-(-len(texts) // stretch))
    chosen = np.sort(starts[: -(-n // stretch)])
    rows = (chosen[:, None] * stretch + np.arange(stretch)).ravel()
    return rows[rows < len(texts)]
