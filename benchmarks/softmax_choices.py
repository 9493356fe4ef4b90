"""Choices of AdversarialSoftmax on validation samples: the fit of its tree, the initial scale.

    python benchmarks/softmax_choices.py trees
    python benchmarks/softmax_choices.py scale

`trees`: what makes the noise tree's fit cheaper, and what AdversarialSoftmax() is worth with it.
`scale`: initial scores of sparse rows, 10 times the cosine or the likeliest scale. Means and
deviations of the seeds, CPU seconds of one thread.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix

from papers.adversarial.methods import measure, warm_up
from papers.adversarial.signal import gaussian_classes
from papers.adversarial.tasks import Task, task
from umpteen.kernels.compiling import kernel
from umpteen.kernels.noise_fit import Effort, fit_node
from umpteen.softmax import AdversarialSoftmax, NoiseTree, initial_weights, noise_tree, tree_fitting
from umpteen.trees import hierarchy

TEXTS = ("pydocs", "wordnet-ancestors", "debian-deps")
IDEAS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # settings, and constants
    "as it is": ({}, {}),
    "4,096 samples of a node": ({}, {"_MOST_ROWS": 4_096}),
    "3 rounds of alternation": ({"max_rounds": 3}, {}),
    "fewer Newton steps (tolerance 0.01)": ({}, {"_TOLERANCE": 0.01}),
    "2,500 samples to choose a level's regulariser": ({}, {"_ENOUGH_SAMPLES": 2_500}),
    "shape by LabelTree's clustering": ({}, {}),
    "all of the first four": ({"max_rounds": 3}, {"_MOST_ROWS": 4_096, "_TOLERANCE": 0.01,
                                                  "_ENOUGH_SAMPLES": 2_500}),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("choice", choices=("trees", "scale"))
    parser.add_argument("--quick", action="store_true", help="few samples, to see that it runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tree-only", action="store_true", help="trees: without the classifier")
    parser.add_argument("--sets", nargs="+", default=TEXTS, help="scale: sets of texts")
    options = parser.parse_args()
    for row in scales(options) if options.choice == "scale" else trees(options):
        print(" | ".join(row), flush=True)


def trees(options: argparse.Namespace) -> Iterator[list[str]]:
    """Each idea: its tree, and the whole classifier with it."""
    quick, alone = options.quick, options.tree_only
    warm_up(True)
    for idea in IDEAS:  # compiles
        with_idea(gaussian_classes(100, 16, 0), idea, 0, True, alone)
    columns = ["fit of the tree, s", "its accuracy", "its log-likelihood"]
    yield ["data, idea", *columns, *([] if alone else ["accuracy", "log-likelihood"])]
    for name, chosen in tree_tasks(quick):
        for idea in IDEAS:
            runs = [with_idea(chosen, idea, seed, quick, alone) for seed in range(options.seeds)]
            yield [f"{name}, {idea}", *over_seeds(runs)]


def tree_tasks(quick: bool) -> Iterator[tuple[str, Task]]:
    n_classes = 300 if quick else 10_000
    yield f"{n_classes:,} Gaussian classes", gaussian_classes(n_classes, 16, 0)


def with_idea(chosen: Task, idea: str, seed: int, quick: bool, alone: bool) -> tuple[float, ...]:
    settings, constants = IDEAS[idea]
    with ExitStack() as patched:
        for name, value in constants.items():
            patched.enter_context(patch.object(tree_fitting, name, value))
        if idea == "shape by LabelTree's clustering":
            patched.enter_context(patch.object(noise_tree, "grow", grow_clustered))
        tree = NoiseTree(random_state=seed, n_jobs=1, verbose=False, **settings)
        began = time.process_time()
        tree.fit(chosen.X, chosen.Y)
        seconds = time.process_time() - began
        X, y = chosen.validation.X, chosen.validation.y
        right = 100 * float((tree.topk(X, k=1).labels[:, 0] == y).mean())
        found = seconds, right, float(tree.log_prob(X, y).mean())
        if alone:
            return found
        model = AdversarialSoftmax(noise=tree, random_state=seed, n_jobs=1, verbose=False)
        model.set_params(epochs=1 if quick else 30).fit(chosen.X, chosen.Y)
    return *found, *measure(model, chosen.validation)


def grow_clustered(
    samples: Any, regularizers: Any, max_rounds: int, n_jobs: int | None, bar: Any
) -> tree_fitting.Growth:
    """Grow a tree whose halves are LabelTree's clusters of class means; fit its weights only."""
    counts = np.maximum(np.diff(samples.start), 1)[:, None]
    means = samples.sums / counts
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    n_classes, every = len(means), np.arange(len(means), dtype=np.int32)
    made = hierarchy.grow(
        csr_matrix(means.astype(np.float32)), labels=every, branching=2, max_leaf=1, n_jobs=1
    )
    order = made.label_order.astype(np.int64)
    bounds = np.array([0, n_classes])
    thetas = np.zeros((2 ** len(regularizers), samples.rows.shape[1] + 1), np.float32)
    layers = hierarchy._node_bounds(n_classes, 2, 1)
    effort = Effort(1, tree_fitting._TOLERANCE, tree_fitting._MOST_ROWS)
    for level, regularizer in enumerate(regularizers):
        n_left = left_halves(bounds, layers[level + 1])
        nodes = slice(2**level, 2 ** (level + 1))
        thetas[nodes] = fit_given(samples, order, bounds, n_left, float(regularizer), effort)
        bounds = tree_fitting.halved(bounds, n_left)
    n_rounds = np.ones(len(thetas), np.int32)
    return tree_fitting.Growth(tree_fitting._as_arrays(thetas, order, bounds), n_rounds)


def left_halves(bounds: Any, cuts: Any) -> Any:
    """Return how many classes of each node go left: up to the cut within it, none of a single."""
    within = np.searchsorted(cuts, bounds[:-1], side="right")
    cut = np.minimum(cuts[np.minimum(within, len(cuts) - 1)], bounds[1:])
    return np.where(np.diff(bounds) > 1, cut - bounds[:-1], 0)


@kernel
def fit_given(samples, order, bounds, n_left, regularizer, effort):  # type: ignore[no-untyped-def]
    """Fit the weights of nodes whose halves are given; returns `theta` of each."""
    dim = samples.rows.shape[1]
    thetas = np.zeros((len(bounds) - 1, dim + 1))
    history, theta = np.empty(3), np.empty(dim + 1)
    for node in range(len(bounds) - 1):
        classes = order[bounds[node] : bounds[node + 1]].copy()
        if len(classes) == 1:
            thetas[node, dim] = np.inf
            continue
        right = np.zeros(len(classes), np.bool_)
        right[n_left[node] :] = True
        theta[:] = 0.0
        fit_node(samples, classes, right, theta, regularizer, effort, history)
        thetas[node] = theta
    return thetas


def scales(options: argparse.Namespace) -> Iterator[list[str]]:
    """Sparse rows with the usual scale, and with the likeliest one."""
    quick = options.quick
    warm_up(False)
    yield ["data, scale", "scale", "accuracy", "log-likelihood", "s"]
    for name in options.sets:
        chosen = task(name, quick)
        for choice in ("10", "likeliest"):
            runs = []
            for seed in range(options.seeds):
                with patch.object(initial_weights, "issparse", return_value=choice == "10"):
                    runs.append(with_scale(chosen, seed, quick))
            yield [f"{name}, {choice}", *over_seeds(runs)]


def with_scale(chosen: Task, seed: int, quick: bool) -> tuple[float, ...]:
    found: list[float] = []
    choose = initial_weights.likeliest_scale

    def noted(*samples: Any) -> float:
        found.append(choose(*samples))
        return found[-1]

    model = AdversarialSoftmax(
        noise="frequency", random_state=seed, n_jobs=1, verbose=False, epochs=1 if quick else 30
    )
    began = time.process_time()
    with patch.object(initial_weights, "likeliest_scale", noted):
        model.fit(chosen.X, chosen.Y)
    seconds = time.process_time() - began
    return (*(found or [10.0]), *measure(model, chosen.validation), seconds)


def over_seeds(runs: list[tuple[float, ...]]) -> list[str]:
    columns = np.transpose(runs)
    return [
        f"{column.mean():.2f} ± {column.std(ddof=1):.2f}" if len(column) > 1 else f"{column[0]:.2f}"
        for column in columns
    ]


if __name__ == "__main__":
    main()
