"""Clocks and meters of one process, all its threads and its finished children."""

import gc
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAX_SINGLE_SECONDS = 30.0


@dataclass
class Stopwatch:
    """`with Stopwatch() as watch: ...` leaves `watch.wall` and `watch.cpu`, in seconds."""

    wall: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> "Stopwatch":
        self._start = time.perf_counter(), _cpu_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._start[0]
        self.cpu = _cpu_seconds() - self._start[1]


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def reset_peak() -> None:
    """Forget what was held before, where the system can (Linux)."""
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def file_megabytes() -> float:
    """The pages of files that this process holds, mostly code of libraries; 0 if unknown."""
    return _of_status("RssFile") or 0.0


def anonymous_megabytes() -> float:
    """What this process holds now without pages of files; 0 if unknown."""
    return _of_status("RssAnon") or 0.0


def peak_megabytes() -> float:
    """The most memory this process has held since it began or since `reset_peak`.

    Linux hands `ru_maxrss` down from the process that started this one; `VmHWM` starts afresh.
    """
    peak = _of_status("VmHWM")
    if peak is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS
    return peak


def _of_status(name: str) -> float | None:
    """A figure of this process in MB, where the system has such a file (Linux)."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [line for line in lines if line.startswith(f"{name}:")]
    return int(found[0].split()[1]) / 2**10 if found else None


def disk_megabytes(folder: Path) -> float:
    """The size of all files in `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def timed(call: Callable[[], Any], passes: int, budget: float) -> tuple[Any, list[Stopwatch]]:
    """What `call` gives, and the times of up to `passes` calls, quickest first.

    After `budget` seconds no further pass is started; there is always one.
    """
    watches: list[Stopwatch] = []
    while len(watches) < passes and sum(watch.wall for watch in watches) < budget:
        with Stopwatch() as watch:
            answers = call()
        watches.append(watch)
    return answers, sorted(watches, key=lambda watch: watch.wall)


def latencies(call: Callable[[Any], Any], rows: list[Any]) -> dict[str, float]:
    """Median and 99th percentile, in milliseconds, of `call` on one row after another."""
    milliseconds = []
    stop = time.perf_counter() + MAX_SINGLE_SECONDS
    for row in rows:
        start = time.perf_counter()
        call(row)
        end = time.perf_counter()
        milliseconds.append(1e3 * (end - start))
        if end > stop:
            break
    p50, p99 = np.percentile(milliseconds, [50, 99])
    return {"p50": float(p50), "p99": float(p99)}
