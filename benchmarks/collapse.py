"""The nearest of very many label sets: `NearestSet` against plain matrix products.

    python benchmarks/collapse.py
    python benchmarks/collapse.py --sets 10000 --features 64

Label sets of one to four labels, their means as collapsed features have them (sums of the labels'
vectors, with noise), and samples near some of them. "Plain" is one product of all samples and all
means in 32 bits, whose squares are known before; `NearestSet` decides in 64 bits. Times are
medians of processor time on one thread, per sample, after a first answer that does not count;
`--batches` are the numbers of samples asked at a time. With features like these, answers are equal.
"""

import argparse
import shlex
import sys
from statistics import median
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, timed
from harness.report import made_by, table_lines, write_results
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from umpteen.collapse import NearestSet

LABELS = 1_000


def main() -> None:
    options = parse()
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/collapse.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }
    for n_features in options.features:
        for n_sets in options.sets:
            with threadpool_limits(1):
                results["rows"] += measure(n_sets, n_features, options.batches, options.repeats)
            path = results_folder(quick=False) / "collapse.json"
            write_results(results, path, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--features", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64, 1024])
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def measure(n_sets: int, n_features: int, batches: list[int], repeats: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    sets = distinct_sets(n_sets, random)
    vectors = random.standard_normal((LABELS, n_features)).astype(np.float32)
    features = sets @ vectors + 0.3 * random.standard_normal((n_sets, n_features))
    with Stopwatch() as fitting:
        decoder = NearestSet().fit(features, sets)
    means = decoder.means_.astype(np.float32)
    squares = (means**2).sum(axis=1)
    found = []
    for size in batches:
        rows = random.integers(n_sets, size=size)
        samples = features[rows] + 0.3 * random.standard_normal((size, n_features))
        ours, our_times = timed(lambda samples=samples: decoder.predict(samples), repeats, 60.0)
        plain, plain_times = timed(
            lambda samples=samples: by_product(decoder, means, squares, samples), repeats, 60.0
        )
        found.append({
            "sets": n_sets, "features": n_features, "batch": size, "fit": fitting.wall,
            "ours": median(watch.cpu for watch in our_times) / size,
            "plain": median(watch.cpu for watch in plain_times) / size,
            "ours_wall": median(watch.wall for watch in our_times) / size,
            "plain_wall": median(watch.wall for watch in plain_times) / size,
            "equal": (ours != plain).nnz == 0,
        })  # fmt: skip
    return found


def distinct_sets(n_sets: int, random: np.random.Generator) -> csr_matrix:
    """Of one to four labels each."""
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < n_sets:
        labels = random.choice(LABELS, random.integers(1, 5), replace=False)
        chosen[tuple(sorted(labels.tolist()))] = None
    lengths = [len(labels) for labels in chosen]
    indices = [label for labels in chosen for label in labels]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (n_sets, LABELS))


def by_product(decoder: NearestSet, means: Any, squares: Any, samples: Any) -> csr_matrix:
    """|x - m|^2 for all samples and sets at once, less what all sets have in common."""
    queries = samples.astype(np.float32)
    distances = squares - 2 * (queries @ means.T)
    return csr_matrix(decoder.sets_[distances.argmin(axis=1)])


def markdown(results: dict[str, Any]) -> str:
    heads = ["sets", "features", "samples at a time", "NearestSet, ms per sample",
             "plain product, ms", "ratio", "answers"]  # fmt: skip
    rows = [
        [
            f"{row['sets']:,}", str(row["features"]), f"{row['batch']:,}",
            f"{1e3 * row['ours']:.3f}", f"{1e3 * row['plain']:.3f}",
            f"{row['plain'] / row['ours']:.1f}", "equal" if row["equal"] else "differ",
        ]
        for row in results["rows"]
    ]  # fmt: skip
    parts = [
        "# The nearest of many label sets",
        f"{made_by(results)} Processor time of one thread.",
        table_lines([heads, *rows]),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
