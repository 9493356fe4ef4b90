"""What a server learns from right and from wrong corrections, and whether it can tell.

    python benchmarks/serve_learning.py
    python benchmarks/serve_learning.py --sizes 100 500

A tagger of the training split of cooking (12,404 questions, under `$UMPTEEN_DATA`) is served, and
texts of the test split are sent as corrections. "right" have their own labels; "wrong" have those
of another text; "one label" have the most frequent label of all. Labels with a probability of 0.3
or more count as suggested. The last two columns are the nDCG@5 of the model before, and of one that
learned from all corrections, whether the server does or not, on 1,000 other texts of that split.
"""

import argparse
import random
import shlex
import sys
import tempfile
from copy import copy
from pathlib import Path
from typing import Any

from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from harness.serving import Server, wait_until
from rich.console import Console

import umpteen as um

KINDS = ("right", "wrong", "one label")
SIZES = (100, 500, 2000)
AT_ONCE = 1000
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    options = parser.parse_args()
    data = um.data.load("cooking")
    split = data.splits["test"]
    samples = list(zip(split.texts, split.labels, strict=True))
    random.Random(0).shuffle(samples)
    tagger = um.Tagger().fit(data.train.texts, data.train.labels)
    results: Row = {
        "command": shlex.join(["python", "benchmarks/serve_learning.py", *sys.argv[1:]]),
        "machine": machine(), "versions": versions(), "rows": [],
    }  # fmt: skip
    for kind in KINDS:
        for size in options.sizes:
            items = corrections(tagger, samples[1000 : 1000 + size], kind)
            row = {"kind": kind, "size": size} | taught(tagger, items)
            row |= truth(tagger, items, samples[:1000])
            results["rows"].append(row)
    is_quick = tuple(options.sizes) != SIZES
    write_results(results, results_folder(is_quick) / "serve_learning.json", page(results))
    Console().print(page(results), markup=False, highlight=False)


def corrections(tagger: um.Tagger, samples: list[Any], kind: str) -> list[Row]:
    texts, labels = [text for text, _ in samples], [list(own) for _, own in samples]
    if kind == "wrong":
        labels = labels[1:] + labels[:1]
    if kind == "one label":
        labels = [[tagger.labels[int(tagger.label_counts_.argmax())]]] * len(texts)
    shown = [[name for name, _ in tags] for tags in tagger.predict(texts, k=20, threshold=0.3)]
    return [
        {"text": text, "labels": own, "suggested": suggested}
        for text, own, suggested in zip(texts, labels, shown, strict=True)
    ]


def taught(tagger: um.Tagger, items: list[Row]) -> Row:
    """What a server makes of corrections: its last point of the learning curve."""
    with tempfile.TemporaryDirectory() as scratch:
        tagger.save(Path(scratch) / "cooking")
        server = Server(Path(scratch) / "cooking", "--learn-after", "1000000000")
        for start in range(0, len(items), AT_ONCE):
            server.post("/v1/cooking/learn", {"items": items[start : start + AT_ONCE]})
        server.post("/v1/cooking/apply", {})
        wait_until(lambda: not server.get("/v1/cooking")["learning"]["running"], 600)
        point = server.get("/v1/cooking")["learning"]["curve"][-1]
        server.stop()
    return {name: point[name] for name in ("applied", "reason", "unseen", "left_out")}


def truth(tagger: um.Tagger, items: list[Row], others: list[Any]) -> Row:
    after = copy(tagger).partial_fit(
        [item["text"] for item in items],
        [item["labels"] for item in items],
        [[name for name in item["suggested"] if name not in item["labels"]] for item in items],
    )
    texts, labels = [text for text, _ in others], [own for _, own in others]
    found = [one.evaluate(texts, labels, n_examples=0) for one in (tagger, after)]
    before, learned = (report.metrics["nDCG@5"] for report in found)
    return {"before": before, "after": learned}


def page(results: Row) -> str:
    rows = [["corrections", "applied", "on corrections that are never learned",
             "on training texts left out", "on other texts, before", "after"]]  # fmt: skip
    for row in results["rows"]:
        checks = [
            f"{check['before']:.4f} to {check['after']:.4f} ({check['n_texts']:,})"
            for check in (row["unseen"], row["left_out"])
        ]
        told = [f"{row['size']:,} {row['kind']}", "yes" if row["applied"] else "no"]
        rows.append([*told, *checks, f"{row['before']:.4f}", f"{row['after']:.4f}"])
    return f"# Learning from corrections\n\n{made_by(results)}\n\n{table_lines(rows)}\n"


if __name__ == "__main__":
    main()
