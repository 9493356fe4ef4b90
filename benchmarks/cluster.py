"""A fit on a Ray cluster of two nodes on this machine, beside threads, part by part.

    python benchmarks/cluster.py [--repeats 3] [--quick [--divide N]]

Both have two cores. The same fits of three sizes run on threads and on the cluster in turn, and
every task is timed where it runs. What is left of the wall time is the driver's own work, which no
node can take over. Then a node is killed at five moments. `benchmarks/cluster_memory.py` measures
what a node holds, and `benchmarks/cluster_plan.py` reads the results of both.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.metered import Metered, Step, cpu_seconds, local_cluster
from harness.report import made_by, table_lines, write_results

import umpteen as um
from umpteen import parallel

CORES = 2
SIZES = [
    (25_000, 10_000),
    (50_000, 20_000),
    (100_000, 50_000),
]  # samples, labels; the parts of the last are shown
N_FEATURES = 100_000
MOMENTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # shares of all tasks
STORE = 2_000_000_000
HOUR = 3600

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
        "repeats": options.repeats,
        "n_samples": largest.X.shape[0],
        "n_labels": largest.Y.shape[1],
        "n_values": int(largest.X.nnz),
        "n_label_values": int(largest.Y.nnz),
    }
    began = time.perf_counter()
    with local_cluster(CORES, STORE) as (cluster, engine):
        list(engine.map(nothing, list(range(16 * CORES)), ()))
        results["start"] = time.perf_counter() - began
        results["warm_up"] = fit(datas[0].train, engine, CORES)["wall"]
        results["sizes"] = [compared(data.train, engine, options.repeats) for data in datas]
        results["empty_task"] = empty_task(engine)
        results["put_rate"] = put_rate(engine, STORE // (100 if options.quick else 10))
        results["faults"] = [fault(datas[0].train, cluster, engine, moment) for moment in MOMENTS]
    results |= {name: results["sizes"][-1].pop(name) for name in ("threads", "cluster")}
    write_results(results, results_folder(options.quick) / "cluster.json", markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="fits of each size on each")
    parser.add_argument("--quick", action="store_true", help="a part of every size; not kept")
    parser.add_argument("--divide", type=int, default=20, help="with --quick: sizes by this")
    return parser.parse_args()


def compared(split: Any, engine: Any, repeats: int) -> dict[str, Any]:
    """Fit on threads and on the cluster in turn: walls of all, and the middle run of each."""
    runs: dict[str, list[dict[str, Any]]] = {"threads": [], "cluster": []}
    for repeat in range(repeats):
        for name, each in list(runs.items())[:: -1 if repeat % 2 else 1]:
            each.append(fit(split, engine if name == "cluster" else None, CORES))
    bits = {run.pop("bits") for each in runs.values() for run in each}
    middle = {
        name: sorted(each, key=lambda run: run["wall"])[len(each) // 2]
        for name, each in runs.items()
    }
    return {
        "n_samples": split.X.shape[0],
        "n_labels": split.Y.shape[1],
        "same_bits": len(bits) == 1,
        "walls": {name: [run["wall"] for run in each] for name, each in runs.items()},
        "cpu": {name: median(run["cpu"] for run in each) for name, each in runs.items()},
        "middle": {name: run["wall"] for name, run in middle.items()},
        **middle,
    }


def fit(split: Any, engine: Any, cores: int) -> dict[str, Any]:
    """Fit and predict once; the steps, the wall time, and the bits of the predictions."""
    metered = Metered(engine, cores)
    began, cpu = time.perf_counter(), cpu_seconds()
    with parallel.engine(metered):
        model = um.LabelTree(n_jobs=cores, random_state=0).fit(split.X, split.Y)
    wall, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    (tree,) = model.trees_
    arrays = [*vars(tree).values(), *vars(tree.hierarchy).values()]
    return {
        "wall": wall,
        "cpu": cpu,
        "steps": list(map(vars, metered.steps)),
        "bits": bits(model, split),
        "of_tree": sum(getattr(array, "nbytes", 0) for array in arrays),
        "n_weights": len(tree.weight),
    }


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


def rising(results: dict[str, Any], kind: str) -> tuple[float, float]:
    """The seconds that a cluster costs more: a fixed part, and a share of those on threads."""
    pairs = [(each[kind]["threads"], each[kind]["cluster"]) for each in results["sizes"]]
    here, more = np.array([(one, other - one) for one, other in pairs]).T
    share, fixed = np.polyfit(here, more, 1)
    return float(fixed), float(share)


def in_words(results: dict[str, Any]) -> str:
    (fixed, share), (fixed_cpu, share_cpu) = (rising(results, kind) for kind in ("middle", "cpu"))
    return (
        f"What the cluster costs more, as a straight line through the three sizes: {fixed:.2f} s "
        f"for each fit and {100 * share:.1f}% of its time on threads; of CPU, {fixed_cpu:.2f} s "
        f"and {100 * share_cpu:.1f}%. A fit of an hour would pay "
        f"{100 * (share + fixed / HOUR):.1f}% ({100 * (share_cpu + fixed_cpu / CORES / HOUR):.1f}% "
        "of CPU), if larger tasks cost no less than these. To start both nodes and a worker on "
        f"each took {results['start']:.1f} s, and the first small fit, in which workers load the "
        f"kernels, {results['warm_up']:.1f} s."
    )


def size_rows(results: dict[str, Any]) -> list[Row]:
    rows = [["samples", "labels", "threads s", "cluster s", "overhead %", "of each pair %",
             "threads CPU s", "cluster CPU s", "overhead %", "same bits"]]  # fmt: skip
    for each in results["sizes"]:
        pairs = [
            100 * (there / here - 1)
            for here, there in zip(each["walls"]["threads"], each["walls"]["cluster"], strict=True)
        ]
        cpu = each["cpu"]["threads"], each["cpu"]["cluster"]
        rows.append(
            [f"{each['n_samples']:,}", f"{each['n_labels']:,}",
             *(f"{each['middle'][name]:.1f}" for name in ("threads", "cluster")),
             f"{median(pairs):+.0f}", ", ".join(f"{pair:+.0f}" for pair in sorted(pairs)),
             *(f"{seconds:.1f}" for seconds in cpu), f"{100 * (cpu[1] / cpu[0] - 1):+.0f}",
             "yes" if each["same_bits"] else "NO"]
        )  # fmt: skip
    return rows


def markdown(results: dict[str, Any]) -> str:
    fault_rows = [["killed after", "undisturbed s", "disturbed s", "same bits"]] + [
        [f"{each['moment']:.0%} of tasks", f"{each['calm']:.1f}", f"{each['shaken']:.1f}",
         "yes" if each["same_bits"] else "NO"]
        for each in results["faults"]
    ]  # fmt: skip
    parts = [
        "# Fit on a cluster of two nodes, beside threads",
        made_by(results),
        "The cluster has two nodes of one core on the same machine, the threads have the same two "
        f"cores. LabelTree, fits on both in turn, {results['repeats']} each; times are medians. "
        "CPU seconds are of all processes, those of Ray itself included; unlike time, they do not "
        "depend on what else the machine does.",
        table_lines(size_rows(results)),
        in_words(results),
        "## By part",
        f"The last of these sizes, {results['n_samples']:,} samples with {results['n_labels']:,} "
        "labels, the fit of median time:",
        table_lines(part_rows(results)),
        amdahl(results),
        "## A node killed",
        table_lines(fault_rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
