"""Memory of a fit whose features are in a scratch folder.

    python benchmarks/scratch.py
    sudo python benchmarks/scratch.py --limit

The texts of eurlex57k, repeated, stay in their files (`umpteen fit --stream`). A `Tagger` learns
from them, with features in memory and in a scratch folder, in a process of its own for each row.
With `--limit`, the largest size is fitted again in a control group whose memory is halfway between
both peaks. The limit counts pages of files as well, so that the system has to drop them. This needs
root and control groups of version 1 (a mounted /sys/fs/cgroup/memory).
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, anonymous_megabytes
from harness.report import made_by, table_lines, write_results
from text_shards import write_files

import umpteen as um

TIMES = (1, 2, 4)
WAYS = {"memory": "memory", "scratch": "scratch folder"}
GROUP = Path("/sys/fs/cgroup/memory/umpteen-scratch")  # version 1 of control groups

Figures = dict[str, Any]


def main() -> None:
    options = parse()
    if options.way:
        print(json.dumps(measured(options.way, Path(options.folder))))
        return
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/scratch.py", *sys.argv[1:]]),
        "machine": machine(), "versions": versions(), "base": anonymous_megabytes(),
        "rows": [],
    }  # fmt: skip
    samples = um.data.load("eurlex57k").train
    sizes = (1,) if options.quick else TIMES
    for times in sizes:
        with TemporaryDirectory(dir=options.disk) as folder:
            write_files(Path(folder), samples, times)
            measure(results, folder, None, options.quick)
            if options.limit and times == sizes[-1]:
                limit = round(sum(row["peak"] for row in results["rows"][-2:]) / 2)
                measure(results, folder, limit, options.quick)
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the smallest size; not kept")
    parser.add_argument("--limit", action="store_true", help="once more with less memory")
    parser.add_argument("--disk", metavar="FOLDER", help="where files are written")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(results: dict[str, Any], folder: str, limit: int | None, quick: bool) -> None:
    for way in WAYS:
        results["rows"].append({"way": way, "limit": limit} | in_process(way, folder, limit))
        write_results(results, results_folder(quick) / "scratch.json", markdown(results))


def in_process(way: str, folder: str, limit: int | None) -> Figures:
    """Return the figures of a fit; none if the system had to end it."""
    command = [sys.executable, __file__, "--way", way, "--folder", folder]
    if limit:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(limit * 2**20))
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=join_group if limit else None
    )
    if limit:
        GROUP.rmdir()
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}


def join_group() -> None:
    (GROUP / "cgroup.procs").write_text(str(os.getpid()))


def measured(way: str, folder: Path) -> Figures:
    texts = um.data.read_shards(f"{folder}/*.jsonl")
    tagger = um.Tagger(
        um.LabelTree.for_texts(n_jobs=2, verbose=False),
        vectorizer=um.text.Vectorizer(hashing=2**20, n_jobs=2), replay=1000,
    )  # fmt: skip
    place = um.data.scratch(folder / "scratch") if way == "scratch" else nullcontext()
    with Peak() as peak, Stopwatch() as watch, place:
        tagger.fit(texts.texts, texts.labels)
        on_disk = sum(path.stat().st_size for path in folder.glob("scratch/*/*"))
    top = tagger.predict_topk(texts.texts[:1000])
    bits = hashlib.sha256(top.labels.tobytes() + top.scores.tobytes()).hexdigest()
    return {
        "n_texts": len(texts.texts), "on_disk": on_disk / 2**20, "peak": peak.most,
        "wall": watch.wall, "cpu": watch.cpu, "bits": bits,
    }  # fmt: skip


class Peak:
    """The most memory that a process holds of its own in a block, without pages of files."""

    def __enter__(self) -> "Peak":
        self.most, self._is_over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._is_over.is_set():
            self.most = max(self.most, anonymous_megabytes())
            time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


def markdown(results: dict[str, Any]) -> str:
    head = ["texts", "limit MB", "features in", "peak MB", "in files MB", "s", "CPU s", "same bits"]
    rows = [head]
    for each in results["rows"]:
        limit = f"{each['limit']:,}" if each["limit"] else "-"
        if "peak" not in each:
            rows.append(["as above", limit, WAYS[each["way"]], "killed", "", "", "", ""])
            continue
        same = {row["bits"] for row in results["rows"] if row.get("n_texts") == each["n_texts"]}
        rows.append(
            [f"{each['n_texts']:,}", limit, WAYS[each["way"]], f"{each['peak']:,.0f}",
             f"{each['on_disk']:,.0f}", f"{each['wall']:.0f}", f"{each['cpu']:.0f}",
             "yes" if len(same) == 1 else "NO"]
        )  # fmt: skip
    parts = [
        "# Memory of a fit whose features are in a scratch folder",
        made_by(results),
        "The texts of eurlex57k, repeated, stay in their files. A `Tagger` with a `LabelTree` and "
        "hashed words and bigrams learns from them. The peak is the most memory that the process "
        f"has of its own, of which {results['base']:,.0f} MB are Python and libraries. It does not "
        "include pages of files, which the system drops if it needs their room. The limit, of a "
        "control group, includes both; the system kills a process that needs more.",
        table_lines(rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
