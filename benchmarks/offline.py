"""Offline prediction and fit from many files: rows per second, and memory at three sizes.

    python benchmarks/offline.py

`um.cluster.predict` over JSON Lines and Parquet shards of 5,000 rows each, in this process and on
a local Ray cluster of two nodes with one core each; then a fit of shards, whose peak is
compared with a formula: base, texts and labels, features, and the estimate for the classifier.
Texts and labels are those of debian-deps, repeated where a size needs more. Each figure is of a
process of its own. Memory of a cluster is that of its workers: what each has for itself, and what
they map together.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.environment import machine, results_folder, versions
from harness.measure import Stopwatch, disk_megabytes, peak_megabytes, reset_peak
from harness.report import made_by, table_lines, write_results

import umpteen as um

DATA = "debian-deps"
SHARD = 5_000
SIZES, QUICK_SIZES = (20_000, 40_000, 80_000), (2_000, 4_000, 8_000)
SHARES = (0.25, 0.5, 1.0)
NODES = 2
WAYS = {"jsonl": "one process, JSONL", "parquet": "one process, Parquet", "ray": "Ray, two nodes"}

Figures = dict[str, Any]


def main() -> None:
    """Make a model and shards, measure each task in its own process, keep the tables."""
    options = parse()
    if options.task:
        print(json.dumps(TASKS[options.task](Path(options.folder), options.size)))
        return
    sizes = QUICK_SIZES if options.quick else SIZES
    with TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model(folder, 3_000 if options.quick else None)
        results = {
            "command": shlex.join(["python", "benchmarks/offline.py", *sys.argv[1:]]),
            "machine": machine(),
            "versions": versions(),
            "remark": options.remark,
            "model": model,
            "predict": [row for size in sizes for row in measure_predict(folder, size)],
            "fit": [in_process("fit", folder, share) for share in SHARES],
        }
    text = markdown(results)
    print(text)
    write_results(results, results_folder(options.quick) / "offline.json", text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, and not kept")
    parser.add_argument("--remark", default="", help="a sentence about the machine, to be kept")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


def make_model(folder: Path, n_texts: int | None) -> Figures:
    """Train the tagger that all predictions use, and write the texts it learned from as shards."""
    train = um.data.load(DATA).train
    texts, labels = train.texts[:n_texts], train.labels[:n_texts]
    um.Tagger(language=None, calibrate=False).fit(texts, labels).save(folder / "model")
    (folder / "train").mkdir()
    for number, start in enumerate(range(0, len(texts), 2_000)):
        part = um.data.Samples(
            texts=texts[start : start + 2_000], labels=labels[start : start + 2_000]
        )
        um.data.write(part, folder / "train" / f"{number:03}.jsonl")
    known = {name for names in labels for name in names}
    return {
        "texts": len(texts), "labels": len(known), "megabytes": disk_megabytes(folder / "model"),
    }  # fmt: skip


def measure_predict(folder: Path, n_rows: int) -> Iterator[Figures]:
    """Each way to predict so many rows; they must give the same answers."""
    texts = um.data.load(DATA).train.texts
    place = folder / f"{n_rows}"
    for form in ("jsonl", "parquet"):
        (place / form).mkdir(parents=True)
        rows = cycle(texts)
        for number in range(-(-n_rows // SHARD)):
            part = list(islice(rows, min(SHARD, n_rows - number * SHARD)))
            um.data.write(um.data.Samples(texts=part), place / form / f"{number:04}.{form}")
    for way in WAYS:
        yield {"way": way, "rows": n_rows, **in_process(way, folder, n_rows)}
    answers = [sorted((place / name).glob("*.jsonl")) for name in ("out-jsonl", "out-ray")]
    for ours, theirs in zip(*answers, strict=True):
        assert ours.read_bytes() == theirs.read_bytes()


def in_process(task: str, folder: Path, size: float) -> Figures:
    """The figures of a task that runs in a process of its own."""
    command = [sys.executable, __file__, "--task", task, "--folder", folder, "--size", size]
    environment = os.environ | {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, check=True, env=environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def predict_here(form: str) -> Any:
    """Predict shards of a format in this process."""

    def task(folder: Path, size: float) -> Figures:
        place = folder / f"{size:.0f}"
        warm_up()
        with Stopwatch() as watch:
            um.cluster.predict(folder / "model", f"{place}/{form}/*", place / f"out-{form}")
        return {"wall": watch.wall, "cpu": watch.cpu, "peak": peak_megabytes()}

    return task


def predict_on_ray(folder: Path, size: float) -> Figures:
    """Predict JSON Lines shards on two nodes; the first run only starts their workers."""
    import ray
    from ray.cluster_utils import Cluster

    store = {"object_store_memory": 100_000_000}
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **store}
    )
    try:
        for _ in range(NODES):
            cluster.add_node(num_cpus=1, **store)
        cluster.wait_for_nodes()
        place = folder / f"{size:.0f}"
        with Stopwatch() as start:
            ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
            warm = f"{place}/jsonl/000[0-3].jsonl"
            um.cluster.predict(folder / "model", warm, place / "warm", address="auto")
        with Stopwatch() as watch, workers_memory() as most:
            um.cluster.predict(
                folder / "model", f"{place}/jsonl/*", place / "out-ray", address="auto"
            )
        return {"wall": watch.wall, "start": start.wall, "peak": peak_megabytes(), **most}
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def workers_memory() -> Iterator[Figures]:
    """The most that one worker has for itself, and maps, in megabytes, while the block runs."""
    most = {"private": 0.0, "mapped": 0.0}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError, StopIteration):
                    if (process / "cmdline").read_bytes().startswith(b"ray::_task"):
                        lines = (process / "status").read_text().splitlines()
                        held = {line.split(":")[0]: line for line in lines}
                        for name, key in (("private", "RssAnon"), ("mapped", "RssFile")):
                            most[name] = max(most[name], int(held[key].split()[1]) / 2**10)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        ended.set()
        watcher.join()


def warm_up() -> None:
    """Import the library and load its kernels."""
    um.Tagger(language=None, calibrate=False).fit(["a b", "c"], [["x"], ["y"]]).predict("a")
    assert um.cluster


def held_megabytes() -> float:
    """What this process holds now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 2**10


def fit_shards(folder: Path, size: float) -> Figures:
    """Fit a tagger on a share of the shards as `umpteen fit` does, beside the formula."""
    files = sorted((folder / "train").iterdir())
    files = files[: max(1, round(size * len(files)))]
    warm_up()
    base = held_megabytes()
    parts = [um.data.read(file) for file in files]
    texts = [text for part in parts for text in part.texts]
    labels = [names for part in parts for names in part.labels]
    del parts
    held = sum(map(sys.getsizeof, texts)) + sum(
        sys.getsizeof(names) + sum(map(sys.getsizeof, names)) for names in labels
    )
    tagger = um.Tagger(language=None, calibrate=False)
    reset_peak()
    with Stopwatch() as watch:
        tagger.fit(texts, labels)
    peak = peak_megabytes()
    nonzeros = tagger.vectorizer_.transform(texts).nnz
    return {
        "texts": len(texts),
        "base": base,
        "held": held / 2**20,
        "features": 8 * nonzeros / 2**20,
        "estimate": tagger.estimate(texts, labels).memory / 2**20,
        "peak": peak,
        "wall": watch.wall,
    }


TASKS = {
    "jsonl": predict_here("jsonl"),
    "parquet": predict_here("parquet"),
    "ray": predict_on_ray,
    "fit": fit_shards,
}


def markdown(results: Figures) -> str:
    """Two tables: prediction, and fit."""
    model = results["model"]
    rows = [
        ["rows", "way", "seconds", "CPU s", "rows/s", "peak MB", "worker's own MB", "mapped MB"]
    ]
    for row in results["predict"]:
        rate = row["rows"] / row["wall"]
        worker = [f"{row[key]:,.0f}" if key in row else "" for key in ("private", "mapped")]
        cells = [f"{row['rows']:,}", WAYS[row["way"]], f"{row['wall']:.1f}"]
        cells += [f"{row['cpu']:.1f}" if "cpu" in row else "", f"{rate:,.0f}"]
        rows.append([*cells, f"{row['peak']:,.0f}", *worker])
    fits = [["texts", "seconds", "base MB", "texts and labels MB", "features MB", "estimate MB",
             "formula MB", "peak MB", "peak / formula"]]  # fmt: skip
    for row in results["fit"]:
        parts = [row[key] for key in ("base", "held", "features", "estimate")]
        figures = [*parts, sum(parts), row["peak"]]
        shown = [f"{x:,.0f}" for x in figures] + [f"{row['peak'] / sum(parts):.2f}"]
        fits.append([f"{row['texts']:,}", f"{row['wall']:.1f}", *shown])
    about = (
        f"{made_by(results)} The model learned {model['labels']:,} labels from {model['texts']:,} "
        f"texts and has {model['megabytes']:.0f} MB on disk. On Ray, the peak is that of the "
        "driver, and the start of the cluster and of its workers is not in the seconds. Base is "
        "what a process holds that has imported umpteen and loaded its kernels. Seconds and rows/s "
        f"include waiting for other programs on the machine. {results['remark']}".rstrip()
    )
    heading = "# Offline prediction, and fit from many files"
    parts = [heading, about, "## Predict", table_lines(rows), "## Fit", table_lines(fits)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
