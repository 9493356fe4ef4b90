"""How fast a model of 1 GB is saved and opened: `python benchmarks/storage.py [gigabytes]`."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.storage import storable

N_LABELS = 1_000_000
N_FEATURES = 100_000


@storable
@dataclass
class Weights:
    """Half of the bytes dense, half sparse, and a million names."""

    dense: npt.NDArray[np.float32]
    sparse: csr_matrix
    names: list[str]


def example(n_bytes: int) -> Weights:
    rng = np.random.default_rng(0)
    per_row = n_bytes // 2 // 8 // N_LABELS
    indices = rng.integers(0, N_FEATURES, N_LABELS * per_row, dtype=np.int32)
    indices.reshape(N_LABELS, per_row).sort(axis=1)
    indptr = np.arange(0, len(indices) + 1, per_row, dtype=np.int32)
    values = rng.random(len(indices), dtype=np.float32)
    return Weights(
        dense=rng.random((n_bytes // 2 // 4 // 256, 256), dtype=np.float32),
        sparse=csr_matrix((values, indices, indptr), shape=(N_LABELS, N_FEATURES)),
        names=[f"label number {i}" for i in range(N_LABELS)],
    )


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main(gigabytes: float) -> None:
    model = example(int(gigabytes * 1e9))
    with TemporaryDirectory() as folder:
        seconds = timed(lambda: um.save(model, folder))
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e9
        print(
            f"save, synced to disk   {seconds:7.3f} s   {size / seconds:6.2f} GB/s   {size:.2f} GB"
        )
        for name, options in {
            "open, mapped": {},
            "open, mapped, verified": {"verify": True},
            "open, read": {"mmap": False},
        }.items():
            seconds = min(timed(lambda o=options: um.load(folder, **o)) for _ in range(3))  # type: ignore[misc]
            print(f"{name:22} {seconds:7.3f} s")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
