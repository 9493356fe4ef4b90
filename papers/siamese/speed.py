"""Time of predictions and of training against the numbers of labels and samples."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from papers.contents import Block, Cell, Section, Table, Value
from papers.drawing import lines
from umpteen.data import make_extreme
from umpteen.search import LabelIndex
from umpteen.siamese import SiameseXML

_SIZES = (10_000, 100_000, 1_000_000)
_TRAINED = ((2_000, 4_000), (4_000, 4_000), (8_000, 4_000), (4_000, 8_000), (4_000, 16_000))
_DIM = 128  # the paper's for its largest sets
_SHORTLIST = 50
_SPREAD = 0.7  # of labels around the centre of their cluster

FloatArray = npt.NDArray[np.float32]


def sections(quick: bool) -> list[Section]:
    """One on predictions, one on training."""
    sizes, n_queries = ((2_000, 10_000), 50) if quick else (_SIZES, 500)
    trained = ((500, 500), (500, 1_000)) if quick else _TRAINED
    return [
        Section(
            "Predictions in logarithmic time",
            "a prediction takes O(D² + D log L): the encoder's residual block, and a walk "
            "through a graph of L labels.",
            f"Made-up unit vectors of {_DIM} numbers in clusters of 100; {n_queries} queries, one "
            f"at a time, the {_SHORTLIST} nearest labels; medians, on one machine of two cores.",
            partial(_measured, sizes, n_queries),
        ),
        Section(
            "Appendix D: training",
            "a batch of Module I takes O(B D² + B² D), whatever the number of labels, and one of "
            "Module III O(B D² log L): an epoch grows with the number of samples and labels, not "
            "with their product.",
            "Made-up data (`umpteen.data.make_extreme`), the paper's loss and cosines, 64 "
            "dimensions, one epoch of each module; CPU seconds of `fit` with and without it.",
            partial(_training, trained),
        ),
    ]


def seconds_of_modules(n_labels: int, n_samples: int) -> dict[str, float]:
    """CPU seconds that Module I and Modules II and III add to a fit of one epoch each."""
    data = make_extreme(n_samples, n_features=5_000, n_labels=n_labels, label_features=True)
    spent = {}
    for modules in ((), ("embed",), ("embed", "mine", "refine")):
        model = SiameseXML.paper(
            dim=64, epochs=1, recipe__modules=modules, recipe__refine_epochs=1,
            recipe__batch_size=512, recipe__n_hard=50, recipe__shortlist=50, recipe__mine_every=0,
            search="exact", random_state=0, n_jobs=1, verbose=False,
        )  # fmt: skip
        start = time.process_time()
        model.fit(data.train.X, data.train.Y, label_features=data.label_features)
        spent[modules] = time.process_time() - start
    return {
        "Module I": spent["embed",] - spent[()],
        "Modules II and III": spent["embed", "mine", "refine"] - spent["embed",],
    }


def _training(sizes: Sequence[tuple[int, int]]) -> Iterator[Block]:
    seconds_of_modules(*sizes[0])  # compiles
    rows: list[list[Cell]] = []
    for n_labels, n_samples in sizes:
        spent = seconds_of_modules(n_labels, n_samples)
        cells = [Value(seconds, digits=2) for seconds in spent.values()]
        rows.append([f"{n_labels:,}", f"{n_samples:,}", *cells])
    yield Table(
        "CPU seconds of one epoch", ["labels", "samples", "Module I", "Modules II and III"], rows
    )


def clustered(n: int, dim: int, seed: int) -> FloatArray:
    """Unit vectors, a hundred around each of many centres."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(1, n // 100), dim), np.float32)
    vectors = centres[random.integers(len(centres), size=n)]
    vectors += np.float32(_SPREAD) * random.standard_normal((n, dim), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def median_time(ask: Callable[[FloatArray], object], queries: FloatArray) -> float:
    """Seconds of one query."""
    ask(queries[:1])
    spent = []
    for row in range(len(queries)):
        start = time.perf_counter()
        ask(queries[row : row + 1])
        spent.append(time.perf_counter() - start)
    return float(np.median(spent))


def _measured(sizes: Sequence[int], n_queries: int) -> Iterator[Block]:
    curves: dict[str, list[float | None]] = {"all compared": [], "graph": [], "residual block": []}
    rows: list[list[Cell]] = []
    for n_labels in sizes:
        vectors = clustered(n_labels + n_queries, _DIM, seed=0)
        queries, labels = vectors[:n_queries], vectors[n_queries:]
        start = time.perf_counter()
        index = LabelIndex(labels, method="hnsw", use="single")
        built = time.perf_counter() - start
        recall = index.recall(queries, _SHORTLIST)
        by_graph = median_time(partial(index.topk, k=_SHORTLIST), queries)
        index.method = "exact"
        exact = median_time(partial(index.topk, k=_SHORTLIST), queries[: max(20, n_queries // 10)])
        block = median_time(partial(np.dot, b=labels[:_DIM].T), queries)
        for name, seconds in zip(curves, (exact, by_graph, block), strict=True):
            curves[name].append(1e3 * seconds)
        rows.append([
            f"{n_labels:,}", Value(1e3 * by_graph, digits=3), Value(1e3 * exact, digits=3),
            Value(1e3 * block, digits=3), Value(100 * recall, digits=1), Value(built, digits=1),
        ])  # fmt: skip
    yield Table(
        "Milliseconds of one query; the residual block is a product of D x D",
        ["labels", "graph", "all compared", "residual block", "graph's recall, %", "to build, s"],
        rows,
    )
    places = [f"{n_labels:,}" for n_labels in sizes]
    yield lines(
        "Time of one query (lower is better)", places, curves, x_label="labels", y_label="ms",
        logarithmic=True,
    )  # fmt: skip
