"""What a validation split costs LabelTree, and whether it costs precision.

    python benchmarks/validation_split.py [SET ...]

`fit`, `fit` without the validation split (a tenth of the samples, 5,000 at most) and
`fit_validated` take turns with the same seeds, on one thread. "two fits" are the first two
together, which a validation split would cost otherwise; ratios are of CPU seconds to `fit`,
medians over the seeds. Precision is that of the final model on the test part.
"""

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.metrics import precision_at_k
from umpteen.text import Vectorizer

SEEDS = {"cooking": 8, "debian-tags": 4, "eurlex57k": 2, "pydocs": 4}
KS = (1, 3, 5)


def main() -> None:
    """Compare on each data set, print a row for each."""
    there = set(um.data.names())
    names = sys.argv[1:] or [name for name in SEEDS if name in there]
    heads = (
        "data",
        "seeds",
        "fit, CPU s",
        "two fits",
        "validated",
        "fit, P@1/3/5",
        "validated, P@1/3/5",
    )
    table = Table(*heads)
    for name in names:
        table.add_row(*compare(name, SEEDS.get(name, 2)))
    Console(width=110).print(table)


def compare(name: str, n_seeds: int) -> list[str]:
    """Return the cells of a row."""
    data = um.data.load(name)
    vectorizer = Vectorizer()
    X, Y = vectorizer.fit_transform(data.train.texts), data.train.Y
    test_X, test_Y = vectorizer.transform(data.test.texts), data.test.Y
    seconds, precisions = [], []
    measure(X[:500], Y[:500], 0)  # compiles
    for seed in range(n_seeds):
        models, spent = measure(X, Y, seed)
        seconds.append(spent)
        tops = [model.predict_topk(test_X, max(KS)) for model in models]
        precisions.append([[precision_at_k(test_Y, top, k) for k in KS] for top in tops])
    plain, validated = 100 * np.mean(precisions, axis=0)
    ratios = [median(row[i] / row[0] for row in seconds) for i in (1, 2)]
    written = [" / ".join(f"{value:.2f}" for value in row) for row in (plain, validated)]
    cells = [f"{median(row[0] for row in seconds):.1f}", *(f"{ratio:.2f}" for ratio in ratios)]
    return [name, str(n_seeds), *cells, *written]


def measure(
    X: csr_matrix, Y: csr_matrix, seed: int
) -> tuple[list[um.LabelTree], tuple[float, float, float]]:
    """Return the models of both ways, and the CPU seconds of one fit, of two, and of both."""
    n = X.shape[0]
    split = np.zeros(n, bool)
    split[np.random.default_rng(seed).permutation(n)[: min(n // 10, 5_000)]] = True
    plain, trial, validated = (
        um.LabelTree.for_texts(random_state=seed, n_jobs=1, verbose=False) for _ in range(3)
    )
    one = spent(lambda: plain.fit(X, Y))
    without = spent(lambda: trial.fit(X[~split], Y[~split]))
    both = spent(lambda: validated.fit_validated(X, Y, split))
    return [plain, validated], (one, one + without, both)


def spent(work: Callable[[], object]) -> float:
    """Return the CPU seconds that work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
