"""Why a text gets a label, in words."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from scipy.sparse import csr_matrix, vstack

from umpteen import markup
from umpteen.base import ExplainsByWeights, ExtremeClassifier
from umpteen.errors import LabelsError
from umpteen.linear.explanation import Explanation
from umpteen.tagger.state import State

Tags = list[tuple[str, float]]

IntArray = npt.NDArray[np.int64]

_MOST_ASKED = 100  # labels among which one is looked for
_BLOCK = 256  # copies of a text at a time
_NAMED = 0.999  # of a label's text, that a text which names it has
_STEP_WORDS, _STEP_LABELS, _SHOWN, _NEIGHBOURS, _RANKED = 3, 3, 8, 3, 20


@dataclass(frozen=True)
class PathStep:
    """A decision on the path to the label: `labels` are some of the `n_labels` below the node."""

    labels: list[str]
    n_labels: int
    words: Tags
    margin: float


@dataclass(frozen=True)
class Neighbour:
    """A training text like this one."""

    text: str
    labels: list[str]
    similarity: float


@dataclass(frozen=True)
class TagExplanation:
    """Why a label gets its probability: `print` it, or see `to_dict`.

    `words` has the words of the text with their contributions to the label's margin, largest
    first. For a `LabelTree` they are exact: `margin = bias + sum of all contributions`. For other
    classifiers (`exact` is false), a contribution is by how much the score falls without the word.
    `path` has the steps through the label tree from the root down, and `neighbours` the nearest
    training texts, if the tagger kept them. If labels have texts or names, `text_similarity` is the
    cosine of text and label text, and `text_covered` the share of the label text that the text
    contains: 1 if it names the label. Relative to the tree's score, they have the weight
    `text_weight`, or a ranker combines them (`ranked`).
    """

    label: str
    probability: float
    words: Tags
    exact: bool = True
    bias: float = 0.0
    margin: float = 0.0
    path: tuple[PathStep, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    text_similarity: float = 0.0
    text_weight: float = 0.0
    text_covered: float = 0.0
    ranked: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON."""
        return asdict(self)

    def __rich__(self) -> RenderableType:
        title = Text(f"{self.label}  {self.probability:.3f}", style="bold")
        return Group(title, _word_table(self.words[:_SHOWN]), *_notes(self))

    def _repr_html_(self) -> str:
        title = f"{self.label}  {self.probability:.3f}"
        words = markup.contributions(title, ["word", "contribution"], self.words[:_SHOWN])
        notes = [markup.tag("li", line.plain.strip()) for line in _notes(self)]
        return markup.notebook(words, markup.tag("ul", *notes) if notes else "")

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=100, highlight=False, color_system=None)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip()


def explain_tag(state: State, text: str, label: int | None = None) -> TagExplanation:
    """Explain why a text gets a label, by default its best one."""
    x = state.features([text])
    label = _best_label(state, x, text) if label is None else label
    words, classifier = state.words.of_text(text), state.classifier
    found = TagExplanation(
        label=state.label_names.names[label],
        probability=_probability(state, x, label),
        words=[],
        neighbours=_neighbours(state, x),
    )
    if isinstance(classifier, ExplainsByWeights):
        tree = classifier.explain(x, label)
        found = replace(
            found, text_similarity=tree.cosine, text_weight=tree.text_weight,
            text_covered=tree.covered, ranked=tree.is_ranked,
        )  # fmt: skip
        if tree.paths:
            return _with_tree(found, tree, words, _best_first(state, x), state)
    return replace(found, words=_by_leaving_out(classifier, x, label, words), exact=False)


def _best_label(state: State, x: csr_matrix, text: str) -> int:
    best = int(state.answer(x, 1).labels[0, 0])
    if best < 0:
        raise LabelsError(
            f"{text!r:.60} has no word of the vocabulary, so it gets no label: name a label"
        )
    return best


def _probability(state: State, x: csr_matrix, label: int) -> float:
    """Return the probability of a label for a text; 0 if it is not among the best hundred."""
    top = state.answer(x, min(_MOST_ASKED, len(state.label_names)))
    return float(top.scores[top.labels == label].sum())


def _with_tree(
    found: TagExplanation, tree: Explanation, words: Mapping[int, str], rank: IntArray,
    state: State,
) -> TagExplanation:  # fmt: skip
    """Every word's value in the label's own decision, and the steps that lead to it.

    With several trees, that decision is the average of theirs, while the steps that lead to it
    are those of the first.
    """
    above, own = tree.paths[0].steps[:-1], [path.steps[-1] for path in tree.paths]
    names = state.label_names.names
    path = tuple(
        PathStep(
            labels=[names[i] for i in step.labels[np.argsort(rank[step.labels])][:_STEP_LABELS]],
            n_labels=len(step.labels),
            words=_largest(step.features, step.contributions, words)[:_STEP_WORDS],
            margin=step.margin,
        )
        for step in above
    )
    contributions = [
        (words.get(feature, f"#{feature}"), value) for feature, value in tree.features()
    ]
    bias, margin = (
        float(np.mean([getattr(step, of) for step in own])) for of in ("bias", "margin")
    )
    return replace(found, words=contributions, path=path, bias=bias, margin=margin)


def _best_first(state: State, x: csr_matrix) -> IntArray:
    """The rank of each label: those that suit the text first, then the most frequent."""
    rank = np.argsort(np.argsort(-state.label_counts, kind="stable")) + _RANKED
    best = state.classifier.predict_topk(x, _RANKED).labels[0]
    rank[best[best >= 0]] = np.flatnonzero(best >= 0)
    return rank


def _neighbours(state: State, x: csr_matrix) -> tuple[Neighbour, ...]:
    texts, Y = state.replay.texts, state.replay.Y
    if texts is None:
        return ()
    names = state.label_names.names
    return tuple(
        Neighbour(
            text=texts[row],
            labels=[names[i] for i in Y.indices[Y.indptr[row] : Y.indptr[row + 1]]],
            similarity=similarity,
        )
        for row, similarity in state.replay.nearest(x, _NEIGHBOURS)
    )


def _by_leaving_out(
    classifier: ExtremeClassifier, x: csr_matrix, label: int, words: Mapping[int, str]
) -> Tags:
    """How much the label's score falls when each word is taken from the text."""
    whole = _scores_of(classifier, x, label)
    contributions = [
        _scores_of(classifier, _without_each(x, first, min(first + _BLOCK, x.nnz)), label)
        for first in range(0, x.nnz, _BLOCK)
    ]
    return _largest(x.indices, whole - np.concatenate([*contributions, []]), words)


def _without_each(x: csr_matrix, first: int, last: int) -> csr_matrix:
    """A copy of the row without its entry i for each i from `first` to before `last`."""
    copies = csr_matrix(vstack([x] * (last - first)))
    copies.data[np.arange(last - first) * (x.nnz + 1) + first] = 0
    copies.eliminate_zeros()
    return copies


def _scores_of(classifier: ExtremeClassifier, X: csr_matrix, label: int) -> Any:
    """The label's score for each row, 0 where it is not among the best hundred."""
    top = classifier.predict_topk(X, k=min(_MOST_ASKED, classifier.n_labels_))
    found = (top.labels == label).any(axis=1)
    return np.where(found, np.where(top.labels == label, top.scores, 0).sum(axis=1), 0.0)


def _largest(features: Any, contributions: Any, words: Mapping[int, str]) -> Tags:
    order = np.argsort(-np.abs(contributions), kind="stable")
    named = (
        (words.get(int(features[i]), f"#{features[i]}"), float(contributions[i])) for i in order
    )
    return [(word, value) for word, value in named if value and np.isfinite(value)]


def _notes(why: TagExplanation) -> list[Text]:
    """Return lines about the path, the label's own text and the nearest training texts."""
    lines = [_step_line(step) for step in why.path]
    if why.text_weight or (why.ranked and why.text_similarity):
        lines.append(_text_line(why))
    return lines + [_neighbour_line(one) for one in why.neighbours]


def _text_line(why: TagExplanation) -> Text:
    names = "; the text names it" if why.text_covered > _NAMED else ""
    counts = "" if why.ranked else f", which counts {why.text_weight:g}"
    return Text(f"  similarity to the label's own text: {why.text_similarity:.2f}{counts}{names}")


def _word_table(words: Tags) -> Table:
    widest = max((abs(value) for _, value in words), default=1.0)
    table = Table.grid(padding=(0, 2))
    for word, value in words:
        bar = "█" * max(1, round(20 * abs(value) / widest))
        table.add_row(
            Text(f"  {word}"), f"{value:+.3f}", Text(bar, style="green" if value > 0 else "red")
        )
    return table


def _step_line(step: PathStep) -> Text:
    words = ", ".join(word for word, value in step.words if value > 0) or "no word"
    others = step.n_labels - len(step.labels)
    more = f" and {others:,} more" if others else ""
    return Text(f"  via {', '.join(step.labels)}{more}: {words}", style="dim")


def _neighbour_line(one: Neighbour) -> Text:
    return Text(f"  like {one.text!r:.60} ({', '.join(one.labels[:3])}; {one.similarity:.2f})")
