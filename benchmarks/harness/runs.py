"""Runs jobs, each in a fresh process, and gathers what they measured."""

import json
import os
import shutil
import subprocess
import tempfile
import time
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

KERNELS = PEERS_HOME / "kernels"
K = 5
SINGLE_ROWS = 300
PASSES = 3
PASS_BUDGET = 20.0


class JobError(Exception):
    """A worker did not finish; the message says why in one line."""


@dataclass
class Round:
    """One repeat on one data set: every model is trained once, in folders of its own."""

    matrices: Matrices
    seed: int
    timeout: float
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    trained: dict[str, dict[str, float] | JobError] = field(default_factory=dict)

    def run(self, system: System) -> dict[str, Any]:
        """Everything measured of `system`; raises `JobError` where it failed."""
        training = self._train(system)
        every = self._predict(system, self.threads)
        one = self._predict(system, 1)
        single = min(every["single"], one["single"], key=lambda times: times["p50"])
        return {
            "train_cpu": training["cpu"],
            "train_wall": training["wall"],
            "batch": every["batch"],
            "batch_one": one["batch"],
            "batch_cpu": one["batch_cpu"],
            **single,
            "train_peak": training["peak"],
            "train_peak_before": training["peak_before"],
            "predict_peak": every["peak"],
            "size": disk_megabytes(self._model(system)),
            "load": every["load"],
            **self._first(system),
            **every["accuracy"],
        }

    def _train(self, system: System) -> dict[str, float]:
        if system.model not in self.trained:
            try:
                self.trained[system.model] = self._train_anew(system)
            except JobError as error:
                self.trained[system.model] = error
        result = self.trained[system.model]
        if isinstance(result, JobError):
            raise result
        return result

    def _train_anew(self, system: System) -> dict[str, float]:
        folder = self._model(system)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            job = {"task": "train", "settings": system.train, "scratch": scratch}
            if not system.is_peer:
                self._work(system, job | {"task": "warm"}, self.threads)
            return self._work(system, job, self.threads)

    def _predict(self, system: System, threads: int) -> dict[str, Any]:
        limits = {"singles": SINGLE_ROWS, "passes": PASSES, "budget": PASS_BUDGET}
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            answers = Path(scratch) / "answers.npz"
            job = {"task": "predict", "settings": system.predict, "answers": str(answers)}
            measured = self._work(system, job | limits, threads)
            labels = np.load(answers)["labels"]
        measured["accuracy"] = accuracy(labels, self.matrices["Y_test"], self.matrices["Y_train"])
        return measured

    def _first(self, system: System) -> dict[str, float]:
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
    ) -> dict[str, Any]:
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
        raise JobError(f"no answer after {timeout:,.0f} s") from None
    except OSError as error:
        raise JobError(f"cannot start its interpreter: {error.strerror}") from None
    if done.returncode:
        raise JobError(_reason(done.returncode, done.stderr.decode(errors="replace")))


def _reason(code: int, stderr: str) -> str:
    if code < 0:
        return f"killed by signal {-code}"
    lines = stderr.strip().splitlines() or [f"exit code {code}"]
    return lines[-1].replace(str(BENCHMARKS.parent), ".")[:200]
