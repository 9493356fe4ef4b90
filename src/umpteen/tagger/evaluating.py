"""How good a tagger is on texts that it has not seen."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.errors import warn_caller
from umpteen.metrics import LabelCounts
from umpteen.metrics.inputs import check_ks
from umpteen.report import Example, Report, evaluate
from umpteen.tagger.explanation import explain_tag
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.state import State, broader_labels

_WORDS = 8
_ANSWERS = 20  # per text for the reliability of probabilities


def evaluate_tagger(
    state: State,
    texts: list[str],
    lists: list[list[str]],
    ks: Iterable[int],
    title: str,
    n_examples: int,
) -> Report:
    """Return the report of `Tagger.evaluate`, for checked input.

    Labels that the tagger does not know are relevant all the same, and missed.
    """
    ks = tuple(check_ks(ks))
    _warn_of_other_names(state, lists)
    names = state.label_names.with_unknown(lists)
    unknown = np.zeros(len(names) - len(state.label_counts), np.int64)
    top = state.answer(state.features(texts), min(max(_ANSWERS, *ks), len(state.label_names)))
    return evaluate(
        top,
        names.matrix(lists),
        LabelCounts(np.append(state.label_counts, unknown), state.n_samples),
        ks=ks,
        parents=_parents(state, names),
        label_names=names.names,
        probabilities=state.calibration is not None,
        examples=_examples(state, texts, lists, top.first(max(ks)), n_examples),
        title=title,
        facts=_facts(state),
    )


def _warn_of_other_names(state: State, lists: list[list[str]]) -> None:
    """Warn if no label of the test is known, such as ids in place of names."""
    ids = state.label_names.ids
    given = next((name for names in lists for name in names), None)
    if given is not None and not any(name in ids for names in lists for name in names):
        warn_caller(
            f"no label of these texts, such as {given!r:.60}, is a label of this tagger, such as "
            f"{next(iter(ids), '')!r:.60}, so all are missed: pass label names of the same kind"
        )


def _parents(state: State, names: LabelNames) -> csr_matrix | None:
    """The broader labels of each label, if the vocabulary has a hierarchy."""
    if state.vocabulary is None or state.vocabulary.broader.nnz == 0:
        return None
    return broader_labels(state.vocabulary, names)


def _examples(
    state: State, texts: list[str], lists: list[list[str]], top: TopK, n: int
) -> list[Example]:
    drawn = np.random.default_rng(0).permutation(len(texts))[:n]
    answered = top[drawn].names(state.label_names.names) if len(drawn) else []
    return [
        Example(
            text=texts[row],
            expected=lists[row],
            answered=tags,
            words=_reasons(state, texts[row], tags[0][0]) if tags else [],
        )
        for row, tags in zip(drawn.tolist(), answered, strict=True)
    ]


def _reasons(state: State, text: str, name: str) -> list[tuple[str, float]]:
    return explain_tag(state, text, state.label_names.id_of(name)).words[:_WORDS]


def _facts(state: State) -> dict[str, Any]:
    groups = {} if state.groups is None else {"Learned from": str(state.groups)}
    return {
        "Classifier": type(state.classifier).__name__,
        "Training texts": state.n_samples,
        "Labels": len(state.label_names.ids),
        "Features": state.n_features,
        **groups,
    }
