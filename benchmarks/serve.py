"""`umpteen serve` compared with a plain FastAPI route and Annif's server, under load.

    python benchmarks/serve.py
    python benchmarks/serve.py --clients 1 64 --seconds 5 --systems "umpteen serve"

Texts are those of the test split of eurlex57k, about 1,850 characters each, under `$UMPTEEN_DATA`.
The tagger is `Tagger()` on all 45,000 training texts; Annif has Omikuji (Bonsai) on the first
10,000. Every server is one process. The load generator runs on the same machine, in a process of
its own: wrk (`apt-get install wrk`) with one thread, or without it `harness/load.py` (asyncio with
uvloop), which needs more CPU itself. It has so many clients, each of which sends a request, waits
for the answer and sends the next. "batches" are requests of 100 texts (of Annif 32, its limit) by 4
clients. Only answers with status 200 count; others are listed. CPU is that of the server per
request, memory what it holds afterwards.

Rows that were measured are kept, so an interrupted run goes on where it stopped: `--again` measures
all of them anew. Annif is installed and trained on the first run, which takes minutes; without it,
leave it out with `--systems`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.annif.environment import ANNIF, make_annif
from harness.annif.files import Files, prepare
from harness.environment import BENCHMARKS, PEERS_HOME, machine, results_folder, variables, versions
from harness.report import made_by, table_lines, write_results
from harness.runs import KERNELS
from harness.serving import Server
from rich.console import Console

import umpteen as um

SET = "eurlex57k"
CLIENTS = (1, 16, 64, 256, 1000)
BATCH, ANNIF_BATCH, BATCH_CLIENTS = 100, 32, 4
TEXTS = 3000
SECONDS = 10
WRK = shutil.which("wrk")
LOG = Console(stderr=True)
Row = dict[str, Any]

OURS = [sys.executable, "-m", "umpteen", "serve", "--port", "0", "--no-learn"]
NOT_WAITING = """
import sys
from umpteen.serve import Settings, open_models
from umpteen.serve.running import run
settings = Settings(learns=False, gather=0)
run(open_models([sys.argv[1]], settings), "127.0.0.1", 0, settings)
"""
PLAIN = [sys.executable, "-m", "harness.plain_server"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", nargs="+", type=int, default=CLIENTS, metavar="N")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each measurement")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--again", action="store_true", help="measure all rows anew")
    options = parser.parse_args()
    os.environ.update(variables(os.cpu_count() or 1, KERNELS))
    is_quick = options.seconds < SECONDS or tuple(options.clients) != CLIENTS
    file = results_folder(is_quick) / "serve.json"
    results: Row = {
        "command": "python benchmarks/serve.py" + f" --seconds {options.seconds:g}" * is_quick,
        "generator": "wrk" if WRK else "harness/load.py",
        "machine": machine(), "versions": versions(), "rows": [],
    }  # fmt: skip
    if file.exists():
        kept = json.loads(file.read_text())["rows"]
        results["rows"] = [
            row for row in kept
            if "failed" not in row and not (options.again and row["system"] in options.systems)
        ]  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        bodies = write_bodies(Path(scratch))
        for system in options.systems:
            for row in measured(system, bodies, options, results["rows"]):
                results["rows"].append(row)
                results["rows"].sort(key=lambda row: list(SYSTEMS).index(row["system"]))
                write_results(results, file, page(results))
    Console().print(page(results), markup=False, highlight=False)


def model() -> Path:
    """The tagger, trained once and kept."""
    folder = PEERS_HOME / "serve" / SET
    if not (folder / "manifest.json").exists():
        LOG.print("training the tagger")
        data = um.data.load(SET)
        um.Tagger().fit(data.train.texts, data.train.labels).save(folder)
    return folder


def write_bodies(folder: Path) -> dict[str, Path]:
    """The requests of each kind, one a line."""
    texts = um.data.load(SET).splits["test"].texts[:TEXTS]
    kinds = {
        "one": [json.dumps({"text": text}) for text in texts],
        "batch": [json.dumps({"texts": part}) for part in in_parts(texts, BATCH)],
        "form": [urllib.parse.urlencode({"text": text, "limit": 10}) for text in texts],
        "documents": [
            json.dumps({"documents": [{"text": text} for text in part]})
            for part in in_parts(texts, ANNIF_BATCH)
        ],
    }
    for name, lines in kinds.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return {name: folder / name for name in kinds}


def in_parts(texts: list[str], size: int) -> list[list[str]]:
    return [texts[start : start + size] for start in range(0, len(texts) - size + 1, size)]


def ours() -> tuple[Server, Row]:
    server = Server(model(), program=OURS)
    return server, {"one": f"/v1/{SET}/suggest", "batch": f"/v1/{SET}/suggest"}


def not_waiting() -> tuple[Server, Row]:
    server = Server(model(), program=[sys.executable, "-c", NOT_WAITING])
    return server, {"one": f"/v1/{SET}/suggest", "batch": f"/v1/{SET}/suggest"}


def plain() -> tuple[Server, Row]:
    return Server(model(), program=PLAIN), {"one": "/suggest", "batch": "/suggest"}


def annif() -> tuple[Server, Row]:
    """Annif's server; installing and training it takes minutes the first time."""
    make_annif()
    folder = PEERS_HOME / "annif-runs" / SET
    whole = Files(folder / "test")
    if not whole.folder.exists():
        prepare(SET, folder)
    place = whole.folder / "annif"
    if not (place / "projects" / "bonsai").exists():
        train_annif(whole)
    settings = {"ANNIF_PROJECTS": str(place / "projects.cfg"), "ANNIF_DATADIR": str(place),
                "ANNIF_CONFIG": "annif.default_config.ProductionConfig"}  # fmt: skip
    program = [str(ANNIF), "-P", "-m", "harness.annif.server"]
    server = Server(program=program, ready="/v1/projects", environment=without_ours() | settings)
    route = "/v1/projects/bonsai"
    return server, {"form": f"{route}/suggest", "documents": f"{route}/suggest-batch?limit=10"}


def train_annif(files: Files) -> None:
    LOG.print("training Annif")
    bonsai = {"backend": "omikuji", "cluster_balanced": False, "cluster_k": 100, "max_depth": 3}
    with tempfile.TemporaryDirectory() as scratch:
        job, measured = Path(scratch) / "job.json", Path(scratch) / "measured.json"
        asked = {"task": "train", "system": "bonsai", "projects": {"bonsai": bonsai}}
        places = {"folder": str(files.folder), "measured": str(measured)}
        job.write_text(json.dumps(asked | places))
        program = [str(ANNIF), "-P", "-m", "harness.annif.theirs", str(job)]
        subprocess.run(program, check=True, env=without_ours())


def without_ours() -> dict[str, str]:
    """The environment for a Python that has Annif and not this package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


SYSTEMS = {
    "umpteen serve": ours,
    "umpteen serve, gather=0": not_waiting,
    "plain FastAPI route": plain,
    "Annif, Omikuji": annif,
}


def measured(
    system: str, bodies: dict[str, Path], options: argparse.Namespace, known: list[Row]
) -> Iterator[Row]:
    """The figures of one system that are not known: a row per number of clients, then batches."""
    has = {(row["clients"], row["texts"] > 1) for row in known if row["system"] == system}
    missing = [job for job in [*((n, False) for n in options.clients), (BATCH_CLIENTS, True)]
               if job not in has]  # fmt: skip
    if not missing:
        return
    LOG.print(system)
    try:
        server, paths = SYSTEMS[system]()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as problem:
        yield {"system": system, "failed": str(problem)[-300:]}
        return
    try:
        (one, one_path), (batch, batch_path) = paths.items()
        kind = "application/x-www-form-urlencoded" if one == "form" else "application/json"
        size = ANNIF_BATCH if batch == "documents" else BATCH
        for _ in range(20):  # warms up: kernels may have to be compiled
            if load(server, bodies[one], one_path, kind, 8, 2)["per_second"] > 10:
                break
        for n, is_batch in missing:
            ask = (batch, batch_path, "application/json") if is_batch else (one, one_path, kind)
            found = load(server, bodies[ask[0]], *ask[1:], n, options.seconds)
            yield {"system": system, "clients": n, "texts": size if is_batch else 1} | found
    finally:
        server.stop()


def load(server: Server, bodies: Path, path: str, kind: str, n: int, seconds: float) -> Row:
    job = {"port": server.port, "path": path, "bodies": str(bodies), "clients": n,
           "seconds": seconds, "type": kind}  # fmt: skip
    before = server.cpu_seconds()
    command = [sys.executable, "-m", "harness.load", json.dumps(job)]
    if WRK:
        script = str(BENCHMARKS / "harness" / "load.lua")
        url = f"http://127.0.0.1:{server.port}{path}"
        command = [WRK, "-t1", f"-c{n}", f"-d{round(seconds)}s", "--timeout", "30s", "-s", script,
                   url, "--", str(bodies), kind]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: Row = json.loads(done.stdout.splitlines()[-1])
    n_requests = max(sum(found["statuses"].values()), 1)
    cpu = 1e3 * (server.cpu_seconds() - before) / n_requests
    LOG.print(f"  {n} clients: {found}", markup=False)
    return found | {"cpu_ms": round(cpu, 3), "memory_mb": round(server.megabytes())}


def page(results: Row) -> str:
    heads = ["system", "clients", "texts in a request", "texts per s", "p50, ms", "p99, ms",
             "slowest", "other answers", "server CPU, ms per request", "memory, MB"]  # fmt: skip
    rows = [heads]
    for row in results["rows"]:
        if "failed" in row:
            rows.append([row["system"], "failed", row["failed"], *[""] * 7])
            continue
        others = {status: n for status, n in row["statuses"].items() if status != "200"}
        others |= row["broken"] | ({"stuck": row["stuck"]} if row["stuck"] else {})
        told = ", ".join(f"{n:,} x {what}" for what, n in others.items()) or "none"
        rows.append([
            row["system"], f"{row['clients']:,}", str(row["texts"]),
            f"{row['per_second'] * row['texts']:,.0f}", f"{row['p50']:,.1f}", f"{row['p99']:,.1f}",
            f"{row['worst']:,.0f}", told, f"{row['cpu_ms']:.2f}", f"{row['memory_mb']:,}",
        ])  # fmt: skip
    told = (
        f"{made_by(results)} The load generator is {results['generator']}. Rows of different "
        "systems may be of different runs."
    )
    return f"# The server under load\n\n{told}\n\n{table_lines(rows)}\n"


if __name__ == "__main__":
    main()
