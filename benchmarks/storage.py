"""How fast models of 20 MB and 1 GB are saved and opened: `python benchmarks/storage.py [MB ...]`.

The model is a `LabelTree` with as many trees as make up the size: nearly all of it are arrays that
compiled code uses as indices, so that opening it checks nearly all. "cold" is after the operating
system forgot the files, where it can be told to (on Linux, by root).
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import umpteen as um

OPENED: dict[str, dict[str, Any]] = {
    "opened by default": {},
    "opened without checksums": {"verify": False},
    "opened with checksums": {"verify": True},
    "read into memory": {"mmap": False},
}
FORGET = Path("/proc/sys/vm/drop_caches")


def example(n_bytes: float) -> um.LabelTree:
    data = um.data.make_extreme(
        n_samples=20_000, n_features=50_000, n_labels=10_000, random_state=0
    )
    model = um.LabelTree(random_state=0).fit(data.train.X, data.train.Y)
    (tree,) = model.trees_
    arrays = [*vars(tree).values(), *vars(tree.hierarchy).values()]
    size = sum(getattr(array, "nbytes", 0) for array in arrays)
    model.trees_ = [tree] * max(1, round(n_bytes / size))
    return model


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def forget() -> bool:
    """Have the files read from disk again; whether that was possible."""
    try:
        FORGET.write_text("1")
    except OSError:
        return False
    return True


def measure(megabytes: float) -> None:
    model = example(megabytes * 1e6)
    with TemporaryDirectory() as folder:
        seconds = timed(lambda: um.save(model, folder))
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        print(f"\n{size:,.0f} MB\nsaved, synced to disk      {seconds * 1000:9,.1f} ms")
        for name, options in OPENED.items():
            warm = min(timed(lambda o=options: um.load(folder, **o)) for _ in range(5))  # type: ignore[misc]
            cold = timed(lambda o=options: um.load(folder, **o)) if forget() else float("nan")  # type: ignore[misc]
            print(f"{name:26} {warm * 1000:9,.1f} ms   cold {cold * 1000:9,.1f} ms")


if __name__ == "__main__":
    for megabytes in map(float, sys.argv[1:] or ["20", "1000"]):
        measure(megabytes)
