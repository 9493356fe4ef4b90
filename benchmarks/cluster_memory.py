"""What a node of a cluster holds while a LabelTree is fitted: X whole, in blocks, and in files.

    python benchmarks/cluster_memory.py [--nodes 4] [--quick]

A cluster of nodes with one core runs on this machine. X is sent whole at first. Then it stays in
blocks of rows, on nodes whose stores are too small for the whole, but for the one that this program
runs on, which holds all blocks. Then it is in files of a scratch folder, which workers read in
place. The page compares formulas with measurements of memory; time is not measured.
"""

import argparse
import hashlib
import shlex
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.metered import local_cluster, of_workers
from harness.report import made_by, table_lines, write_results
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen import parallel
from umpteen.trees import label_representation

SAMPLES = (110_000, 140_000, 170_000)
N_LABELS, N_FEATURES, PER_SAMPLE = 5_000, 50_000, 200
STORE = 2_000_000_000
LEAST_STORE = 80_000_000  # Ray refuses less
ROOM = 1.1  # of what the formula says: the store of a node
ON_THEIR_WAY = 5 * 0.0625  # of a store: rows of batches at the most, as in umpteen.cluster
QUICK = 10
GROUPED = ((25_000, 10_000), (100_000, 50_000), (200_000, 100_000))  # samples, labels
GROUP_SIZE = 10

Row = list[str]


def main() -> None:
    options = parse()
    divisor = QUICK if options.quick else 1
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/cluster_memory.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "nodes": options.nodes,
        "eagle": [rows_of_eagle(n // divisor, labels // divisor) for n, labels in GROUPED],
        "sizes": [],
    }
    for n_samples in SAMPLES:
        data = um.data.make_extreme(
            n_samples // divisor, N_FEATURES // divisor, N_LABELS // divisor,
            features_per_sample=PER_SAMPLE, random_state=0,
        )  # fmt: skip
        results["sizes"].append(measured(data.train, options.nodes))
        write_results(
            results, results_folder(options.quick) / "cluster_memory.json", markdown(results)
        )
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="a tenth of every size; not kept")
    return parser.parse_args()


def measured(split: Any, n_nodes: int) -> dict[str, Any]:
    """Fit with X whole and in blocks: formulas, what nodes held, and whether bits are the same."""
    n, of_X = split.X.shape[0], 8 * split.X.nnz + 4 * split.X.shape[0]
    of_labels = 8 * split.Y.nnz + 5 * n
    whole = on_cluster(split, n_nodes, STORE, None)
    (tree,) = whole.pop("model").trees_
    arrays = [*vars(tree).values(), *vars(tree.hierarchy).values()]
    of_tree = sum(getattr(array, "nbytes", 0) for array in arrays)
    rows = label_representation(split.X, split.Y)
    of_rows = 8 * rows.nnz + 4 * rows.shape[0]
    most_blocks = max(of_rows, of_X + max(of_labels, n_nodes * of_tree)) / n_nodes
    in_blocks = most_blocks / (1 - ON_THEIR_WAY)
    store = max(LEAST_STORE, int(ROOM * in_blocks))
    blocks = on_cluster(split, n_nodes, store, 0)
    in_files = on_cluster(split, n_nodes, STORE, None, in_files=True)
    del blocks["model"], in_files["model"]
    return {
        "n_samples": n,
        "n_labels": split.Y.shape[1],
        "of_data": of_X + of_labels,
        "of_tree": of_tree,
        "n_weights": len(tree.weight),
        "of_rows": of_rows,
        "formula": max(of_rows, of_X + max(of_labels, of_tree)),
        "in_blocks": in_blocks,
        "whole": whole,
        "blocks": {**blocks, "store": store},
        "files": in_files,
        "same_bits": whole["bits"] == blocks["bits"] == in_files["bits"],
    }


def on_cluster(
    split: Any, n_nodes: int, store: int, most_whole: float | None, in_files: bool = False
) -> dict[str, Any]:
    """Fit once; `most_whole` is the share of a store above which X stays in blocks."""
    with local_cluster(n_nodes, store, STORE) as (cluster, engine):
        if most_whole is not None:
            engine.most_whole = most_whole
        list(engine.map(nothing, list(range(64)), ()))
        idle = max(of_workers())
        with (
            TemporaryDirectory() as folder, cluster.watched() as seen, parallel.engine(engine),
            um.data.scratch(folder) if in_files else nullcontext(),
        ):  # fmt: skip
            model = um.LabelTree(n_jobs=1, random_state=0).fit(split.X, split.Y)
            on_disk = sum(path.stat().st_size for path in Path(folder).glob("*/*"))
    top = model.predict_topk(split.X[:2000], k=5)
    bits = hashlib.sha256(top.labels.tobytes() + top.scores.tobytes()).hexdigest()
    return {
        "model": model, "bits": bits, "held": engine.most_held, "rows": engine.n_rows,
        "idle": idle, "on_disk": on_disk, **seen,
    }  # fmt: skip


def nothing(item: int) -> int:
    return item


class StoppedError(Exception):
    """The tasks of a step are known, and need not run."""


class Listed:
    """An engine that keeps the items of the first step, and stops."""

    width = 2

    def map(self, function: Any, items: list[Any], shared: tuple[Any, ...]) -> Any:
        self.items = items
        raise StoppedError


def rows_of_eagle(n_samples: int, n_labels: int) -> dict[str, Any]:
    """The share of all samples that each task of Eagle's embeddings reads."""
    split = um.data.make_extreme(n_samples, N_FEATURES, n_labels, random_state=0).train
    groups = um.data.group_randomly(split.X.shape[0], GROUP_SIZE, random_state=0)
    group_labels = um.data.aggregate(split.Y, groups)
    engine = Listed()
    with parallel.engine(engine), suppress(StoppedError):
        um.aggregated.group_label_embeddings(split.X, groups, group_labels)
    groups_of = csr_matrix(group_labels.T)
    shares = [
        len(np.unique((groups_of[labels] @ groups).indices)) / split.X.shape[0]
        for labels, _ in engine.items
    ]
    return {
        "n_samples": split.X.shape[0],
        "n_labels": n_labels,
        "tasks": len(shares),
        "mean": float(np.mean(shares)),
        "most": max(shares),
        "all": sum(shares),
    }


def eagle_rows(results: dict[str, Any]) -> list[Row]:
    rows = [["samples", "labels", "tasks", "rows of a task, mean", "most", "of all tasks"]]
    for each in results["eagle"]:
        rows.append(
            [f"{each['n_samples']:,}", f"{each['n_labels']:,}", str(each["tasks"]),
             f"{each['mean']:.0%}", f"{each['most']:.0%}", f"{each['all']:.1f} times X"]
        )  # fmt: skip
    return rows


def worker_rows(results: dict[str, Any]) -> list[Row]:
    """Memory of the largest worker: what a task of the root copies is most of it."""
    rows = [
        ["samples", "X and labels MB", "blocks: formula MB", "measured MB", "files: formula MB",
         "measured MB", "files on disk MB", "store MB"]
    ]  # fmt: skip
    for each in results["sizes"]:
        blocks, files = each["blocks"], each["files"]
        figures = [each["of_data"], blocks["idle"] + 2 * each["of_data"], blocks["worker"],
                   files["idle"] + 2 * each["of_data"], files["worker"], files["on_disk"],
                   files["used"]]  # fmt: skip
        rows.append([f"{each['n_samples']:,}", *(f"{figure / 1e6:,.1f}" for figure in figures)])
    return rows


def markdown(results: dict[str, Any]) -> str:
    rows = [
        ["samples", "labels", "X and labels MB", "rows of labels MB", "tree MB",
         "whole: formula MB", "measured MB", "blocks: formula MB", "store MB", "measured MB",
         "spilled MB", "rows moved MB", "same bits"]
    ]  # fmt: skip
    for each in results["sizes"]:
        whole, blocks = each["whole"], each["blocks"]
        figures = [each["of_data"], each["of_rows"], each["of_tree"], each["formula"],
                   whole["used"], each["in_blocks"], blocks["store"], blocks["used"],
                   blocks["spilled"], blocks["rows"]]  # fmt: skip
        rows.append(
            [f"{each['n_samples']:,}", f"{each['n_labels']:,}",
             *(f"{figure / 1e6:,.1f}" for figure in figures),
             "yes" if each["same_bits"] else "NO"]
        )  # fmt: skip
    parts = [
        "# What a node of a cluster holds",
        made_by(results),
        f"LabelTree on {results['nodes']} nodes of one core. Whole: every node holds X (8 bytes "
        "for each value and 4 for each sample), and the labels of a layer (8 bytes for each and 5 "
        "for each sample) or the tree that is searched; before, the rows of labels that are "
        "clustered, if these are larger. In blocks: a node holds its part of the same, and the "
        "tree; rows that are on their way take another 45% of that, at the most. Tasks that need "
        "more rows read one block after the other into their own memory. Measured is the most "
        "that Ray counted in the store of the last node, copies that it may drop included. In "
        "blocks, the store is too small for the whole: a fit that succeeds without spilling to "
        "disk shows that it is large enough.",
        table_lines(rows),
        "## Memory of a worker",
        "The most that a worker has of its own, without the store and without pages of files that "
        "it maps; its largest task learns the root from all samples. The formula is twice the size "
        "of X and labels, which a task asks Ray for, plus what a worker has before its first task "
        "of the fit. The files hold X, labels, rows of labels and trees.",
        table_lines(worker_rows(results)),
        "## Eagle",
        "Eagle's embeddings get X whole. A task of them reads all samples of the groups that its "
        f"labels occur in. This is their share in random groups of {GROUP_SIZE} (counted, not "
        "run):",
        table_lines(eagle_rows(results)),
        "The labels of a task are those that are frequent or rare together, so that the largest "
        "tasks read most samples at any size; blocks would save a node little memory, and move X "
        "many times in each round.",
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
