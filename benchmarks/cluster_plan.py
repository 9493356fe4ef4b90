"""How far more nodes help: measured task times, replayed by the scheduler's rules.

    python benchmarks/cluster_plan.py [--quick] [--cores 16] [--gigabit 10] [--memory 256]

It reads the results of `benchmarks/cluster.py` and computes fits of up to 100 million labels and a
billion samples on 8, 64 and 512 nodes. Nothing is run. What is assumed:

- A chunk takes as long per sample as measured, in the root and below it, with the measured spread.
  The layers, nodes and chunks of each size are those of LabelTree's defaults.
- A level of clustering takes as long per label as measured, and a search per sample and layer.
- The driver's own work grows with samples and labels. Nodes pass common data on to each other.
- X and labels that exceed a quarter of a node's store stay in blocks: each node receives the rows
  of its tasks, and each task of the root receives all rows.
- With a scratch folder, nodes read the same rows and trees from files instead, once for each step.
"""

import argparse
import json
import shlex
import sys
from typing import Any, NamedTuple

import numpy as np
from harness.environment import results_folder
from harness.report import made_by, table_lines, write_results
from harness.scheduling import Cluster, Seconds, replay

from umpteen.trees.hierarchy import layer_sizes

BRANCHING, MAX_LEAF, MAX_CHUNK = 512, 96, 128  # LabelTree's defaults
BEAM, BLOCK_CELLS = 8, 4_000_000
AT_ONCE = 16  # children that are trained at once: the least part of a chunk
MANY_CLUSTERS = 32  # from so many on, each is a task with all its cuts
STORE, WHOLE, ON_THEIR_WAY, BATCHES = 0.3, 0.25, 5, 64  # as in Ray and in umpteen.cluster
FOR_TASKS = 0.7  # of a node's memory: the rest is the store
SIZES = {  # labels and samples
    "1 M labels, 10 M samples": (10**6, 10**7),
    "4 M labels, 40 M samples": (4 * 10**6, 4 * 10**7),
    "10 M labels, 100 M samples": (10**7, 10**8),
    "100 M labels, 1 B samples": (10**8, 10**9),
}
NODES = (8, 64, 512)
UPPER_SAMPLES = 10**8
MOST_SHORT = 2**31 - 1  # values and rows of X together, whose indices have 32 bits

Row = list[str]


class Costs(NamedTuple):
    """What was measured, in seconds or bytes per unit."""

    root_row: float
    leaf_row: float
    rows_per_sample: float  # of all nodes of a layer together, hard negatives included
    spread: Seconds
    clustering: float
    search: float
    driver: float
    values_per_sample: float
    labels_per_sample: float
    tree_per_label: float
    weights_per_label: float
    result_per_label: float


class Step(NamedTuple):
    """Tasks that run side by side, what they share, what each returns, and rows for them all."""

    part: str
    seconds: Seconds
    shared: float
    result: float
    rows: float


def main() -> None:
    options = parse()
    measured = json.loads((results_folder(options.quick) / "cluster.json").read_text())
    costs = derive(measured)
    plans = [
        plan(name, labels, samples, costs, cluster(nodes, options, measured), options.memory * 1e9)
        for name, (labels, samples) in SIZES.items()
        for nodes in NODES
    ]
    results = {
        "command": shlex.join(["python", "benchmarks/cluster_plan.py", *sys.argv[1:]]),
        "machine": measured["machine"],
        "versions": measured["versions"],
        "cores": options.cores,
        "gigabit": options.gigabit,
        "memory": options.memory,
        "measured_on": [measured["n_samples"], measured["n_labels"]],
        "costs": {name: value for name, value in costs._asdict().items() if name != "spread"},
        "plans": plans,
    }
    text = markdown(results)
    write_results(results, results_folder(options.quick) / "cluster_plan.json", text)
    print(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="from results of cluster.py --quick")
    parser.add_argument("--cores", type=int, default=16, help="cores of a node")
    parser.add_argument("--gigabit", type=float, default=10, help="of a node's network, per second")
    parser.add_argument("--memory", type=float, default=256, help="of a node, in GB")
    return parser.parse_args()


def cluster(nodes: int, options: argparse.Namespace, measured: dict[str, Any]) -> Cluster:
    bandwidth = options.gigabit * 1e9 / 8
    return Cluster(
        nodes, options.cores, bandwidth, measured["put_rate"], measured["empty_task"]
    )  # fmt: skip


def derive(measured: dict[str, Any]) -> Costs:
    """Costs per unit from the steps of the fit on threads, and bytes from that on the cluster."""
    n_samples, n_labels = measured["n_samples"], measured["n_labels"]
    layers = layer_sizes(n_labels, BRANCHING, MAX_LEAF)
    training, clustering, searching = (
        [step for step in measured["threads"]["steps"] if step["part"] == part]
        for part in ("training chunks", "clustering labels", "searching trees")
    )
    root, leaves = training[0], training[-1]
    per_row = np.array(leaves["seconds"]) / np.maximum(1, leaves["sizes"])
    # The root was trained in parts of sixteen children; a whole chunk has eight such.
    of_sixteen = sum(root["seconds"]) / n_samples / -(-layers[1] // AT_ONCE)
    root_row = of_sixteen * (MAX_CHUNK // AT_ONCE)
    # In a quick run, labels are so few that the driver clusters them: it is a part of its work.
    level = max(
        (sum(step["seconds"]) for step in clustering if len(step["seconds"]) < MANY_CLUSTERS),
        default=0.0,
    )
    # Not among the measured steps: the first cut, and the next two if the driver made them.
    has_two = any(len(step["seconds"]) == 2 for step in clustering)
    alone = level * (1 if has_two else 1.5)
    work = sum(sum(step["seconds"]) for step in measured["threads"]["steps"])
    results = sum(
        step["received"]
        for step in measured["cluster"]["steps"]
        if step["part"] == "training chunks"
    )
    largest = measured["cluster"]
    return Costs(
        root_row=root_row,
        leaf_row=sum(leaves["seconds"]) / max(1, sum(leaves["sizes"])),
        rows_per_sample=sum(leaves["sizes"]) / len(leaves["sizes"]) * layers[-1] / n_samples,
        spread=per_row / per_row.mean(),
        clustering=level / n_labels,
        # One for each layer: of hard negatives below the root, and of trust.
        search=sum(sum(step["seconds"]) for step in searching) / n_samples / len(layers),
        driver=max(0, measured["threads"]["cpu"] - work - alone) / (n_samples + n_labels),
        values_per_sample=measured["n_values"] / n_samples,
        labels_per_sample=measured["n_label_values"] / n_samples,
        tree_per_label=largest["of_tree"] / n_labels,
        weights_per_label=largest["n_weights"] / n_labels,
        result_per_label=results / n_labels,
    )


def steps_of(
    n_labels: int, n_samples: int, costs: Costs, n_cores: int, is_whole: bool
) -> list[Step]:
    """All steps of one fit: levels of clustering, and training and a search for each layer."""
    layers = layer_sizes(n_labels, BRANCHING, MAX_LEAF)
    of_X, of_labels = sizes_of(n_samples, costs)
    of_rows = 8 * costs.values_per_sample * n_samples * costs.labels_per_sample
    steps = clustering_steps(n_labels, layers[-1], costs, of_rows)
    random = np.random.default_rng(0)
    for depth, n_nodes in enumerate(layers):
        below = layers[depth + 1] if depth + 1 < len(layers) else n_labels
        per_node = -(-below // (n_nodes * MAX_CHUNK))
        n_chunks = n_nodes * per_node
        n_parts = min(max(1, n_cores // n_chunks), MAX_CHUNK // AT_ONCE)
        rows = n_samples if depth == 0 else costs.rows_per_sample * n_samples / n_nodes
        per_row = costs.root_row if depth == 0 else costs.leaf_row
        spread = random.choice(costs.spread, n_chunks) if depth else np.ones(n_chunks)
        seconds = np.repeat(rows * per_row * spread / n_parts, n_parts)
        n_tasks = len(seconds)
        result = costs.result_per_label * below / n_tasks
        # A batch has all chunks of a node, so that these rows are sent once; parts of the root
        # are batches of their own.
        n_sent = n_tasks if depth == 0 else n_nodes
        of_data = of_X + of_labels
        if is_whole:
            shared = of_labels + (of_X if depth == 0 else 0)  # X is there from the step before
            steps.append(Step("training chunks", seconds, shared, result, 0))
        else:
            moved = n_sent * rows / n_samples * of_data
            steps.append(Step("training chunks", seconds, 0, result, moved))
        widest = max(BRANCHING, BEAM * min(BRANCHING, below // n_nodes + 1))
        n_blocks = max(n_cores, -(-n_samples * widest // BLOCK_CELLS))
        blocks = np.full(min(n_blocks, n_samples), costs.search * n_samples / n_blocks)
        of_tree, answers = costs.tree_per_label * below, 80 * n_samples / n_blocks
        moved = 0 if is_whole else of_X
        steps.append(Step("searching trees", blocks, of_tree, answers, moved))
    return steps


def clustering_steps(n_labels: int, n_leaves: int, costs: Costs, of_rows: float) -> list[Step]:
    """Levels of cuts, then all levels that are left in one step."""
    n_levels = int(np.ceil(np.log2(max(2, n_leaves))))
    of_level, part = costs.clustering * n_labels, "clustering labels"
    steps = []
    for level in range(n_levels):
        n_clusters = 2**level
        cuts = np.full(n_clusters, of_level / n_clusters)
        moved = of_rows if level else 0  # the first cut is made on the driver
        if n_clusters >= MANY_CLUSTERS:
            rest = (n_levels - level) * cuts
            steps.append(Step(part, rest, 0, 4 * n_labels / n_clusters, moved))
            break
        steps.append(Step(part, cuts, 0, 4 * n_labels / n_clusters, moved))
    return steps


def sizes_of(n_samples: int, costs: Costs) -> tuple[float, float]:
    """Bytes of X and of the labels of a layer."""
    of_X = n_samples * (8 * costs.values_per_sample + 4)
    return of_X, n_samples * (8 * costs.labels_per_sample + 5)


def long_size_of(n_samples: int, costs: Costs) -> float:
    """Bytes of X as a whole: its indices have 64 bits if it has many values, those of blocks 32."""
    is_long = (costs.values_per_sample + 1) * n_samples > MOST_SHORT
    of_value, of_sample = (12, 8) if is_long else (8, 4)
    return n_samples * (of_value * costs.values_per_sample + of_sample)


def plan(
    name: str, n_labels: int, n_samples: int, costs: Costs, cluster: Cluster, memory: float
) -> dict[str, Any]:
    """The wall time of a fit by what it is spent on, and what limits it."""
    of_X, of_labels = sizes_of(n_samples, costs)
    of_data, of_tree = of_X + of_labels, costs.tree_per_label * n_labels
    of_whole = long_size_of(n_samples, costs)
    root_task = 2 * (of_whole + of_labels)
    is_whole = of_data <= WHOLE * STORE * memory
    steps = steps_of(n_labels, n_samples, costs, cluster.n_cores, is_whole)
    work = sum(float(step.seconds.sum()) for step in steps)
    root = next(step for step in steps if step.part == "training chunks")
    fit_memory = max(1, int(FOR_TASKS * memory // root_task))  # tasks of the root on a node
    cores = cluster.cores_per_node if is_whole else min(cluster.cores_per_node, fit_memory)
    tasks = sum(
        replay(
            step.seconds,
            cluster._replace(cores_per_node=cores) if step is root else cluster,
            step.result,
        )
        for step in steps
    )
    longest = sum(float(step.seconds.max()) for step in steps)
    network = sum(
        cluster.broadcast(step.shared) + cluster.exchange(step.rows, len(step.seconds))
        for step in steps
    )
    if not is_whole:
        network += of_data / cluster.put_rate + of_data / cluster.bandwidth  # to their homes
    in_files = (
        steps if not is_whole else steps_of(n_labels, n_samples, costs, cluster.n_cores, False)
    )
    read = sum(step.rows + cluster.n_nodes * step.shared for step in in_files)
    driver = costs.driver * (n_samples + n_labels)
    blocks = of_data / cluster.n_nodes
    held = blocks * (1 + ON_THEIR_WAY * costs.rows_per_sample / BATCHES)
    return {
        "size": name,
        "nodes": cluster.n_nodes,
        "work": work,
        "tasks": tasks,
        "longest": longest,
        "network": network,
        "driver": driver,
        "wall": tasks + network + driver,
        "is_whole": is_whole,
        "node_bytes": max(of_data, of_X + of_tree) if is_whole else max(held, blocks + of_tree),
        "tree_bytes": of_tree,
        "root_task_bytes": root_task,
        "weights": costs.weights_per_label * n_labels,
        "driver_bytes": of_data + (1 + costs.labels_per_sample) * of_whole + of_tree,
        "cores": cluster.n_cores,
        "scratch": {
            # Y, the labels of a layer and what it learns from, the tree, and its results.
            "driver_bytes": 2 * of_labels + costs.rows_per_sample * 4 * n_samples + 2 * of_tree,
            "task_bytes": root_task,
            "read": read,
            "hours": read / cluster.n_nodes / cluster.bandwidth / 3600,
        },
    }


def limit(each: dict[str, Any], memory: float) -> str:
    """Say in words what keeps the fit from being faster, or possible."""
    parts = {
        "single long tasks": each["longest"],
        "work": each["work"] / each["cores"],
        "network": each["network"],
        "driver": each["driver"],
    }
    reasons = [max(parts, key=lambda name: parts[name])]
    if each["tree_bytes"] > STORE * memory * 1e9:
        reasons.append("the tree exceeds the store of a node")
    elif each["node_bytes"] > STORE * memory * 1e9:
        reasons.append("X and tree exceed the store of a node")
    if each["root_task_bytes"] > FOR_TASKS * memory * 1e9:
        reasons.append("a task of the root exceeds the memory of a node")
    if each["driver_bytes"] > memory * 1e9:
        reasons.append("the driver needs more memory than a node has")
    return "; ".join(reasons)


def missing(results: dict[str, Any]) -> str:
    """Say what the largest fit would need that there is not."""
    largest = results["plans"][-1]
    root, held, driver = (
        largest[name] / 1e9 for name in ("root_task_bytes", "node_bytes", "driver_bytes")
    )
    few = root * UPPER_SAMPLES / SIZES[largest["size"]][1]
    return (
        f"The last size is not possible on nodes of {results['memory']:g} GB. A task of the root "
        f"learns from all samples. Its memory, {root:,.0f} GB, does not depend on how many of the "
        "root's children it trains, so more parts do not help. Learning from fewer samples helps: "
        f"with `TreeRecipe(upper_samples={UPPER_SAMPLES:_})`, it needs {few:,.0f} GB, and the root "
        "takes a tenth of its time ([what that costs](upper_samples.md)). Two problems are left. "
        f"Every node holds the tree when it searches, {held:,.0f} GB, so its store must be as "
        f"large (a node of {held / STORE:,.0f} GB), or trees would have to be searched in parts. "
        f"And the machine that runs `fit` would need {driver:,.0f} GB for X, its copy in the "
        "object store, the rows of labels that are clustered (at the most) and the tree. "
        f"{possible(results)} For more, X has to stay in [files](#with-a-scratch-folder)."
    )


def possible(results: dict[str, Any]) -> str:
    """Say which sizes are possible on these nodes."""
    sizes = [each["size"] for each in results["plans"] if ";" not in limit(each, results["memory"])]
    return f"These sizes fit: {'; '.join(dict.fromkeys(sizes)) or 'none'}."


def files_rows(results: dict[str, Any]) -> list[Row]:
    heads = ["size", "nodes", "GB of the driver", "GB of a root task", "TB read from files",
             "h to read them", "not possible"]  # fmt: skip
    rows, most = [heads], results["memory"] * 1e9
    for each in results["plans"]:
        own = each["scratch"]
        too_large = [
            name
            for name, size in (("driver", own["driver_bytes"]), ("root", own["task_bytes"]))
            if size > most
        ]
        rows.append(
            [each["size"], str(each["nodes"]), f"{own['driver_bytes'] / 1e9:,.1f}",
             f"{own['task_bytes'] / 1e9:,.1f}", f"{own['read'] / 1e12:,.2f}",
             f"{own['hours']:,.2f}", ", ".join(too_large) or "-"]
        )  # fmt: skip
    return rows


def files_in_words(results: dict[str, Any]) -> str:
    return (
        "X, rows of labels, labels of a layer and trees are in files of a shared folder, so that "
        "neither the memory of the driver nor the store of a node has to hold them. The driver "
        "holds Y, the labels of a layer, which samples each node learns from, and the tree twice: "
        "its chunks, and the tree that they are joined to. A task of the root takes twice the size "
        f"of the rows that it learns from; `TreeRecipe(upper_samples={UPPER_SAMPLES:_})` leaves it "
        "a tenth of the rows of the last size. What is read from files is the sum over all nodes "
        "if none of them keeps a page in memory from step to step. The time is that of their "
        f"networks, {results['gigabit']:g} Gbit/s each; a slower file server takes longer. It "
        "replaces the time of the network in the table above; tasks and the driver's work stay the "
        "same."
    )


def rows_of(results: dict[str, Any]) -> list[Row]:
    heads = ["size", "nodes", "CPU h", "wall h", "efficiency %", "tasks h", "longest tasks h",
             "network h", "driver h", "GB per node", "GB of a root task", "GB of the driver",
             "limited by"]  # fmt: skip
    rows = [heads]
    for each in results["plans"]:
        hours = {
            name: each[name] / 3600
            for name in ("work", "wall", "tasks", "longest", "network", "driver")
        }
        efficiency = 100 * each["work"] / each["cores"] / each["wall"]
        rows.append(
            [each["size"], str(each["nodes"]), f"{hours['work']:,.1f}", f"{hours['wall']:,.2f}",
             f"{efficiency:.0f}", f"{hours['tasks']:,.2f}", f"{hours['longest']:,.2f}",
             f"{hours['network']:,.2f}", f"{hours['driver']:,.2f}",
             f"{each['node_bytes'] / 1e9:,.1f}", f"{each['root_task_bytes'] / 1e9:,.1f}",
             f"{each['driver_bytes'] / 1e9:,.1f}", limit(each, results["memory"])]
        )  # fmt: skip
    return rows


def clustering_in_words(costs: dict[str, float]) -> str:
    if not costs["clustering"]:
        return "clustering was not measured apart, and counts as work of the driver"
    return f"a level of clustering {1e6 * costs['clustering']:.1f} µs per label"


def markdown(results: dict[str, Any]) -> str:
    costs = results["costs"]
    samples, labels = results["measured_on"]
    parts = [
        "# A plan for larger clusters",
        made_by(results),
        "Computed, not run: the times of tasks that `benchmarks/cluster.py` measured on "
        f"{samples:,} samples with {labels:,} labels are replayed by the rules of the scheduler "
        f"for nodes of {results['cores']} cores, {results['memory']:g} GB and "
        f"{results['gigabit']:g} Gbit/s. The object store of a node is 30% of its memory. The "
        "driver is the program that calls `fit`.",
        table_lines(rows_of(results)),
        "Longest tasks are the sum over all steps of each step's longest task, which no number of "
        "nodes makes shorter: the first cuts of clustering, and the parts of the root's chunks, "
        "each of which learns from all samples. GB per node are of its store: X in blocks, or "
        "whole if it is small, and the tree that is searched.",
        missing(results),
        f"Costs: a chunk takes {1e6 * costs['root_row']:.1f} µs per sample at the root and "
        f"{1e6 * costs['leaf_row']:.1f} µs below it, where each layer has "
        f"{costs['rows_per_sample']:.1f} rows per sample; {clustering_in_words(costs)}; a search "
        f"{1e6 * costs['search']:.1f} µs per sample; the driver {1e6 * costs['driver']:.1f} µs "
        "per sample or label; a label has "
        f"{costs['weights_per_label']:,.0f} weights and {costs['tree_per_label']:,.0f} bytes.",
        "## With a scratch folder",
        table_lines(files_rows(results)),
        files_in_words(results),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
