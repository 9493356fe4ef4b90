"""Answers as a table, for pandas, polars, Arrow and other tools for data frames."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.base import TopK
from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.extras import require
from umpteen.validation.columns import cells


class AnswerTable(dict[str, Any]):
    """A table of answers: a dictionary from the names of columns to their values.

    `pandas.DataFrame(table)`, `polars.DataFrame(table)` and `pyarrow.table(table)` take it as it
    is. Other tools can read it as an Arrow stream, for which pyarrow needs to be installed.
    """

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        table = require("pyarrow", "parquet").table(dict(self))
        return table.__arrow_c_stream__(requested_schema)


def to_table(
    answers: Any, *, ids: Any = None, label_names: Sequence[Any] | None = None
) -> AnswerTable:
    """Return answers as a table with one row per label that was answered, best first.

    `answers` are those of `Tagger.predict` to several texts, or a `TopK`. Its columns are `sample`
    (the number of the sample, from 0, or its entry in `ids`), `rank` (from 1), `label` and `score`.
    With `label_names`, the ids of a `TopK` become names. A sample without an answer has no row.

    >>> table = to_table([[("bread", 0.9), ("oven", 0.4)], [], [("tea", 0.7)]], ids=["a", "b", "c"])
    >>> {name: list(column) for name, column in table.items()}["label"]
    ['bread', 'oven', 'tea']
    >>> table["sample"], table["rank"].tolist()
    (['a', 'a', 'c'], [1, 2, 1])
    """
    if isinstance(answers, TopK):
        count = _n_names(answers) if label_names is None else 0
        answers = answers.names(range(count) if label_names is None else label_names)
    answers = _answers(answers)
    pairs = [_pair(tag, i) for i, tags in enumerate(answers) for tag in _tags(tags, i)]
    counts = [len(tags) for tags in answers]
    samples = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum([0, *counts])[samples]
    return AnswerTable(
        sample=samples if ids is None else _chosen(ids, samples, len(counts)),
        rank=np.arange(1, len(samples) + 1) - first,
        label=[label for label, _ in pairs],
        score=_scores([score for _, score in pairs]),
    )


def _answers(answers: Any) -> list[Any]:
    if isinstance(answers, str | Mapping) or not isinstance(answers, Iterable):
        raise LabelsError(
            f"answers is {answers!r:.60}, a {type(answers).__name__}; expected a list of answers, "
            "as predict returns for several texts"
        )
    return list(answers)


def _scores(scores: list[Any]) -> npt.NDArray[np.float64]:
    for score in scores:
        if isinstance(score, bool) or not isinstance(score, Real):
            raise LabelsError(f"answers have the score {score!r:.60}; expected numbers")
    return np.array(scores, np.float64)


def _n_names(top: TopK) -> int:
    return int(top.labels.max(initial=-1)) + 1


def _tags(tags: Any, place: int) -> list[Any]:
    if not isinstance(tags, list):
        raise LabelsError(
            f"answers[{place}] is {tags!r:.60}; expected a list of (label, score), as predict "
            "returns for each of several texts: for one text, pass [answer]"
        )
    return tags


def _pair(tag: Any, place: int) -> tuple[Any, float]:
    if not isinstance(tag, tuple) or len(tag) != 2:
        raise LabelsError(f"answers[{place}] has {tag!r:.60}; expected pairs (label, score)")
    return tag


def _chosen(ids: Any, samples: Any, n_samples: int) -> list[Any]:
    found = cells(ids, "ids", LabelsShapeError)
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise LabelsShapeError(f"ids is {ids!r:.60}; expected one id for each sample")
    given = list(found)
    if len(given) != n_samples:
        raise LabelsShapeError(
            f"{n_samples:,} answers but {len(given):,} ids; expected one id for each sample"
        )
    return [given[sample] for sample in samples]
