"""`LabelIndex`: the nearest labels of a query, by cosine."""

from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any, Literal, get_args

import numpy as np

from umpteen import parallel, storage
from umpteen.base import TopK
from umpteen.errors import ParameterError
from umpteen.kernels.compiling import frozen
from umpteen.kernels.nearest import rank_candidates
from umpteen.search.exact import exact_topk
from umpteen.search.graph import Graph, is_available, require_library
from umpteen.search.vectors import (
    BoolArray,
    FloatArray,
    IntArray,
    check_ids,
    check_option,
    check_some,
    has_direction,
    unit_vectors,
)
from umpteen.validation import check_k

Method = Literal["auto", "exact", "hnsw"]
Use = Literal["batch", "single"]

# Numbers in the table of vectors from which a graph answers sooner than the comparison of all.
_GRAPH_PAYS = {"single": 3_000_000, "batch": 150_000_000}
_FEWEST_LINKS = 2
_A_BATCH = 64  # queries in one call
_MOST_BY_GRAPH = 0.25  # of the labels; to find more, a walk visits nearly all


@storage.storable
@dataclass(init=False, eq=False)
class LabelIndex:
    """One vector per label, and a search for the labels with the highest cosine to a query.

    Vectors and queries are scaled to length 1; the score is their inner product, the cosine.
    Labels are numbered from 0 in the order of rows. A row of zeros has no direction: as a vector it
    is never returned, and as a query it gets no labels (label -1, score -inf).

    **method.** `"exact"` compares a query with all vectors. It is best for queries in batches, and
    with up to 10,000 labels also for single queries. `"hnsw"` searches a graph of neighbours in
    logarithmic time, and misses some labels (`recall` measures how many). It needs FAISS
    (`pip install 'umpteen[neural]'`) and time to build. `"auto"` builds a graph if it is worth it:
    for many labels and single queries (`use="single"`), or for very many labels (500,000 vectors of
    300 dimensions). Each call of `topk` then uses the faster method for its number of queries.
    Without FAISS, it is exact.

    If `k` is more than a quarter of the labels, all vectors are compared, whatever the method.

    **Settings of the graph.** With larger `n_links`, `build_width` and `beam_width`, the search
    misses less and takes longer; `beam_width` can be changed at any time.

    Scores are the same bits for any method, block, number of threads and BLAS. So are the labels of
    `"exact"`, where ties are ordered by label id. The graph is the same for any `n_jobs`.

    >>> index = LabelIndex([[1, 0], [0, 1], [3, 4]])
    >>> top = index.topk([[1, 1]], k=2)
    >>> top.labels, top.scores.round(3)
    (array([[2, 0]], dtype=int32), array([[0.99 , 0.707]], dtype=float32))
    """

    method: Method
    use: Use
    n_links: Annotated[int, storage.Within(2, 2**16)]
    build_width: Annotated[int, storage.Within(1, 2**31)]
    beam_width: Annotated[int, storage.Within(1, 2**31)]
    n_jobs: Annotated[int, storage.Within(-1, 2**31)] | None
    vectors: Annotated[  # of length 1, or zeros
        FloatArray, storage.Shape("labels", "dim"), storage.Within(-2, 2)
    ]
    present: Annotated[BoolArray, storage.Shape("labels")]  # neither removed nor zeros
    graph: Graph | None

    def __init__(
        self,
        vectors: Any,
        *,
        method: Method = "auto",
        use: Use = "batch",
        n_links: int = 16,
        build_width: int = 100,
        beam_width: int = 100,
        n_jobs: int | None = -1,
    ) -> None:
        self.method = check_option(method, "method", get_args(Method))
        self.use = check_option(use, "use", get_args(Use))
        self.n_links = check_k(n_links, "n_links")
        if n_links < _FEWEST_LINKS:
            raise ParameterError(f"n_links={n_links} is too few: use {_FEWEST_LINKS} or more")
        self.build_width = check_k(build_width, "build_width")
        self.beam_width = check_k(beam_width, "beam_width")
        self.n_jobs = n_jobs
        parallel.n_threads(n_jobs)
        self._check_library()
        self.vectors = check_some(unit_vectors(vectors, "vectors"))
        self.present = has_direction(self.vectors)
        self.graph = None
        self._link(np.flatnonzero(self.present))

    @property
    def n_labels(self) -> int:
        """The number of ids in use, including those of removed labels."""
        return len(self.vectors)

    def __len__(self) -> int:
        """Labels that can be answered."""
        return int(np.count_nonzero(self.present))

    def topk(self, queries: Any, k: int = 10) -> TopK:
        """Return the `k` nearest labels of each query `(n, dim)`, best first."""
        k = check_k(k)
        units = unit_vectors(queries, "queries", dim=self.vectors.shape[1])
        return self._answer(units, k, by_graph=self._graph_is_quicker(len(units), k))

    def near(self, units: FloatArray, k: int, n_queries: int) -> IntArray:
        """Return the labels of `topk` in any order; queries have length 1, unchecked.

        They are some of `n_queries`, whose number decides whether a graph is walked.
        """
        n_best = min(k, len(self))
        if self.graph is None or n_best == 0 or not self._graph_is_quicker(n_queries, k):
            return self._answer(units, k, by_graph=False).labels
        found = self.graph.search(
            self.vectors, units, n_best, width=self.beam_width, n_jobs=self.n_jobs
        )
        found[~has_direction(units)] = -1
        return found

    def recall(self, queries: Any, k: int = 10) -> float:
        """Return the share of the true k nearest labels that the graph finds; 1 without a graph.

        A label with exactly the score of the k-th counts as found, whichever of them it is.
        """
        k = check_k(k)
        units = unit_vectors(queries, "queries", dim=self.vectors.shape[1])
        if self.graph is None:
            return 1.0
        true = self._answer(units, k, by_graph=False)
        found = self._answer(units, k, by_graph=True)
        n_true = (true.labels >= 0).sum(axis=1)
        if not n_true.any():
            return 1.0
        last = np.take_along_axis(true.scores, np.maximum(n_true - 1, 0)[:, None], axis=1)
        hits = (found.labels >= 0) & (found.scores >= last)
        return float(hits.sum() / n_true.sum())

    def add(self, vectors: Any) -> IntArray:
        """Add labels and return their ids. Copies the table: add many at once."""
        self._check_library()
        units = check_some(unit_vectors(vectors, "vectors", dim=self.vectors.shape[1]))
        new = np.arange(self.n_labels, self.n_labels + len(units), dtype=np.int32)
        self.vectors = np.concatenate([self.vectors, units])
        self.present = np.concatenate([self.present, has_direction(units)])
        self._link(new[self.present[new]])
        return new

    def remove(self, ids: Any) -> None:
        """Remove these labels from all answers; their ids are not used again."""
        chosen = check_ids(ids, self.n_labels)
        self.present[chosen] = False
        if self.graph is None:
            return
        self.graph.remove(chosen)
        if 2 * np.count_nonzero(self.graph.hidden) > len(self.graph.ids):
            self.graph = None  # walking over so many that are gone finds little
            self._link(np.flatnonzero(self.present))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index into the folder `path`; `umpteen.load(path)` opens it, mapped."""
        storage.save(self, path)

    def _answer(self, units: FloatArray, k: int, *, by_graph: bool) -> TopK:
        k = min(k, self.n_labels)
        labels = np.full((len(units), k), -1, np.int32)
        scores = np.full((len(units), k), -np.inf, np.float32)
        asked = has_direction(units)
        queries = units if asked.all() else units[asked]
        n_best = min(k, len(self))
        if n_best and len(queries):
            graph = self.graph if by_graph else None
            top = (
                self._exact_topk(queries, n_best)
                if graph is None
                else self._graph_topk(graph, queries, n_best)
            )
            labels[asked, :n_best], scores[asked, :n_best] = top.labels, top.scores
        return TopK(labels, scores)

    def _exact_topk(self, queries: FloatArray, k: int) -> TopK:
        return exact_topk(self.vectors, self.present, queries, k, n_jobs=self.n_jobs)

    def _graph_topk(self, graph: Graph, queries: FloatArray, k: int) -> TopK:
        candidates = graph.search(
            self.vectors, queries, k, width=self.beam_width, n_jobs=self.n_jobs
        )
        return TopK(*rank_candidates(*frozen((queries, self.vectors)), candidates))

    def _graph_is_quicker(self, n_queries: int, k: int) -> bool:
        if self.graph is None or self.method == "exact" or k > _MOST_BY_GRAPH * self.n_labels:
            return False
        if self.method == "hnsw":
            return True
        use = "batch" if n_queries >= _A_BATCH else "single"
        return is_available() and self.vectors.size >= _GRAPH_PAYS[use]

    def _check_library(self) -> None:
        if self.method == "hnsw":
            require_library()

    def _link(self, ids: Any) -> None:
        """Bring new labels into the graph, or all of them into a new one where it pays by now."""
        if not self._wants_graph():
            self.graph = None
            return
        if self.graph is None:
            self.graph, ids = Graph.empty(self.n_links), np.flatnonzero(self.present)
        if len(ids):
            self.graph.add(
                self.vectors, ids.astype(np.int32), width=self.build_width, n_jobs=self.n_jobs
            )

    def _wants_graph(self) -> bool:
        if self.method != "auto":
            return self.method == "hnsw"
        return is_available() and self.vectors.size >= _GRAPH_PAYS[self.use]
