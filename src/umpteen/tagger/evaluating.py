"""How good a tagger is on texts that it has not seen."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.metrics.inputs import check_ks
from umpteen.report import Example, Report, evaluate

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger

_WORDS = 8
_ANSWERS = 20  # per text that probabilities are judged by


def evaluate_tagger(
    tagger: "Tagger",
    texts: list[str],
    lists: list[list[str]],
    ks: Iterable[int],
    title: str,
    n_examples: int,
) -> Report:
    """The report of `Tagger.evaluate`, for checked input.

    Labels that the tagger does not know are relevant all the same, and missed.
    """
    ks = tuple(check_ks(ks))
    names = tagger.label_names_.with_unknown(lists)
    top = tagger.predict_topk(texts, max(_ANSWERS, *ks))
    return evaluate(
        top,
        names.matrix(lists),
        _like_training(tagger.label_counts_, (tagger.n_samples_, len(names))),
        ks=ks,
        label_names=names.names,
        probabilities=tagger.calibration_ is not None,
        examples=_examples(tagger, texts, lists, top.first(max(ks)), n_examples),
        title=title,
        facts=_facts(tagger),
    )


def _like_training(counts: npt.NDArray[np.int64], shape: tuple[int, int]) -> csr_matrix:
    """A label matrix with as many samples, and as many of each label, as the training part's.

    That is all that propensities and frequencies look at. Label l is on the first counts[l].
    """
    columns = np.repeat(np.arange(len(counts)), counts)
    rows = np.arange(len(columns)) - np.repeat(np.cumsum(counts) - counts, counts)
    ones = np.ones(len(columns), np.float32)
    return csr_matrix((ones, (rows, columns)), shape=shape)


def _examples(
    tagger: "Tagger", texts: list[str], lists: list[list[str]], top: TopK, n: int
) -> list[Example]:
    drawn = np.random.default_rng(0).permutation(len(texts))[:n]
    answered = top[drawn].names(tagger.label_names_.names) if len(drawn) else []
    return [
        Example(
            text=texts[row],
            expected=lists[row],
            answered=tags,
            words=tagger.explain(texts[row], tags[0][0]).words[:_WORDS] if tags else [],
        )
        for row, tags in zip(drawn.tolist(), answered, strict=True)
    ]


def _facts(tagger: "Tagger") -> dict[str, Any]:
    return {
        "Classifier": type(tagger.classifier_).__name__,
        "Training texts": tagger.n_samples_,
        "Labels": len(tagger.label_names_.ids),
        "Features": tagger.n_features,
    }
