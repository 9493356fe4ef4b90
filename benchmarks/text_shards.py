"""Memory of the machine that runs `fit`, if texts stay in their files.

    python benchmarks/text_shards.py

Texts of eurlex57k, several times, are in JSON Lines files. A `Vectorizer` learns from them and
turns them into features, from lists (`umpteen.data.read`), and from files that tasks read
(`umpteen.data.read_shards`): in this process, and on a local Ray cluster of two workers, whose own
memory is not counted. Each figure is the peak of a process of its own.
"""

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, peak_megabytes
from harness.report import made_by, table_lines, write_results

import umpteen as um

TIMES = (1, 2, 4)
N_FILES = 8  # for each time
WAYS = {"lists": "lists", "here": "files, here", "cluster": "files, on a cluster"}

Figures = dict[str, Any]


def main() -> None:
    options = parse()
    if options.way:
        print(json.dumps(measured(options.way, options.folder)))
        return
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/text_shards.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "base": peak_megabytes(),
        "rows": [],
    }
    samples = um.data.load("eurlex57k").train
    for times in (1,) if options.quick else TIMES:
        with TemporaryDirectory() as folder:
            n_bytes = write_files(Path(folder), samples, times)
            for way in WAYS:
                found = in_process(way, folder)
                results["rows"].append({"n_bytes": n_bytes, "way": way} | found)
                place = results_folder(options.quick) / "text_shards.json"
                write_results(results, place, markdown(results))
    print(markdown(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the smallest size; not kept")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def write_files(folder: Path, samples: Any, times: int) -> int:
    """Write the texts so many times; return the bytes of all files."""
    size = -(-len(samples.texts) // N_FILES)
    for number in range(N_FILES * times):
        start = size * (number % N_FILES)
        part = um.data.Samples(
            texts=samples.texts[start : start + size], labels=samples.labels[start : start + size]
        )
        um.data.write(part, folder / f"{number:03}.jsonl")
    return sum(path.stat().st_size for path in folder.iterdir())


def in_process(way: str, folder: str) -> Figures:
    command = [sys.executable, __file__, "--way", way, "--folder", folder]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(found.splitlines()[-1])  # type: ignore[no-any-return]


def measured(way: str, folder: str) -> Figures:
    pattern = f"{folder}/*.jsonl"
    with um.cluster.ray("local") if way == "cluster" else nullcontext(), Stopwatch() as watch:
        if way == "lists":
            files = sorted(Path(folder).iterdir())
            texts = [text for file in files for text in um.data.read(file).texts]
        else:
            texts = um.data.read_shards(pattern).texts
        X = um.text.Vectorizer(n_jobs=2).fit_transform(texts)
    bits = hashlib.sha256(X.data.tobytes() + X.indices.tobytes()).hexdigest()
    of_X = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
    peak = peak_megabytes()
    return {"n_texts": X.shape[0], "of_X": of_X, "peak": peak, "wall": watch.wall, "bits": bits}


def markdown(results: dict[str, Any]) -> str:
    rows = [["texts", "files MB", "X MB", "texts in", "peak MB", "same bits"]]
    for each in results["rows"]:
        same = {row["bits"] for row in results["rows"] if row["n_texts"] == each["n_texts"]}
        rows.append(
            [f"{each['n_texts']:,}", f"{each['n_bytes'] / 1e6:,.0f}", f"{each['of_X']:,.0f}",
             WAYS[each["way"]], f"{each['peak']:,.0f}", "yes" if len(same) == 1 else "NO"]
        )  # fmt: skip
    parts = [
        "# Memory of the machine that runs fit, if texts stay in their files",
        made_by(results),
        "Texts of eurlex57k, several times, from lists, and from files that tasks read. Peaks are "
        f"of the process that calls `Vectorizer.fit_transform`, {results['base']:,.0f} MB of which "
        "are Python and libraries; workers of the cluster are not counted. On several machines, "
        "texts are read where the workers are.",
        table_lines(rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
