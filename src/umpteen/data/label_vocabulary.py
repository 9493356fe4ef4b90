"""What is known about labels apart from their samples: names, texts, and which are broader."""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import chain, pairwise
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csr_matrix

from umpteen.data.label_matching import match_labels
from umpteen.errors import LabelsError
from umpteen.storage import Offsets, Shape, Sizes, storable
from umpteen.validation import check_names, cyclic

_MOST_COMPARED = 100_000  # labels that are looked at for what was meant: a second or so

_CONCEPT_TEXTS = ("name", "text", "uri", "notation")
_CONCEPT_LISTS = ("alternatives", "broader")


@dataclass(frozen=True)
class Concept:
    """A label as a vocabulary describes it.

    `label` is the name that training data uses, `name` the preferred name for people,
    `alternatives` are other names, `text` is a description, and `broader` has the labels of the
    direct parents. All but `label` may be empty.
    """

    label: str
    name: str = ""
    alternatives: tuple[str, ...] = ()
    text: str = ""
    broader: tuple[str, ...] = ()
    uri: str = ""
    notation: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the preferred one first, each once."""
        return tuple(name for name in dict.fromkeys((self.name, *self.alternatives)) if name)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class LabelVocabulary(Mapping[str, Concept]):
    """A mapping from labels to what a vocabulary says about them, in the order of its file.

    `read_vocabulary` reads one from a file, and `LabelVocabulary.of` makes one from concepts.
    Parents that are not in the vocabulary are left out. If the hierarchy has a cycle, the link that
    closes it, in the order of the file, is left out with a warning.

    >>> vocabulary = LabelVocabulary.of(
    ...     [
    ...         Concept("c1", "animal"),
    ...         Concept("c2", "dog", ("hound",), "A pet that barks", broader=("c1",)),
    ...     ]
    ... )
    >>> vocabulary
    LabelVocabulary of 2 labels: 'c1' (animal), 'c2' (dog)
    >>> vocabulary["c2"].broader
    ('c1',)
    >>> vocabulary.texts()
    {'c1': 'animal', 'c2': 'dog; hound; A pet that barks'}
    """

    labels: Annotated[list[str], Shape("labels")]
    preferred: Annotated[list[str], Shape("labels")]
    descriptions: Annotated[list[str], Shape("labels")]
    uris: Annotated[list[str], Shape("labels")]
    notations: Annotated[list[str], Shape("labels")]
    alternatives: Annotated[list[str], Shape("alternatives")]
    offsets: Annotated[npt.NDArray[np.int64], Shape("labels + 1"), Offsets("alternatives")]
    broader: Annotated[csr_matrix, Shape("labels", "labels")]

    @classmethod
    def of(cls, concepts: Iterable[Concept]) -> Self:
        """Return a vocabulary of concepts, each with a label of its own."""
        concepts = list(concepts)
        for concept in concepts:
            _check_concept(concept)
        labels = [concept.label for concept in concepts]
        if len(set(labels)) < len(labels):
            twice = _repeated(labels)
            raise LabelsError(f"two concepts have the label {twice!r}; a label has one concept")
        return cls(
            labels,
            [concept.name for concept in concepts],
            [concept.text for concept in concepts],
            [concept.uri for concept in concepts],
            [concept.notation for concept in concepts],
            list(chain.from_iterable(concept.alternatives for concept in concepts)),
            np.cumsum([0, *(len(concept.alternatives) for concept in concepts)], dtype=np.int64),
            _broader(labels, [concept.broader for concept in concepts]),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._ids

    def __getitem__(self, label: str) -> Concept:
        if label not in self._ids:
            close = get_close_matches(str(label), self.labels if len(self) < _MOST_COMPARED else [])
            hint = f"; did you mean {close[0]!r:.60}?" if close else ""
            raise LabelsError(f"{label!r:.60} is not among the {len(self):,} labels{hint}")
        return self._concept(self._ids[label])

    def get(self, label: str, default: Any = None) -> Any:
        """Return the concept of a label, or `default` if there is none."""
        place = self._ids.get(label)
        return default if place is None else self._concept(place)

    def __repr__(self) -> str:
        shown = [
            f"{label!r}" + (f" ({name})" if name else "")
            for label, name in zip(self.labels[:3], self.preferred, strict=False)
        ]
        more = ", ..." if len(self) > len(shown) else ""
        return f"LabelVocabulary of {len(self):,} labels: {', '.join(shown)}{more}"

    def names(self) -> dict[str, tuple[str, ...]]:
        """Return all names of each label, the preferred one first."""
        return {label: concept.names for label, concept in self.items()}

    def texts(self) -> dict[str, str]:
        """Return names and description of each label as one text, as `label_texts=` takes it."""
        return {
            label: "; ".join(piece for piece in (*concept.names, concept.text) if piece)
            for label, concept in self.items()
        }

    def matching(self, labels: Iterable[str]) -> "LabelVocabulary":
        """Return the same vocabulary with labels as the training data writes them.

        `labels` are those of the training data: URIs (also `<uri>`), notations, last parts of URIs,
        or preferred names; case does not matter. The kind that matches most labels is used. A
        concept without such an identifier, or with the same one as an earlier concept, keeps its
        label. If almost no label matches, `LabelsError` shows examples of both sides.

        >>> concepts = [Concept("http://ex.org/7", "Dog"), Concept("http://ex.org/8", "Cat")]
        >>> list(LabelVocabulary.of(concepts).matching(["dog"]))
        ['dog', 'Cat']
        """
        found = match_labels(check_names(labels, "labels"), list(self.values()))
        return LabelVocabulary(
            found, self.preferred, self.descriptions, self.uris, self.notations,
            self.alternatives, self.offsets, self.broader,
        )  # fmt: skip

    def parents(self, labels: Iterable[str]) -> csr_matrix:
        """Return which of `labels` are direct parents of which, as CSR `(n, n)` of True.

        Row i marks the parents of label i. Labels that the vocabulary does not have, and those
        whose parents are not among `labels`, have an empty row.

        >>> vocabulary = LabelVocabulary.of([Concept("a"), Concept("b", broader=("a", "c"))])
        >>> vocabulary.parents(["b", "x", "a"]).toarray().astype(int)
        array([[0, 0, 1],
               [0, 0, 0],
               [0, 0, 0]])
        """
        asked = [str(label) for label in ([labels] if isinstance(labels, str) else labels)]
        if len(set(asked)) < len(asked):
            raise LabelsError(f"labels has {_repeated(asked)!r} twice; each label has one row")
        ids = np.array([self._ids.get(label, -1) for label in asked], np.int64)
        places = np.flatnonzero(ids >= 0)
        links = self.broader[ids[places]][:, ids[places]].tocoo()
        rows, columns = places[links.row], places[links.col]
        return _links(rows, columns, len(asked))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        return list(pairwise(self.offsets.tolist()))

    def _concept(self, i: int) -> Concept:
        above = self.broader.indices[self.broader.indptr[i] : self.broader.indptr[i + 1]]
        first, last = self._bounds[i]
        return Concept(
            self.labels[i],
            self.preferred[i],
            tuple(self.alternatives[first:last]),
            self.descriptions[i],
            tuple(self.labels[parent] for parent in above),
            self.uris[i],
            self.notations[i],
        )

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        if "" in self._ids or len(self._ids) < len(self.labels):
            yield "has a label that is empty, or twice"
        if self.broader.dtype != np.bool_ or not self.broader.has_canonical_format:
            yield "has a matrix of broader labels that is not a canonical one of True"
        elif cyclic(self.broader).any():
            yield "has labels that are broader than themselves"


def _check_concept(concept: Any) -> None:
    if not isinstance(concept, Concept):
        raise LabelsError(f"{concept!r:.80} is a {type(concept).__name__}; expected a Concept")
    label = concept.label
    if not isinstance(label, str) or not label:
        raise LabelsError(f"a concept has the label {label!r}; expected its name, a text")
    for field in _CONCEPT_TEXTS:
        given = getattr(concept, field)
        if not isinstance(given, str):
            raise LabelsError(
                f"the concept {label!r:.60} has {field}={given!r:.60}; expected a text, '' for none"
            )
    for field in _CONCEPT_LISTS:
        given = getattr(concept, field)
        if not isinstance(given, tuple | list) or not all(isinstance(one, str) for one in given):
            raise LabelsError(
                f"the concept {label!r:.60} has {field}={given!r:.60}; expected a tuple of texts, "
                "as in ('a', 'b')"
            )


def _repeated(labels: list[str]) -> str:
    return Counter(labels).most_common(1)[0][0]


def _broader(labels: list[str], parents: list[tuple[str, ...]]) -> csr_matrix:
    ids = {label: i for i, label in enumerate(labels)}
    pairs = [(i, ids[name]) for i, names in enumerate(parents) for name in names if name in ids]
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    links = _links(rows, columns, len(labels))
    closing = _closing_links(links)
    if closing:
        child, parent = closing[0]
        warnings.warn(
            f"{len(closing):,} links to a broader label close a cycle and are left out, such as "
            f"that from {labels[child]!r} to {labels[parent]!r}",
            stacklevel=4,
        )
        kept = sorted(set(pairs) - set(closing))
        rows, columns = np.array(kept, np.int64).reshape(-1, 2).T
        links = _links(rows, columns, len(labels))
    return links


def _links(rows: Any, columns: Any, n_labels: int) -> csr_matrix:
    matrix = coo_matrix((np.ones(len(rows), bool), (rows, columns)), shape=(n_labels, n_labels))
    links = csr_matrix(matrix)
    links.sum_duplicates()
    return links


def _closing_links(broader: csr_matrix) -> list[tuple[int, int]]:
    """The links that lead back to a label on the path from the first label of a cycle upwards."""
    in_cycle = cyclic(broader)
    on_path: set[int] = set()
    done: set[int] = set()
    closing: list[tuple[int, int]] = []

    def above(label: int) -> Iterator[int]:
        found = broader.indices[broader.indptr[label] : broader.indptr[label + 1]]
        return iter(found[in_cycle[found]].tolist())

    for start in np.flatnonzero(in_cycle).tolist():
        path = [] if start in done else [(start, above(start))]
        on_path.update(label for label, _ in path)
        while path:
            label, parents = path[-1]
            parent = next(parents, None)
            if parent is None:
                path.pop()
                on_path.remove(label)
                done.add(label)
            elif parent in on_path:
                closing.append((label, parent))
            elif parent not in done:
                path.append((parent, above(parent)))
                on_path.add(parent)
    return closing
