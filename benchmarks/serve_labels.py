"""Type-ahead over a million names of labels: how long a query takes, and what it costs in memory.

    python benchmarks/serve_labels.py
    python benchmarks/serve_labels.py --labels 100000

A tagger has a label for each of its training texts. Names are one to five words out of 50,000, a
third of them with accents, and a number. Each query is asked twenty times; the median and the
slowest count, of the processor's time, as the search never waits.
"""

import argparse
import random
import shlex
import string
import sys
import time
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from rich.console import Console

import umpteen as um
from umpteen.serve import LabelSearch

QUERIES = ("", "a", "er", "ing", "the", "qx", "café", "zzz", "no such name", "999999")
TURNS = 20
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=1_000_000)
    options = parser.parse_args()
    names = made_up(options.labels)
    vectorizer = um.text.Vectorizer(hashing=2**20, ngrams=1)
    tagger = um.Tagger(um.NearestCentroid(), vectorizer=vectorizer, calibrate=False, replay=0)
    tagger.fit(names, [[name] for name in names])
    start = time.process_time()
    search = LabelSearch.of(tagger)
    built = time.process_time() - start
    search.find("compiled", 20)
    results: Row = {
        "command": shlex.join(["python", "benchmarks/serve_labels.py", *sys.argv[1:]]),
        "machine": machine(), "versions": versions(), "labels": options.labels,
        "build_s": round(built, 2), "memory_mb": round(search.n_bytes / 2**20, 1),
        "rows": [measure(search, query) for query in QUERIES],
    }  # fmt: skip
    is_quick = options.labels < 1_000_000
    write_results(results, results_folder(is_quick) / "serve_labels.json", page(results))
    Console().print(page(results), markup=False, highlight=False)


def made_up(n_labels: int) -> list[str]:
    draw = random.Random(0)
    letters = string.ascii_lowercase
    words = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(50_000)]
    words += ["the", "reading", "café"]
    words = [word.replace("e", "é") if i % 3 == 0 else word for i, word in enumerate(words)]
    return [f"{' '.join(draw.choices(words, k=draw.randint(1, 5)))} {i}" for i in range(n_labels)]


def measure(search: LabelSearch, query: str) -> Row:
    times = []
    for _ in range(TURNS):
        start = time.process_time()
        found = search.find(query, 20)
        times.append(1e3 * (time.process_time() - start))
    median, slowest = round(float(np.median(times)), 1), round(max(times), 1)
    return {"query": query, "matches": found.n_matches, "median": median, "slowest": slowest}


def page(results: Row) -> str:
    rows = [["query", "matches", "median, ms", "slowest"]]
    for row in results["rows"]:
        query = f"`{row['query']}`" if row["query"] else "none"
        rows.append([query, f"{row['matches']:,}", f"{row['median']:.1f}", f"{row['slowest']:.1f}"])
    made = (
        f"{results['labels']:,} names: {results['build_s']:.1f} s to prepare them, "
        f"{results['memory_mb']:.0f} MB."
    )
    return f"# Type-ahead\n\n{made_by(results)} {made}\n\n{table_lines(rows)}\n"


if __name__ == "__main__":
    main()
