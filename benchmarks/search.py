"""LabelIndex, exact and by its graph, compared with FAISS's own exact index.

    python benchmarks/search.py
    python benchmarks/search.py --sizes 1000000 --quick

Made-up unit vectors of 300 numbers: clusters of 20, whose members lie around a centre at a cosine
of 0.7; queries come from the same clusters. Every system of a size is a fresh process; batches of
1,000 queries and single ones take three turns each, the best batch and the median single query
count. Recall is of the 10 nearest. Memory is what building and searching add to the process that
holds the vectors. "open" is the time of `umpteen.load` and of the first query after it.
"""

import argparse
import multiprocessing
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, disk_megabytes, latencies, peak_megabytes, timed
from harness.report import made_by, table_lines, write_results
from rich.console import Console
from rich.table import Table

import umpteen as um
from umpteen.search import LabelIndex

DIM, K, CLUSTER = 300, 10, 20
SYSTEMS = ("exact", "hnsw", "faiss flat")
FIGURES = {
    "build": "build s",
    "batch": "batch µs/query",
    "p50": "single µs, median",
    "p99": "single µs, p99",
    "recall": f"recall@{K}",
    "memory": "added MB",
    "size": "saved MB",
    "open": "open ms",
}
FloatArray = npt.NDArray[np.float32]


def main() -> None:
    options = parse()
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/search.py", *sys.argv[1:]]),
        "seed": options.seed,
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }
    table = Table("vectors", "system", *FIGURES.values())
    for size in options.sizes:
        for system in SYSTEMS:
            row = in_fresh_process(system, size, options.seed, 100 if options.quick else 1000)
            results["rows"].append(row)
            table.add_row(*cells(row))
            write_results(results, results_folder(options.quick) / "search.json", page(results))
    Console().print(table)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=None, metavar="VECTORS")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="10,000 vectors and 100 queries")
    options = parser.parse_args()
    options.sizes = options.sizes or ([10_000] if options.quick else [10_000, 100_000])
    return options


def in_fresh_process(system: str, size: int, seed: int, n_queries: int) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures = pool.apply(measure, (system, size, seed, n_queries))
    return {"vectors": size, "system": system, **figures}


def measure(system: str, size: int, seed: int, n_queries: int) -> dict[str, float]:
    vectors, queries = made_up(size, n_queries, seed)
    warm_up(vectors, system)
    before = peak_megabytes()
    with Stopwatch() as build:
        index: Any = Flat(vectors) if system == "faiss flat" else LabelIndex(vectors, method=system)  # type: ignore[arg-type]
    singles = [query[None] for query in queries] * 3
    _, batches = timed(lambda: index.topk(queries, K), passes=3, budget=60)
    single = latencies(lambda query: index.topk(query, K), singles)
    figures = {
        "build": build.wall,
        "batch": 1e6 * batches[0].wall / len(queries),
        "p50": 1e3 * single["p50"],
        "p99": 1e3 * single["p99"],
        "memory": peak_megabytes() - before,
        "recall": index.recall(queries, K),
    }
    return figures if system == "faiss flat" else figures | stored(index, queries)


def stored(index: LabelIndex, queries: FloatArray) -> dict[str, float]:
    with TemporaryDirectory() as folder:
        index.save(folder)
        with Stopwatch() as opening:
            um.load(folder).topk(queries[:1], K)
        return {"size": disk_megabytes(Path(folder)), "open": 1e3 * opening.wall}


def made_up(size: int, n_queries: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Unit vectors in clusters, and queries from the same clusters."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(1, size // CLUSTER), DIM), dtype=np.float32)

    def drawn(n: int) -> FloatArray:
        rows = rng.standard_normal((n, DIM), dtype=np.float32)
        rows += centres[rng.integers(0, len(centres), n)]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    return drawn(size), drawn(n_queries)


def warm_up(vectors: FloatArray, system: str) -> None:
    """Compile, and load libraries."""
    method: Any = "exact" if system == "exact" else "hnsw"
    small = LabelIndex(vectors[:100], method=method)
    small.topk(vectors[:100], K)
    small.topk(vectors[:1], K)


class Flat:
    """FAISS's exact index, asked like ours."""

    def __init__(self, vectors: FloatArray) -> None:
        import faiss

        self.index = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(vectors)

    def topk(self, queries: FloatArray, k: int) -> Any:
        return self.index.search(queries, k)

    def recall(self, queries: FloatArray, k: int) -> float:
        return 1.0


def cells(row: dict[str, Any]) -> list[str]:
    figures = [shown(row[name]) if name in row else "" for name in FIGURES]
    return [f"{row['vectors']:,}", row["system"], *figures]


def shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def page(results: dict[str, Any]) -> str:
    heads = ["vectors", "system", *FIGURES.values()]
    table = table_lines([heads, *map(cells, results["rows"])])
    return f"# Nearest labels\n\n{made_by(results)}\n\n{table}\n"


if __name__ == "__main__":
    main()
