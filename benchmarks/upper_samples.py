"""What it costs if nodes above the leaves learn from a part of the samples.

    python benchmarks/upper_samples.py [--sets wordnet-ancestors debian-deps eurlex57k]

The root of a LabelTree learns from all samples. With `recipe__upper_samples` it learns from some,
drawn at random, which a fit of a billion samples needs. Models train on four fifths of the training
samples and are compared on the rest, with one thread; the test set plays no part.
"""

import argparse
import json
import time
from typing import Any

import numpy as np
from harness.environment import PEERS_HOME, machine, results_folder, versions
from harness.matrices import MAX_FEATURES, prepare
from harness.report import made_by, table_lines, write_results

import umpteen as um

SHARES = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
VALIDATION = 0.2
METRICS = ("precision@1", "precision@3", "precision@5", "PSP@1", "PSP@5")

Row = list[str]


def main() -> None:
    options = parse()
    results: dict[str, Any] = {
        "command": "python benchmarks/upper_samples.py",
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }
    place = results_folder(options.quick) / "upper_samples.json"
    if options.keep and place.exists():
        rows = json.loads(place.read_text())["rows"]
        results["rows"] = [row for row in rows if row["set"] not in options.sets]
    um.LabelTree().fit(np.eye(300, dtype=np.float32), np.arange(300))  # compiles
    for name in options.sets:
        matrices = prepare(name, PEERS_HOME / "matrices", seed=0, quick=options.quick)
        X, Y = matrices["X_train"], matrices["Y_train"]
        is_kept = np.random.default_rng(0).random(X.shape[0]) >= VALIDATION
        for share in SHARES:
            most = None if share == 1 else round(share * is_kept.sum())
            results["rows"].append({"set": name, "share": share} | measured(X, Y, is_kept, most))
            write_results(results, place, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(MAX_FEATURES), choices=MAX_FEATURES)
    parser.add_argument("--keep", action="store_true", help="keep results of other sets")
    parser.add_argument("--quick", action="store_true", help="a tenth of each set; not kept")
    return parser.parse_args()


def measured(X: Any, Y: Any, is_kept: Any, most: int | None) -> dict[str, float]:
    recipe = um.linear.TreeRecipe(upper_samples=most)
    tree = um.LabelTree(recipe=recipe, n_jobs=1, random_state=0)
    began = time.process_time()
    tree.fit(X[is_kept], Y[is_kept])
    cpu = time.process_time() - began
    report = um.evaluate(tree.predict_topk(X[~is_kept], k=5), Y[~is_kept], Y[is_kept])
    return {"cpu": cpu} | {name: float(report.metrics[name]) for name in METRICS}


def markdown(results: dict[str, Any]) -> str:
    rows: list[Row] = [["set", "samples of the root", *METRICS, "train CPU s"]]
    for each in results["rows"]:
        figures = [f"{100 * each[name]:.2f}" for name in METRICS]
        rows.append([each["set"], f"{each['share']:.0%}", *figures, f"{each['cpu']:.1f}"])
    parts = [
        "# Nodes above the leaves that learn from a part of the samples",
        made_by(results),
        "LabelTree with `recipe__upper_samples`, trained on four fifths of the training samples "
        "and compared on the rest; one seed. The leaves learn from all of their samples.",
        table_lines(rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
