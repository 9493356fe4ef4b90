"""The commands of docs/cluster.md on three machines, and on a fourth that is not of the cluster.

    sudo python benchmarks/cluster_hosts.py [--quick]

The machines are namespaces of this one, each with its own network, processes, name, /dev/shm and
Ray folder; they share the disk. One of them is switched off in the middle of a fit. Every model is
compared, byte by byte, with one that was fitted without a cluster. All is removed at the end.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.hosts import Machine, machines, wait_until
from harness.report import made_by, table_lines, write_results

BIN = Path(sys.executable).parent
PORT = 6379
N_TEXTS, N_KINDS = 4_000, 400
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}

Figures = dict[str, Any]


def main() -> None:
    options = parse()
    os.environ |= QUIET
    divisor = 4 if options.quick else 1
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_texts(folder / "train.jsonl", N_TEXTS // divisor, N_KINDS // divisor)
        rows = run_all(folder)
    results = {
        "command": shlex.join(["python", "benchmarks/cluster_hosts.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "n_texts": N_TEXTS // divisor,
        "rows": rows,
    }
    text = markdown(results)
    write_results(results, results_folder(options.quick) / "cluster_hosts.json", text)
    print(text)
    if not all(row["same"] for row in rows):
        raise SystemExit("a model differs from the one without a cluster")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a quarter of the texts")
    return parser.parse_args()


def write_texts(path: Path, n_texts: int, n_kinds: int) -> None:
    """Texts of some kinds, whose words are drawn from those of their kind, with two labels each."""
    random = np.random.default_rng(0)
    kinds = random.integers(n_kinds, size=n_texts)
    words = 7 * kinds[:, None] + random.integers(30, size=(n_texts, 25))
    with path.open("w") as file:
        for kind, own in zip(kinds.tolist(), words.tolist(), strict=True):
            text = " ".join(f"word{word}" for word in own)
            record = {"text": text, "labels": [f"label {kind}", f"group {kind // 20}"]}
            file.write(json.dumps(record) + "\n")


def run_all(folder: Path) -> list[Figures]:
    began = time.perf_counter()
    subprocess.run(fit_command(folder, "here"), check=True, capture_output=True)
    rows = [row_of("fit without a cluster", folder, "here", began)]
    with machines(["first", "second", "third", "outside"]) as (first, second, third, outside):
        ray(first, "start", "--head", f"--port={PORT}", "--num-cpus=1")
        for other in (second, third):
            ray(other, "start", f"--address=first:{PORT}", "--num-cpus=1")
        wait_until(lambda: count_nodes(first) == 3, seconds=60)
        for title, where, address in (
            ("--cluster auto, on the first", first, "auto"),
            (f"--cluster first:{PORT}, on the third", third, f"first:{PORT}"),
            ("--cluster ray://first:10001, outside of the cluster", outside, "ray://first:10001"),
        ):
            began = time.perf_counter()
            where.run(*fit_command(folder, "there", "--cluster", address))
            rows.append(row_of(title, folder, "there", began))
        rows.append(lose_machine(folder, first, second))
        rows.append(resume(folder, first, third))
        for each in (first, third):
            ray(each, "stop")
    return rows


def lose_machine(folder: Path, first: Machine, lost: Machine) -> Figures:
    """Switch a machine off as soon as some tasks are done."""
    began = time.perf_counter()
    more = ["--cluster", "auto", "--checkpoint", str(folder / "finished")]
    process = first.start(*fit_command(folder, "there", *more))
    wait_until(lambda: process.poll() is not None or n_finished(folder) > 2, seconds=120)
    is_early = process.poll() is None
    lost.power_off()
    output, _ = process.communicate(timeout=300)
    if process.returncode or not is_early:
        raise RuntimeError(f"the fit that lost a machine failed, or was done before:\n{output}")
    return row_of("--cluster auto, the second switched off during the fit", folder, "there", began)


def resume(folder: Path, first: Machine, third: Machine) -> Figures:
    """Kill the program that fits, and run it again on another machine."""
    began = time.perf_counter()
    more = ["--cluster", "auto", "--checkpoint", str(folder / "finished")]
    own_id = folder / "process"
    say_id = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(own_id)]
    process = first.start(*say_id, *fit_command(folder, "there", *more))
    wait_until(lambda: process.poll() is not None or n_finished(folder) > 2, seconds=120)
    first.run("sh", "-c", f"kill -9 {own_id.read_text().strip()}")
    process.communicate(timeout=60)
    if not n_finished(folder):
        raise RuntimeError("the program was done before it was killed")
    third.run(*fit_command(folder, "there", *more))
    return row_of("the same, its program killed, then on the third", folder, "there", began)


def fit_command(folder: Path, model: str, *more: str) -> list[str]:
    program = [sys.executable, "-m", "umpteen", "fit", str(folder / "train.jsonl")]
    return [*program, "-o", str(folder / model), "--language", "none", *more]


def ray(where: Machine, *words: str) -> str:
    return where.run(str(BIN / "ray"), *words)


def count_nodes(where: Machine) -> int:
    code = (
        "import ray; ray.init('auto', logging_level='error'); "
        "print('nodes', sum(node['Alive'] for node in ray.nodes()))"
    )
    return int(where.run(sys.executable, "-c", code).rpartition("nodes ")[2])


def n_finished(folder: Path) -> int:
    """The files with finished tasks of a fit: one for each step."""
    return len(list((folder / "finished").glob("*.tasks")))


def row_of(title: str, folder: Path, model: str, began: float) -> Figures:
    return {
        "title": title,
        "seconds": time.perf_counter() - began,
        "same": content(folder / model) == content(folder / "here"),
    }


def content(model: Path) -> dict[str, str]:
    """The digest of each file of a model; the names of arrays begin with letters of that folder."""
    manifest = json.loads((model / "manifest.json").read_text())
    del manifest["checksum"]  # of these names, too
    arrays = sorted(model.glob("*.npy"))
    (prefix,) = {path.name.partition("-")[0] for path in arrays}
    named = {path.name.removeprefix(prefix): path.read_bytes() for path in arrays}
    named["manifest"] = json.dumps(manifest).replace(prefix, "").encode()
    return {name: hashlib.sha256(found).hexdigest() for name, found in named.items()}


def markdown(results: Figures) -> str:
    rows = [["umpteen fit", "s", "same files"]] + [
        [row["title"], f"{row['seconds']:.0f}", "yes" if row["same"] else "NO"]
        for row in results["rows"]
    ]
    parts = [
        "# A fit on three machines",
        made_by(results),
        f"`umpteen fit` of {results['n_texts']:,} made-up texts on a cluster that `ray start` "
        "makes of three machines with one core each, in namespaces of one machine: each has its "
        "own network address, processes, name and /dev/shm. Seconds include the start of workers. "
        "Same files: all arrays and settings of the model are those of the fit without a cluster, "
        "byte by byte.",
        table_lines(rows),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
