"""The tagger on EURLEX57K, compared with results of networks that others have published.

    python benchmarks/published.py

Reads `eurlex57k` under `$UMPTEEN_DATA`, with the split of its authors. All labels of the test texts
count, also those that no training text has. Thresholds for F1 come from the tagger's own validation
split. The published figures are not measured here: each names its source.
"""

import time
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from rich.console import Console
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen import metrics
from umpteen.data import Dataset

SET = "eurlex57k"
QUALITY = ("P@1", "P@5", "R@5", "RP@5", "nDCG@5", "micro F1")
CHALKIDIS = "[1]"
LIBRARY = "[2]"
PUBLISHED: list[dict[str, Any]] = [
    {"system": "BERT-base", "source": CHALKIDIS,
     "P@5": 68.7, "RP@5": 79.6, "nDCG@5": 82.3, "micro F1": 73.2},
    {"system": "BERT-base-LWAN", "source": LIBRARY, "training": "9 h",
     "P@1": 89.983, "P@5": 67.853, "RP@5": 78.474, "nDCG@5": 80.983, "micro F1": 72.785},
    {"system": "BiGRU-LWAN", "source": LIBRARY, "training": "3 h 20 min",
     "P@1": 90.73, "P@5": 67.08, "RP@5": 77.75, "nDCG@5": 80.60, "micro F1": 71.32},
    {"system": "CNN-LWAN", "source": LIBRARY, "training": "2 h",
     "P@1": 89.82, "P@5": 67.31, "RP@5": 78.03, "nDCG@5": 80.54, "micro F1": 71.69},
    {"system": "Kim-CNN", "source": LIBRARY, "training": "30 min",
     "P@1": 90.78, "P@5": 66.87, "RP@5": 77.53, "nDCG@5": 80.35, "micro F1": 69.91},
]  # fmt: skip
LOG = Console(stderr=True)
Row = dict[str, Any]


def main() -> None:
    data = um.data.load(SET)
    descriptions = dict(zip(data.label_names, data.label_texts, strict=True))
    um.Tagger().fit(data.train.texts[:600], data.train.labels[:600]).predict("warm up")
    rows = [
        measured("`Tagger()`", data, None),
        measured("`Tagger()` with label texts", data, descriptions),
    ]
    results = {
        "command": "python benchmarks/published.py",
        "machine": machine(), "versions": versions(), "unseen": unseen(data), "rows": rows,
        "published": PUBLISHED,
    }  # fmt: skip
    write_results(results, results_folder(False) / "published.json", markdown(results))
    Console(width=160).print(markdown(results), markup=False, highlight=False)


def measured(system: str, data: Dataset, label_texts: dict[str, str] | None) -> Row:
    LOG.print(system)
    tagger, test = um.Tagger(), data.test
    cpu, wall = time.process_time(), time.perf_counter()
    tagger.fit(data.train.texts, data.train.labels, label_texts)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    start = time.process_time()
    top = by_number(tagger, data, tagger.predict_topk(test.texts, 20))
    each = (time.process_time() - start) / len(test.texts)
    tagger.tune_thresholds("micro_f1")
    tags = tagger.predict(test.texts, threshold="tuned")
    found = {
        "P@1": metrics.precision_at_k(test.Y, top, 1),
        "P@5": metrics.precision_at_k(test.Y, top, 5),
        "R@5": metrics.recall_at_k(test.Y, top, 5),
        "RP@5": r_precision(test.Y, top, 5),
        "nDCG@5": metrics.ndcg_at_k(test.Y, top, 5),
        "micro F1": metrics.micro_f1(test.Y, indicator(data, tags)),
    }
    quality = {name: 100 * float(value) for name, value in found.items()}
    return {"system": system, **quality, "cpu": cpu, "wall": wall, "us": 1e6 * each}


def by_number(tagger: um.Tagger, data: Dataset, top: um.TopK) -> um.TopK:
    """Return answers with the data set's own numbers of labels."""
    number = {name: i for i, name in enumerate(data.label_names)}
    ids = np.array([number[name] for name in tagger.labels] + [-1], np.int32)
    return um.TopK(ids[top.labels], top.scores)


def indicator(data: Dataset, tags: list[list[tuple[str, float]]]) -> csr_matrix:
    number = {name: i for i, name in enumerate(data.label_names)}
    rows = np.repeat(np.arange(len(tags)), [len(some) for some in tags])
    columns = [number[name] for some in tags for name, _ in some]
    ones = np.ones(len(columns), np.float32)
    return csr_matrix((ones, (rows, columns)), shape=(len(tags), len(data.label_names)))


def r_precision(Y: csr_matrix, top: um.TopK, k: int) -> float:
    """Return the mean of hits over min(k, number of relevant labels), which [1] calls RP@k."""
    relevant = [set(row) for row in np.split(Y.indices, Y.indptr[1:-1])]
    shares = [
        len(own & {*best.tolist()}) / min(k, len(own))
        for own, best in zip(relevant, top.labels[:, :k], strict=True)
        if own
    ]
    return float(np.mean(shares))


def unseen(data: Dataset) -> Row:
    """Count the labels of test texts that no training text has."""
    new = np.flatnonzero(np.diff(data.train.Y.tocsc().indptr) == 0)
    occurrences = data.test.Y[:, new]
    return {
        "labels": int(np.count_nonzero(np.diff(occurrences.tocsc().indptr))),
        "occurrences": int(occurrences.nnz), "of": int(data.test.Y.nnz),
    }  # fmt: skip


def markdown(results: Row) -> str:
    table = [["system", "text", *QUALITY, "training", "source"]]
    for row in [*results["rows"], *results["published"]]:
        ours = "cpu" in row
        cost = f"{row['cpu']:.0f} CPU s" if ours else row.get("training", "")
        cells = [f"{row[name]:.1f}" if name in row else "" for name in QUALITY]
        name = f"**umpteen** {row['system']}" if ours else row["system"]
        table.append(
            [name, "title, 300 words" if ours else "full", *cells, cost,
             "this run" if ours else row["source"]]
        )  # fmt: skip
    new = results["unseen"]
    count = f"{new['occurrences']} of the {new['of']:,} are labels"
    return "\n\n".join(
        [TITLE, made_by(results), NOTES.format(unseen=count), table_lines(table), SOURCES]
    )


TITLE = "# EURLEX57K: the tagger compared with published networks"
NOTES = """45,000 training texts, 6,000 test texts, 4,271 labels; the split of [1]; in percent. All
test labels count: {unseen} that no training text
has, so only a system that reads label texts can find them. R@5 is the share of a text's labels that
are among the best five; RP@5 divides the hits by five or by the number of the text's labels,
whichever is less.

Our texts are the title and the first 300 words. The published systems got the full texts, of which
BERT reads at most 512 tokens. Our F1 uses one threshold, chosen on a part of the training texts.
Our times start from raw texts and include the choice of settings and the second training for
probabilities; kernels are compiled beforehand."""
SOURCES = """[1] I. Chalkidis, M. Fergadiotis, P. Malakasiotis, I. Androutsopoulos:
[Large-Scale Multi-Label Text Classification on EU Legislation](https://aclanthology.org/P19-1636/),
ACL 2019; the figures are those that Papers with Code lists for it.

[2] LibMultiLabel, table of `example_config/EUR-Lex-57k/README.md`, which also has the times and
names no hardware. BiGRU-LWAN is the network of [1], trained anew there.
"""

if __name__ == "__main__":
    main()
