"""Runs jobs, each in a fresh process, and gathers what they measured."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import save_npz

from harness.accuracy import accuracy
from harness.environment import BENCHMARKS, PEERS_HOME, python_of, variables
from harness.matrices import Matrices
from harness.measure import disk_megabytes
from harness.systems import System
from umpteen import TopK

KERNELS = PEERS_HOME / "kernels"
K = 5
SINGLE_ROWS = 300
ONE_THREAD_ROWS = 5_000
PASSES = 3
PASS_BUDGET = 20.0

Figures = dict[str, Any]

_compiled: set[str] = set()


class JobError(Exception):
    """A worker did not finish; the message says why in one line."""


@dataclass
class Round:
    """One repeat on one data set: every model is trained once, in folders of its own."""

    matrices: Matrices
    seed: int
    timeout: float
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    trained: dict[str, Figures | JobError] = field(default_factory=dict)

    def run(self, system: System) -> tuple[Figures, str | None]:
        """What was measured of `system`, and why no more where something failed."""
        parts = self.training, self.prediction, self.one_thread, self.first_prediction
        found, failure = self.gather(system, *parts)
        if found.get("p50_one", np.inf) < found.get("p50", 0):
            found |= {"p50": found["p50_one"], "p99": found["p99_one"]}
        return found, failure

    def gather(
        self, system: System, *parts: Callable[[System], Figures]
    ) -> tuple[Figures, str | None]:
        """The figures of some parts, up to the first that fails."""
        found: Figures = {}
        try:
            for part in parts:
                found |= part(system)
        except JobError as error:
            return found, str(error)
        return found, None

    def training(self, system: System) -> Figures:
        """Times, memory and the model's size; systems that share a model share its training."""
        if system.model not in self.trained:
            try:
                self.trained[system.model] = self._train_anew(system)
            except JobError as error:
                self.trained[system.model] = error
        result = self.trained[system.model]
        if isinstance(result, JobError):
            raise result
        return result

    def _train_anew(self, system: System) -> Figures:
        folder = self._model(system)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            job = {"task": "train", "settings": system.train, "scratch": scratch}
            if not system.is_peer and system.model not in _compiled:
                self._work(system, job | {"task": "warm"}, self.threads)
                _compiled.add(system.model)
            measured = self._work(system, job, self.threads)
        named = {f"train_{name}": value for name, value in measured.items()}
        return named | {"size": disk_megabytes(folder)}

    def prediction(self, system: System) -> Figures:
        """Of all test rows with all threads, of single rows, and how good the answers are."""
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            answers = Path(scratch) / "answers.npz"
            measured = self._predict(system, answers, self.threads)
            found = np.load(answers)
            top = TopK(found["labels"], found["scores"])
        return {
            "batch": measured["batch"][0],
            "batch_passes": measured["batch"],
            **measured["single"],
            "predict_peak": measured["peak"],
            "load": measured["load"],
            **accuracy(top, self.matrices["Y_test"], self.matrices["Y_train"]),
        }

    def one_thread(self, system: System) -> Figures:
        """Of the first test rows with one thread, and of single rows."""
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            measured = self._predict(system, Path(scratch) / "answers.npz", 1, ONE_THREAD_ROWS)
        return {
            "batch_one": measured["batch"][0],
            "batch_one_passes": measured["batch"],
            "batch_one_cpu": measured["batch_cpu"][0],
            **{f"{name}_one": value for name, value in measured["single"].items()},
        }

    def _predict(
        self, system: System, answers: Path, threads: int, rows: int | None = None
    ) -> Figures:
        limits = {"singles": SINGLE_ROWS, "passes": PASSES, "budget": PASS_BUDGET, "rows": rows}
        job = {"task": "predict", "settings": system.predict, "answers": str(answers)}
        return self._work(system, job | limits, threads)

    def first_prediction(self, system: System) -> Figures:
        """Seconds to a fresh process's first prediction, for us also without compiled kernels."""
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            row = Path(scratch) / "row.npz"
            save_npz(row, self.matrices["X_test"][0])
            job = {"task": "first", "settings": system.predict, "row": str(row)}
            times = {"first": self._work(system, job, self.threads)["seconds"]}
            if not system.is_peer:
                empty = Path(scratch) / "kernels"
                times["cold"] = self._work(system, job, self.threads, empty)["seconds"]
        return times

    def _model(self, system: System) -> Path:
        return PEERS_HOME / "models" / self.matrices.folder.name / system.model

    def _work(
        self, system: System, job: dict[str, Any], threads: int, kernels: Path = KERNELS
    ) -> Figures:
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            path, measured = Path(scratch) / "job.json", Path(scratch) / "measured.json"
            common = {
                "library": system.library,
                "matrices": str(self.matrices.folder),
                "model": str(self._model(system)),
                "measured": str(measured),
                "threads": threads,
                "seed": self.seed,
                "k": K,
                "started": time.time(),
            }
            path.write_text(json.dumps(common | job))
            _run(python_of(system.library), path, variables(threads, kernels), self.timeout)
            return json.loads(measured.read_text())


def _run(python: str, job: Path, environment: dict[str, str], timeout: float) -> None:
    command = [python, "-m", "harness.worker", str(job)]
    try:
        done = subprocess.run(
            command, cwd=BENCHMARKS, env=environment, timeout=timeout, capture_output=True
        )
    except subprocess.TimeoutExpired:
        raise JobError(f"stopped after {timeout:,.0f} s") from None
    except OSError as error:
        raise JobError(f"cannot start its interpreter: {error.strerror}") from None
    if done.returncode:
        raise JobError(reason(done.returncode, done.stderr.decode(errors="replace")))


def reason(code: int, stderr: str) -> str:
    """One line on why a process failed, without folders of this machine."""
    if code < 0:
        return f"killed by signal {-code}"
    lines = stderr.strip().splitlines() or [f"exit code {code}"]
    return re.sub(r"(/[^/\s'\"]+)+/", "", lines[-1])[:200]
