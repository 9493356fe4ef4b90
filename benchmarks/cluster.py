"""A fit on a Ray cluster of two nodes on this machine, beside threads, part by part.

    python benchmarks/cluster.py [--quick [--divide N]]

Both have two cores. The same fit runs on threads and on the cluster; every task is timed where it
runs. What is left of the wall time is the driver's own work, which no node can take over. Then the
data grows, to compare the memory of a node with a formula, and a node is killed at five moments.
`benchmarks/cluster_plan.py` reads the results.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.metered import Metered, Step, local_cluster
from harness.report import made_by, table_lines, write_results

import umpteen as um
from umpteen import parallel

CORES = 2
SIZES = [
    (25_000, 10_000),
    (50_000, 20_000),
    (100_000, 50_000),
]  # samples, labels; the last is timed
N_FEATURES = 100_000
MOMENTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # shares of all tasks
STORE = 2_000_000_000
LEAST_STORE = 80_000_000  # Ray refuses less
ROOM = 1.3  # of the tree and a half of the data: the store of a node

Row = list[str]


def main() -> None:
    options = parse()
    divisor = options.divide if options.quick else 1
    datas = [
        um.data.make_extreme(n // divisor, N_FEATURES // divisor, labels // divisor, random_state=0)
        for n, labels in SIZES
    ]
    largest = datas[-1].train
    fit(datas[0].train, None, CORES)  # compiles
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/cluster.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "n_samples": largest.X.shape[0],
        "n_labels": largest.Y.shape[1],
        "n_values": int(largest.X.nnz),
        "n_label_values": int(largest.Y.nnz),
        "threads": fit(largest, None, CORES),
    }
    with local_cluster(CORES, STORE) as (cluster, engine):
        results["warm_up"] = fit(datas[0].train, engine, CORES)["wall"]
        results["cluster"] = fit(largest, engine, CORES)
        results["empty_task"] = empty_task(engine)
        results["put_rate"] = put_rate(engine, STORE // (100 if options.quick else 10))
        results["memory"] = [memory(data.train, engine) for data in datas]
        results["faults"] = [fault(datas[0].train, cluster, engine, moment) for moment in MOMENTS]
    results["blocks"] = [
        in_blocks(data.train, whole) for data, whole in zip(datas, results["memory"], strict=True)
    ]
    for each in results["memory"]:
        del each["bits"]
    results["same_bits"] = results["threads"].pop("bits") == results["cluster"].pop("bits")
    write_results(results, results_folder(options.quick) / "cluster.json", markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a part of every size; not kept")
    parser.add_argument("--divide", type=int, default=20, help="with --quick: sizes by this")
    return parser.parse_args()


def fit(split: Any, engine: Any, cores: int) -> dict[str, Any]:
    """Fit and predict once; the steps, the wall time, and the bits of the predictions."""
    metered = Metered(engine, cores)
    began = time.perf_counter()
    with parallel.engine(metered):
        model = um.LabelTree(n_jobs=cores, random_state=0).fit(split.X, split.Y)
    wall = time.perf_counter() - began
    return {"wall": wall, "steps": list(map(vars, metered.steps)), "bits": bits(model, split)}


def bits(model: um.LabelTree, split: Any) -> str:
    with parallel.engine(None):  # type: ignore[arg-type]
        top = model.predict_topk(split.X[:2000], k=5)
    return (top.labels.tobytes() + top.scores.tobytes()).hex()


def nothing(item: int) -> int:
    return item


def empty_task(engine: Any, n: int = 320) -> float:
    """Seconds that a batch costs beyond its work."""
    n = 16 * engine.width * max(1, n // (16 * engine.width))
    list(engine.map(nothing, list(range(n)), ()))
    began = time.perf_counter()
    list(engine.map(nothing, list(range(n)), ()))
    return (time.perf_counter() - began) / n


def put_rate(engine: Any, n_bytes: int) -> float:
    """Bytes per second that are hashed and put into the store."""
    array = np.random.default_rng(0).integers(256, size=n_bytes, dtype=np.uint8)
    began = time.perf_counter()
    list(engine.map(first, [0, 1], (array,)))
    return n_bytes / (time.perf_counter() - began)


def first(item: int, array: Any) -> int:
    return int(array[item])


def memory(split: Any, engine: Any) -> dict[str, Any]:
    """The most that a step shares, and what the formula says: X, and the tree or the labels."""
    engine.most_held = 0
    with parallel.engine(engine):
        model = um.LabelTree(n_jobs=CORES, random_state=0).fit(split.X, split.Y)
    (tree,) = model.trees_
    arrays = [*vars(tree).values(), *vars(tree.hierarchy).values()]
    of_tree = sum(getattr(array, "nbytes", 0) for array in arrays)
    n = split.X.shape[0]
    return {
        "n_samples": n,
        "n_labels": split.Y.shape[1],
        "of_tree": of_tree,
        "n_weights": len(tree.weight),
        "measured": engine.most_held,
        "bits": bits(model, split),
        "formula": 8 * split.X.nnz + 4 * n + max(8 * split.Y.nnz + 5 * n, of_tree),
    }


def in_blocks(split: Any, whole: dict[str, Any]) -> dict[str, Any]:
    """Fit with X in blocks on nodes with small stores, but for the driver's; `whole` as before."""
    of_data = 8 * (split.X.nnz + split.Y.nnz) + 9 * split.X.shape[0]
    store = max(LEAST_STORE, int(ROOM * (of_data / CORES + whole["of_tree"])))
    with local_cluster(CORES, store, STORE) as (cluster, engine), cluster.watched() as seen:
        engine.most_whole = 0
        found = fit(split, engine, CORES)
    return {
        "n_samples": split.X.shape[0],
        "n_labels": split.Y.shape[1],
        "of_data": of_data,
        "formula": engine.most_held,
        "store": store,
        "wall": found["wall"],
        "rows": engine.n_rows,
        "same_bits": found["bits"] == whole["bits"],
        **seen,
    }


class Disturbed:
    """An engine that something happens to after some results."""

    def __init__(self, engine: Any, after: int, disturb: Callable[[], object]) -> None:
        self._engine, self._left, self._disturb = engine, after, disturb

    @property
    def width(self) -> int:
        return self._engine.width  # type: ignore[no-any-return]

    def map(self, function: Any, items: list[Any], shared: tuple[Any, ...]) -> Any:
        for result in self._engine.map(function, items, shared):
            self._left -= 1
            if self._left == 0:
                self._disturb()
            yield result


def fault(split: Any, cluster: Any, engine: Any, moment: float) -> dict[str, Any]:
    """Kill a node at a moment of a fit: whether the predictions are the same, and the time."""
    calm = fit(split, engine, CORES)
    n_tasks = sum(len(step["seconds"]) for step in calm["steps"])
    shaken = Disturbed(engine, max(1, round(moment * n_tasks)), cluster.replace_one)
    found = fit(split, shaken, CORES)
    return {
        "moment": moment,
        "calm": calm["wall"],
        "shaken": found["wall"],
        "same_bits": found["bits"] == calm["bits"],
    }


def by_part(run: dict[str, Any]) -> dict[str, Step]:
    """The steps of each part added up."""
    parts: dict[str, Step] = {}
    for each in run["steps"]:
        total = parts.setdefault(each["part"], Step(each["part"]))
        total.wall += each["wall"]
        total.seconds += each["seconds"]
        total.sent += each["sent"]
        total.received += each["received"]
    return parts


def part_rows(results: dict[str, Any]) -> list[Row]:
    threads, cluster = by_part(results["threads"]), by_part(results["cluster"])
    heads = ["part", "tasks", "CPU s of tasks", "threads s", "cluster s", "overhead %", "MB sent",
             "MB of results"]  # fmt: skip
    rows = [heads]
    for part, there in cluster.items():
        here = threads[part].wall
        rows.append(
            [part, f"{len(there.seconds):,}", f"{sum(there.seconds):.1f}", f"{here:.1f}",
             f"{there.wall:.1f}", f"{100 * (there.wall / here - 1):+.0f}",
             f"{there.sent / 1e6:,.1f}", f"{there.received / 1e6:,.1f}"]
        )  # fmt: skip
    walls = [results[run]["wall"] for run in ("threads", "cluster")]
    own = [
        wall - sum(step.wall for step in parts.values())
        for wall, parts in zip(walls, (threads, cluster), strict=True)
    ]
    for name, (here, there) in {"driver alone": own, "all": walls}.items():
        change = f"{100 * (there / here - 1):+.0f}"
        rows.append([name, "", "", f"{here:.1f}", f"{there:.1f}", change, "", ""])
    return rows


def amdahl(results: dict[str, Any]) -> str:
    """The driver's share of all work, and what it limits the speed-up to."""
    parts = by_part(results["threads"])
    own = results["threads"]["wall"] - sum(step.wall for step in parts.values())
    work = sum(sum(step.seconds) for step in parts.values())
    share = own / (own + work)
    return (
        f"The driver alone has {100 * share:.1f}% of all CPU seconds (representations and "
        "memberships of labels, assembling, trust, and steps of one task: the first cut, and the "
        "root if it has few children), so that no number of nodes is more than "
        f"{1 / share:,.0f} times as fast as one core. A batch of tasks costs "
        f"{1e3 * results['empty_task']:.1f} ms beyond its work, and common data goes into the "
        f"store at {results['put_rate'] / 1e6:,.0f} MB/s."
    )


def markdown(results: dict[str, Any]) -> str:
    memory_rows = [["samples", "labels", "formula MB", "measured MB"]] + [
        [f"{each['n_samples']:,}", f"{each['n_labels']:,}", f"{each['formula'] / 1e6:,.1f}",
         f"{each['measured'] / 1e6:,.1f}"]
        for each in results["memory"]
    ]  # fmt: skip
    fault_rows = [["killed after", "undisturbed s", "disturbed s", "same bits"]] + [
        [f"{each['moment']:.0%} of tasks", f"{each['calm']:.1f}", f"{each['shaken']:.1f}",
         "yes" if each["same_bits"] else "NO"]
        for each in results["faults"]
    ]  # fmt: skip
    block_rows = [
        ["samples", "labels", "X and labels MB", "formula MB", "store MB", "most in use MB",
         "spilled MB", "MB of rows moved", "s", "same bits"]
    ] + [
        [f"{each['n_samples']:,}", f"{each['n_labels']:,}",
         *(f"{each[name] / 1e6:,.1f}"
           for name in ("of_data", "formula", "store", "used", "spilled", "rows")),
         f"{each['wall']:.1f}", "yes" if each["same_bits"] else "NO"]
        for each in results["blocks"]
    ]  # fmt: skip
    parts = [
        "# Fit on a cluster of two nodes, beside threads",
        made_by(results),
        f"LabelTree on {results['n_samples']:,} samples with {results['n_labels']:,} labels. The "
        "cluster has two nodes of one core on the same machine, the threads have the same two "
        f"cores. Same bits: {'yes' if results['same_bits'] else 'NO'}.",
        table_lines(part_rows(results)),
        amdahl(results),
        "## Memory of a node",
        "Bytes that every node must hold: 8 for each value of X and 4 for each sample, and the "
        "same for the labels of a layer, or the tree if that is larger.",
        table_lines(memory_rows),
        "If X and the labels are larger than a quarter of a node's store, they stay in blocks of "
        "rows, here always: a node holds what a step shares, its part of the blocks, and for each "
        "core five times the rows of a batch. Tasks of the root need all rows: they read one block "
        "after the other into their own memory. Ray counts what is in use in the second node's "
        "store, copies that it may drop included.",
        table_lines(block_rows),
        "## A node killed",
        table_lines(fault_rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
