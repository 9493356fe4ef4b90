"""One timed job in a process of its own: `python -m harness.worker job.json`.

A job compiles, trains one model, predicts with one, or makes a fresh process's first prediction;
what it measured is written to the path that the job names.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz

from harness.libraries import open_library
from harness.measure import (
    Stopwatch,
    file_megabytes,
    latencies,
    peak_megabytes,
    reset_peak,
    timed,
)

Measured = dict[str, Any]


def warm(job: dict[str, Any]) -> Measured:
    """Compile once, away from the process whose memory is measured."""
    library = open_library(job["library"], threads=job["threads"], seed=job["seed"])
    library.warm_up(**job["settings"])
    return {}


def train(job: dict[str, Any]) -> Measured:
    """Train, save, and say what the training alone took."""
    library = open_library(job["library"], threads=job["threads"], seed=job["seed"])
    model, scratch = Path(job["model"]), Path(job["scratch"])
    library.warm_up(**job["settings"])
    data = library.prepare_training(_load(job, "X_train"), _load(job, "Y_train"), scratch)
    reset_peak()
    before = peak_megabytes()
    with Stopwatch() as watch:
        library.train(data, model, **job["settings"])
    memory = {"peak": peak_megabytes(), "peak_before": before, "files": file_megabytes()}
    library.save(model)
    return {"cpu": watch.cpu, "wall": watch.wall, **memory}


def predict(job: dict[str, Any]) -> Measured:
    """Predict test rows at once and some one by one; leaves the answers as npz."""
    library = open_library(job["library"], threads=job["threads"], seed=job["seed"])
    X = _load(job, "X_test")[: job["rows"]]
    with Stopwatch() as loading:
        library.load(Path(job["model"]), **job["settings"])
    k = job["k"]
    rows = library.prepare_rows(X)
    singles = [library.prepare_rows(X[i]) for i in range(min(job["singles"], X.shape[0]))]
    for row in singles[:10]:
        library.predict(row, k)
    answers, passes = timed(lambda: library.predict(rows, k), job["passes"], job["budget"])
    labels, scores = library.to_arrays(answers, k)
    np.savez(job["answers"], labels=labels, scores=scores)
    del answers
    peak = peak_megabytes()
    return {
        "load": loading.wall,
        "batch": [1e6 * watch.wall / X.shape[0] for watch in passes],
        "batch_cpu": [1e6 * watch.cpu / X.shape[0] for watch in passes],
        "single": latencies(lambda row: library.predict(row, k), singles),
        "peak": peak,
    }


def first(job: dict[str, Any]) -> Measured:
    """Seconds from before this process existed until its first prediction was there."""
    library = open_library(job["library"], threads=job["threads"], seed=job["seed"])
    row = csr_matrix(load_npz(job["row"]))
    library.load(Path(job["model"]), **job["settings"])
    library.predict(library.prepare_rows(row), job["k"])
    return {"seconds": time.time() - job["started"]}


def _load(job: dict[str, Any], name: str) -> Any:
    return csr_matrix(load_npz(Path(job["matrices"]) / f"{name}.npz"))


if __name__ == "__main__":
    # scikit-learn imports pandas if it is there, 50 to 70 MB; no library under test needs it.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    job = json.loads(Path(sys.argv[1]).read_text())
    tasks = {"warm": warm, "train": train, "predict": predict, "first": first}
    measured = tasks[job["task"]](job)
    Path(job["measured"]).write_text(json.dumps(measured))
