"""One head of one size in a process of its own, for its peak of memory.

    python -m papers.multihead.worker HEAD N_LABELS STEPS THREADS

gives JSON. A process that would need more memory than there is fails instead of stalling others.
"""

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import torch

from umpteen.multihead import CascadeHead, ProductHead, SamplingHead
from umpteen.neural import FullHead, Head, Targets

FEATURES, BATCH, K = 512, 128, 5

HEADS: dict[str, Callable[[int], Head]] = {
    "full": lambda n: FullHead(FEATURES, n),
    "MHP": lambda n: ProductHead(FEATURES, n),
    "MHC": lambda n: CascadeHead(FEATURES, n, bias=False, sparse=True),
    "MHS": lambda n: SamplingHead(FEATURES, n, bias=False, sparse=True),
}


def measure(name: str, n_labels: int, steps: int) -> dict[str, float]:
    """Seconds and megabytes of a step and of the best five labels of a batch; medians.

    Features are random, the optimizer is plain SGD. Peaks are beyond what was held before the head
    was made.
    """
    torch.manual_seed(0)
    features = torch.randn(BATCH, FEATURES)
    targets = Targets.of_classes(torch.randint(n_labels, (BATCH,)))
    _reset_peak()
    before = _peak_megabytes()
    head = HEADS[name](n_labels)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        head(features, targets).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    step_seconds, step_peak = _seconds(step, steps), _peak_megabytes() - before
    optimizer.zero_grad()
    _reset_peak()
    with torch.inference_mode():
        answer_seconds = _seconds(lambda: head.topk(features, K), steps)
    return {
        "parameters": head.n_parameters,
        "weights": sum(each.numel() for each in head.parameters() if each.ndim > 1),
        "step": step_seconds,
        "answer": answer_seconds,
        "step_peak": step_peak,
        "answer_peak": _peak_megabytes() - before,
    }


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    """The median; the first time does not count."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times[1:])


def _reset_peak() -> None:
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_megabytes() -> float:
    """The most memory held since the start or `_reset_peak`."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS
    return _kilobytes(status, "VmHWM") / 2**10


def _limit_memory() -> None:
    """To what is free, where the system says so."""
    free = Path("/proc/meminfo")
    if free.exists():
        held = _kilobytes(Path("/proc/self/status"), "VmSize")
        limit = (held + int(0.9 * _kilobytes(free, "MemAvailable"))) * 2**10
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _kilobytes(path: Path, key: str) -> int:
    line = next(line for line in path.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1])


if __name__ == "__main__":
    _limit_memory()
    head_name, n, n_steps, n_threads = sys.argv[1:]
    torch.set_num_threads(int(n_threads))
    print(json.dumps(measure(head_name, int(n), int(n_steps))))
