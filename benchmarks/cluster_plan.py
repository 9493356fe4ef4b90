"""How far more nodes help: measured task times, replayed by the scheduler's rules.

    python benchmarks/cluster_plan.py [--quick] [--cores 16] [--gigabit 10] [--memory 256]

It reads the results of `benchmarks/cluster.py` and computes fits of up to 100 million labels and a
billion samples on 8, 64 and 512 nodes. Nothing is run. What is assumed:

- A chunk takes as long per sample as measured, in the root and below it, with the measured spread.
  The layers, nodes and chunks of each size are those of LabelTree's defaults.
- A level of clustering takes as long per label as measured, and a search per sample and layer.
- The driver's own work grows with samples and labels. Nodes pass common data on to each other.
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
SIZES = {  # labels and samples
    "1 M labels, 10 M samples": (10**6, 10**7),
    "10 M labels, 100 M samples": (10**7, 10**8),
    "100 M labels, 1 B samples": (10**8, 10**9),
}
NODES = (8, 64, 512)
MOST_WEIGHTS = 2**31 - 1  # of one tree, whose offsets have 32 bits

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
    """Tasks that run side by side, what they share, and what each returns."""

    part: str
    seconds: Seconds
    shared: float
    result: float


def main() -> None:
    options = parse()
    measured = json.loads((results_folder(options.quick) / "cluster.json").read_text())
    costs = derive(measured)
    plans = [
        plan(name, labels, samples, costs, cluster(nodes, options, measured))
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
    root_row = sum(root["seconds"]) / max(1, sum(root["sizes"]))
    level = max(sum(step["seconds"]) for step in clustering)
    # Steps of one task are not among the measured ones: the first cut, and a root with one chunk.
    alone = level + root_row * n_samples * (len(training) < len(layers))
    waiting = sum(step["wall"] for step in measured["threads"]["steps"])
    results = sum(
        step["received"]
        for step in measured["cluster"]["steps"]
        if step["part"] == "training chunks"
    )
    largest = measured["memory"][-1]
    return Costs(
        root_row=root_row,
        leaf_row=sum(leaves["seconds"]) / max(1, sum(leaves["sizes"])),
        rows_per_sample=sum(leaves["sizes"]) / len(leaves["sizes"]) * layers[-1] / n_samples,
        spread=per_row / per_row.mean(),
        clustering=level / n_labels,
        # One for each layer: of hard negatives below the root, and of trust.
        search=sum(sum(step["seconds"]) for step in searching) / n_samples / len(layers),
        driver=max(0, measured["threads"]["wall"] - waiting - alone) / (n_samples + n_labels),
        values_per_sample=measured["n_values"] / n_samples,
        labels_per_sample=measured["n_label_values"] / n_samples,
        tree_per_label=largest["of_tree"] / n_labels,
        weights_per_label=largest["n_weights"] / n_labels,
        result_per_label=results / n_labels,
    )


def steps_of(n_labels: int, n_samples: int, costs: Costs, n_cores: int) -> list[Step]:
    """All steps of one fit: levels of clustering, and training and a search for each layer."""
    layers = layer_sizes(n_labels, BRANCHING, MAX_LEAF)
    of_X = n_samples * (8 * costs.values_per_sample + 4)
    of_labels = n_samples * (8 * costs.labels_per_sample + 4)
    of_rows = 8 * costs.values_per_sample * n_samples * costs.labels_per_sample
    steps = []
    for level in range(int(np.ceil(np.log2(max(2, layers[-1]))))):
        cuts = np.full(2**level, costs.clustering * n_labels / 2**level)
        steps.append(
            Step("clustering labels", cuts, of_rows if level == 1 else 0, 4 * n_labels / 2**level)
        )
    random = np.random.default_rng(0)
    for depth, n_nodes in enumerate(layers):
        below = layers[depth + 1] if depth + 1 < len(layers) else n_labels
        n_chunks = n_nodes * -(-below // (n_nodes * MAX_CHUNK))
        rows = n_samples if depth == 0 else costs.rows_per_sample * n_samples / n_nodes
        per_row = costs.root_row if depth == 0 else costs.leaf_row
        spread = random.choice(costs.spread, n_chunks) if depth else np.ones(n_chunks)
        seconds = rows * per_row * spread
        shared = of_labels + (of_X if depth == 0 else 0)  # X is there from the step before
        steps.append(
            Step("training chunks", seconds, shared, costs.result_per_label * below / n_chunks)
        )
        widest = max(BRANCHING, BEAM * min(BRANCHING, below // n_nodes + 1))
        n_blocks = max(n_cores, -(-n_samples * widest // BLOCK_CELLS))
        blocks = np.full(min(n_blocks, n_samples), costs.search * n_samples / n_blocks)
        of_tree = costs.tree_per_label * below
        steps.append(Step("searching trees", blocks, of_tree, 80 * n_samples / n_blocks))
    return steps


def plan(
    name: str, n_labels: int, n_samples: int, costs: Costs, cluster: Cluster
) -> dict[str, Any]:
    """The wall time of a fit by what it is spent on, and what limits it."""
    steps = steps_of(n_labels, n_samples, costs, cluster.n_cores)
    work = sum(float(step.seconds.sum()) for step in steps)
    tasks = sum(replay(step.seconds, cluster, step.result) for step in steps)
    longest = sum(float(step.seconds.max()) for step in steps)
    network = sum(cluster.broadcast(step.shared) for step in steps)
    driver = costs.driver * (n_samples + n_labels)
    of_X = n_samples * (8 * costs.values_per_sample + 4)
    of_labels = n_samples * (8 * costs.labels_per_sample + 4)
    return {
        "size": name,
        "nodes": cluster.n_nodes,
        "work": work,
        "tasks": tasks,
        "longest": longest,
        "network": network,
        "driver": driver,
        "wall": tasks + network + driver,
        "node_bytes": of_X + max(of_labels, costs.tree_per_label * n_labels),
        "weights": costs.weights_per_label * n_labels,
        "cores": cluster.n_cores,
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
    if each["node_bytes"] > 0.3 * memory * 1e9:
        reasons.append("X exceeds the store of a node")
    if each["weights"] > MOST_WEIGHTS:
        reasons.append("more weights than a tree can have")
    return "; ".join(reasons)


def rows_of(results: dict[str, Any]) -> list[Row]:
    heads = ["size", "nodes", "CPU h", "wall h", "efficiency %", "tasks h", "longest tasks h",
             "network h", "driver h", "GB per node", "limited by"]  # fmt: skip
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
             f"{each['node_bytes'] / 1e9:,.1f}", limit(each, results["memory"])]
        )  # fmt: skip
    return rows


def markdown(results: dict[str, Any]) -> str:
    costs = results["costs"]
    samples, labels = results["measured_on"]
    parts = [
        "# A plan for larger clusters",
        made_by(results),
        "Computed, not run: task times that `benchmarks/cluster.py` measured on "
        f"{samples:,} samples with {labels:,} labels, replayed by the rules of the scheduler for "
        f"nodes of {results['cores']} cores, {results['memory']:g} GB and {results['gigabit']:g} "
        "Gbit/s. The object store of a node is 30% of its memory.",
        table_lines(rows_of(results)),
        "Longest tasks are the sum over all steps of each step's longest task, which no number of "
        "nodes makes shorter: the first cuts of clustering, and the chunks of the root, each of "
        "which learns from all samples.",
        f"Costs: a chunk takes {1e6 * costs['root_row']:.1f} µs per sample at the root and "
        f"{1e6 * costs['leaf_row']:.1f} µs below it, where each layer has "
        f"{costs['rows_per_sample']:.1f} rows per sample; a level of clustering "
        f"{1e6 * costs['clustering']:.1f} µs per label; a search {1e6 * costs['search']:.1f} µs "
        f"per sample; the driver {1e6 * costs['driver']:.1f} µs per sample or label; a label has "
        f"{costs['weights_per_label']:,.0f} weights and {costs['tree_per_label']:,.0f} bytes.",
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
