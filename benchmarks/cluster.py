"""A fit on a Ray cluster of two nodes on this machine, compared with threads, part by part.

    python benchmarks/cluster.py [--repeats 3] [--keep] [--quick [--divide N]]

Both have two cores. The same fits of four sizes run on threads and on the cluster in turn, and
every task is timed where it runs. What is left of the wall time is the driver's own work, which no
node can take over. A Tagger, an Eagle and a SiameseXML are fitted on both as well. Then a node is
killed at five moments.
`--keep` measures only what the results of an earlier run do not have.
`benchmarks/cluster_memory.py` measures what a node holds, and `benchmarks/cluster_plan.py` reads
the results of both.
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable
from itertools import chain
from statistics import median
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.metered import Disturbed, Metered, Step, cpu_seconds, local_cluster
from harness.report import made_by, table_lines, write_results

import umpteen as um
from umpteen import parallel

CORES = 2
SIZES = [
    (25_000, 10_000),
    (50_000, 20_000),
    (100_000, 50_000),
    (400_000, 150_000),
]  # samples, labels; the parts of the last are shown
OF_NETWORK = (12_500, 10_000)  # samples and labels of a SiameseXML with few epochs
OF_OTHERS = (25_000, 10_000)  # of a Tagger and of an Eagle
GROUP_SIZE = 5
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
    file = results_folder(options.quick) / "cluster.json"
    earlier = json.loads(file.read_text("utf-8")) if options.keep else {}
    fit(datas[0].train, None, CORES)  # compiles
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/cluster.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "remark": options.remark,
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
        results |= {name: earlier[name] for name in ("start", "warm_up") if name in earlier}
        parts: dict[str, Callable[[], Any]] = {
            "sizes": lambda: [compared(data.train, engine, options.repeats) for data in datas],
            "threads": lambda: fit(largest, None, CORES, n_jobs=1),
            "cluster": lambda: fit(largest, engine, CORES, n_jobs=1),
            "tagger": lambda: on_both(taggers, OF_OTHERS, engine, divisor),
            "eagle": lambda: on_both(eagles, OF_OTHERS, engine, divisor),
            "network": lambda: on_both(networks, OF_NETWORK, engine, divisor),
            "empty_task": lambda: empty_task(engine),
            "put_rate": lambda: put_rate(engine, STORE // (100 if options.quick else 10)),
            "faults": lambda: [fault(datas[0].train, cluster, engine, each) for each in MOMENTS],
        }
        for name, measure in parts.items():
            results[name] = earlier[name] if name in earlier else measure()
    write_results(results, file, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="fits of each size on each")
    parser.add_argument("--remark", default="", help="a sentence about the run, for the page")
    parser.add_argument("--keep", action="store_true", help="measure only what is missing")
    parser.add_argument("--quick", action="store_true", help="a part of every size; not kept")
    parser.add_argument("--divide", type=int, default=20, help="with --quick: sizes by this")
    return parser.parse_args()


def compared(split: Any, engine: Any, repeats: int) -> dict[str, Any]:
    """Fit on threads and on the cluster in turn: walls of all, and medians."""
    runs: dict[str, list[dict[str, Any]]] = {"threads": [], "cluster": []}
    for repeat in range(repeats):
        for name, each in list(runs.items())[:: -1 if repeat % 2 else 1]:
            each.append(fit(split, engine if name == "cluster" else None, CORES))
    bits = {run.pop("bits") for each in runs.values() for run in each}
    return {
        "n_samples": split.X.shape[0],
        "n_labels": split.Y.shape[1],
        "same_bits": len(bits) == 1,
        "walls": {name: [run["wall"] for run in each] for name, each in runs.items()},
        "cpu": {name: median(run["cpu"] for run in each) for name, each in runs.items()},
        "middle": {name: median(run["wall"] for run in each) for name, each in runs.items()},
    }


def fit(split: Any, engine: Any, cores: int, n_jobs: int = CORES) -> dict[str, Any]:
    """Fit and predict once; the steps, the wall time, and the bits of the predictions.

    With `n_jobs=1`, clustering is sent, which a driver with as many cores would not do.
    """
    metered = Metered(engine, cores)
    began, cpu = time.perf_counter(), cpu_seconds()
    with parallel.engine(metered):
        model = um.LabelTree(n_jobs=n_jobs, random_state=0).fit(split.X, split.Y)
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


def on_both(
    prepared: Callable[[Any], Callable[[], Any]], size: tuple[int, int], engine: Any, divisor: int
) -> dict[str, Any]:
    """Fits of another method on threads and on the cluster: the second, as the first compile."""
    n_samples, n_labels = (n // divisor for n in size)
    for share in (2, 1):
        data = um.data.make_extreme(
            n_samples // share, N_FEATURES // divisor, n_labels // share, label_features=True,
            random_state=0,
        )  # fmt: skip
        work = prepared(data)
        runs = {name: run(work, each) for name, each in (("threads", None), ("cluster", engine))}
    same = runs["threads"].pop("bits") == runs["cluster"].pop("bits")
    return runs | {"n_samples": data.train.X.shape[0], "n_labels": n_labels, "same": same}


def run(work: Callable[[], Any], engine: Any) -> dict[str, Any]:
    """Fit and predict once: the steps, the wall time, and the bits of the predictions."""
    metered = Metered(engine, CORES)
    began, cpu = time.perf_counter(), cpu_seconds()
    with parallel.engine(metered):
        top = work()
    return {
        "wall": time.perf_counter() - began,
        "cpu": cpu_seconds() - cpu,
        "steps": list(map(vars, metered.steps)),
        "bits": (top.labels.tobytes() + top.scores.tobytes()).hex(),
    }


def networks(data: Any) -> Callable[[], Any]:
    """A SiameseXML with one epoch of each module, and predictions for the same samples."""
    X, Y = data.train.X, data.train.Y
    recipe = um.siamese.SiameseRecipe(refine_epochs=1, joint_epochs=1)

    def work() -> Any:
        model = um.SiameseXML(epochs=1, recipe=recipe, n_jobs=CORES)
        return model.fit(X, Y, label_features=data.label_features).predict_topk(X)

    return work


def taggers(data: Any) -> Callable[[], Any]:
    """A calibrated Tagger on made-up words, one for each feature, and predictions for its texts."""
    texts = [" ".join(f"w{word}" for word in row.indices) for row in data.train.X]
    labels = [[f"label {number}" for number in row.indices] for row in data.train.Y]

    def work() -> Any:
        tagger = um.Tagger(um.LabelTree.for_texts(n_jobs=CORES), language=None)
        return tagger.fit(texts, labels).predict_topk(texts)

    return work


def eagles(data: Any) -> Callable[[], Any]:
    """An Eagle on random groups whose labels have counts, and predictions for the same samples."""
    X = data.train.X
    groups = um.data.group_randomly(X.shape[0], GROUP_SIZE, random_state=0)
    known = {"groups": groups, "group_labels": um.data.aggregate(data.train.Y, groups)}

    def work() -> Any:
        model = um.Eagle(um.LabelTree(n_jobs=CORES), n_jobs=CORES)
        return model.fit(X, **known).predict_topk(X)

    return work


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


def fault(split: Any, cluster: Any, engine: Any, moment: float) -> dict[str, Any]:
    """Kill a node at a moment of a fit: whether the predictions are the same, and the time."""
    calm = fit(split, engine, CORES)
    n_tasks = sum(len(step["seconds"]) for step in calm["steps"])
    shaken = Disturbed(engine, max(1, round(moment * n_tasks)), lambda _: cluster.replace_one())
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
    heads = ["part", "tasks", "CPU s of tasks, threads", "cluster", "overhead %", "threads s",
             "cluster s", "MB sent", "MB of results"]  # fmt: skip
    rows = [heads]
    for part, there in cluster.items():
        here = threads[part]
        work = sum(here.seconds), sum(there.seconds)
        rows.append(
            [part, f"{len(there.seconds):,}", *(f"{each:.1f}" for each in work),
             f"{100 * (work[1] / work[0] - 1):+z.0f}", f"{here.wall:.1f}", f"{there.wall:.1f}",
             f"{there.sent / 1e6:,.1f}", f"{there.received / 1e6:,.1f}"]
        )  # fmt: skip
    runs = results["threads"], results["cluster"]
    alone = [run["cpu"] - sum(sum(step["seconds"]) for step in run["steps"]) for run in runs]
    every = [run["cpu"] for run in runs]
    walls = [f"{run['wall']:.1f}" for run in runs]
    for name, cpu, shown in (("driver, and Ray", alone, ["", ""]), ("all", every, walls)):
        change = f"{100 * (cpu[1] / cpu[0] - 1):+z.0f}"
        rows.append([name, "", *(f"{each:.1f}" for each in cpu), change, *shown, "", ""])
    return rows


def amdahl(results: dict[str, Any]) -> str:
    """The driver's share of all work, and what it limits the speed-up to."""
    work = sum(sum(step["seconds"]) for step in results["threads"]["steps"])
    share = 1 - work / results["threads"]["cpu"]
    return (
        f"The driver alone has {100 * share:.1f}% of all CPU seconds (memberships of samples in "
        "nodes, assembling the tree, trust, and steps of one task: the first cut, and the root if "
        "it has few children), so no number of nodes is more than "
        f"{1 / share:,.0f} times as fast as one core. A batch of tasks costs "
        f"{1e3 * results['empty_task']:.1f} ms beyond its work, and common data goes into the "
        f"store at {results['put_rate'] / 1e6:,.0f} MB/s."
    )


def method_in_words(results: dict[str, Any], what: str, on_driver: str) -> str:
    run = results["threads"]
    share = sum(sum(step["seconds"]) for step in run["steps"]) / run["cpu"]
    return (
        f"A fit on {results['n_samples']:,} samples with {results['n_labels']:,} labels{what}, and "
        "predictions for the same samples. Tasks, which a cluster can share, have "
        f"{100 * share:.0f}% of the CPU seconds, and the driver {100 * (1 - share):.0f}%: "
        f"{on_driver}. The same bits: {'yes' if results['same'] else 'NO'}."
    )


METHODS = {  # name: title, what is special, what stays on the driver
    "tagger": (
        "Tagger",
        ", calibrated on a validation split",
        "the vocabulary, the validation split, calibration, and the trees' own work as above",
    ),
    "eagle": (
        "Eagle",
        f" in random groups of {GROUP_SIZE}",
        "the background, assignments, and the solvers' own work as above",
    ),
    "network": (
        "SiameseXML",
        ", one epoch of each module",
        "the epochs of Modules I, III and IV, to which every further epoch adds",
    ),
}


def rising(results: dict[str, Any]) -> tuple[float, float]:
    """CPU seconds that a cluster costs more: a fixed part, and a share of those on threads."""
    pairs = [(each["cpu"]["threads"], each["cpu"]["cluster"]) for each in results["sizes"]]
    here, more = np.array([(one, other - one) for one, other in pairs]).T
    share, fixed = np.polyfit(here, more, 1)
    return float(fixed), float(share)


def in_words(results: dict[str, Any]) -> str:
    fixed, share = rising(results)
    return (
        "A straight line through these "
        f"{len(results['sizes'])} sizes gives an overhead of "
        f"{fixed:.2f} CPU seconds for each fit and {100 * share:.1f}% of the work. A fit of an "
        f"hour would have {100 * (share + fixed / CORES / HOUR):.1f}%, if it moves as much data "
        "for its work as these. Starting both nodes and a worker on each took "
        f"{results['start']:.1f} s, and the first small fit, in which workers load the kernels, "
        f"{results['warm_up']:.1f} s; a longer fit needs both only once."
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
             f"{median(pairs):+z.0f}", ", ".join(f"{pair:+z.0f}" for pair in sorted(pairs)),
             *(f"{seconds:.1f}" for seconds in cpu), f"{100 * (cpu[1] / cpu[0] - 1):+z.0f}",
             "yes" if each["same_bits"] else "NO"]
        )  # fmt: skip
    return rows


def method_parts(results: dict[str, Any], name: str) -> list[str]:
    title, *words = METHODS[name]
    own = results[name]
    return [f"## {title}", method_in_words(own, *words), table_lines(part_rows(own))]


def markdown(results: dict[str, Any]) -> str:
    fault_rows = [["killed after", "undisturbed s", "disturbed s", "same bits"]] + [
        [f"{each['moment']:.0%} of tasks", f"{each['calm']:.1f}", f"{each['shaken']:.1f}",
         "yes" if each["same_bits"] else "NO"]
        for each in results["faults"]
    ]  # fmt: skip
    parts = [
        "# Fit on a cluster of two nodes, compared with threads",
        " ".join(filter(None, [made_by(results), results["remark"]])),
        "The cluster has two nodes of one core on the same machine, and the threads have the same "
        "two cores. A LabelTree is fitted on both in turn, "
        f"{results['repeats']} times on each; times are medians, and the overhead is that of the "
        "median pair of fits. CPU seconds are of all processes, those of Ray itself included; "
        "unlike time, they do not depend on what else the machine does. The driver is the program "
        "that calls `fit`.",
        table_lines(size_rows(results)),
        in_words(results),
        "## By part",
        f"One more fit on each, of the last of these sizes, {results['n_samples']:,} samples with "
        f"{results['n_labels']:,} labels. Here clustering goes to the cluster as well; above, it "
        "stays on the driver, which has as many cores.",
        table_lines(part_rows(results)),
        amdahl(results),
        *chain.from_iterable(method_parts(results, name) for name in METHODS if name in results),
        "## A node killed",
        table_lines(fault_rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
