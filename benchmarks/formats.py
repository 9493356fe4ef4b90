"""Reading the repository's text format, side by side with scikit-learn's svmlight reader.

`python benchmarks/formats.py [megabytes]`: a made file, plain and gzipped, and the delicious set
where `$UMPTEEN_DATA` has it. scikit-learn gets the same rows without the header line. The two
take turns in one process; the best of three counts. Memory is the peak of a fresh process.
"""

import gzip
import io
import lzma
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness.measure import peak_megabytes
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_svmlight_file

import umpteen as um

REPEATS = 3
N_FEATURES, N_LABELS = 500_000, 100_000


def main(megabytes: int = 150) -> None:
    """Make the files, time both readers on each, print the table."""
    table = Table("file", "MB", "reader", "seconds", "MB/s", "peak MB", "faster")
    with tempfile.TemporaryDirectory() as folder:
        made = make_file(Path(folder) / "made.xmc.txt", megabytes)
        pairs = [without_header(made), compressed(*without_header(made))]
        delicious = Path(os.environ.get("UMPTEEN_DATA", "")) / "delicious" / "train.xmc.txt.xz"
        if delicious.exists():
            plain = Path(folder) / "delicious.xmc.txt"
            plain.write_bytes(lzma.decompress(delicious.read_bytes()))
            pairs.append(without_header(plain))
        for ours, theirs in pairs:
            compare(table, ours, theirs)
    Console().print(table)


def compare(table: Table, ours: Path, theirs: Path) -> None:
    """Two rows of the table, once both are known to read the same."""
    check_same(ours, theirs)
    seconds = {read_ours: np.inf, read_theirs: np.inf}
    for _ in range(REPEATS):
        for reader, path in ((read_ours, ours), (read_theirs, theirs)):
            start = time.perf_counter()
            reader(path)
            seconds[reader] = min(seconds[reader], time.perf_counter() - start)
    size = len(unpacked(ours)) / 1e6
    for reader, path in ((read_ours, ours), (read_theirs, theirs)):
        ratio = seconds[read_theirs] / seconds[reader]
        figures = (seconds[reader], size / seconds[reader], peak_memory(reader, path), ratio)
        formats = ("{:.2f}", "{:.0f}", "{:.0f}", "{:.1f}x")
        texts = [text.format(x) for text, x in zip(formats, figures, strict=True)]
        table.add_row(ours.name, f"{size:.0f}", NAMES[reader], *texts)


def read_ours(path: Path) -> tuple:
    """Features and labels, as this library reads them."""
    samples = um.data.read(path)
    return samples.X, samples.Y


def read_theirs(path: Path) -> tuple:
    """Features and labels, as scikit-learn reads them."""
    return load_svmlight_file(str(path), multilabel=True, zero_based=True)


NAMES = {read_ours: "umpteen", read_theirs: "scikit-learn"}


def check_same(ours: Path, theirs: Path) -> None:
    """Both readers find the same features and labels."""
    (X, Y), (X_theirs, Y_theirs) = read_ours(ours), read_theirs(theirs)
    assert np.array_equal(X.indices, X_theirs.indices)
    assert np.array_equal(X.data, X_theirs.data.astype(np.float32))
    assert Y.indices.tolist() == [int(label) for row in Y_theirs for label in sorted(row)]


def make_file(path: Path, megabytes: int) -> Path:
    """Rows with about 5 labels and 60 features, as in the text sets of the repository."""
    rng = np.random.default_rng(0)
    n_rows = megabytes * 1_000_000 // 1050
    with path.open("w") as file:
        file.write(f"{n_rows} {N_FEATURES} {N_LABELS}\n")
        for _ in range(n_rows):
            labels = np.unique(rng.integers(N_LABELS, size=rng.integers(1, 10)))
            features = np.unique(rng.integers(N_FEATURES, size=rng.integers(30, 90)))
            values = rng.random(len(features)).tolist()
            pairs = zip(features.tolist(), values, strict=True)
            row = " ".join(f"{feature}:{value:.6f}" for feature, value in pairs)
            file.write(",".join(map(str, labels.tolist())) + " " + row + "\n")
    return path


def without_header(path: Path) -> tuple[Path, Path]:
    """The file and its rows alone, as scikit-learn wants them."""
    body = path.with_suffix(".svm")
    with path.open("rb") as whole, body.open("wb") as rows:
        whole.readline()
        shutil.copyfileobj(whole, rows)
    return path, body


def compressed(*paths: Path) -> tuple[Path, ...]:
    """The same files, gzipped."""
    for path in paths:
        with gzip.open(f"{path}.gz", "wb", compresslevel=5) as file:
            file.write(path.read_bytes())
    return tuple(Path(f"{path}.gz") for path in paths)


def unpacked(path: Path) -> bytes:
    """The bytes of a file, gzipped or not."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def peak_memory(reader: Callable[[Path], tuple], path: Path) -> float:
    """Megabytes that reading adds to a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_added_memory, (reader, path))


def _added_memory(reader: Callable[[Path], tuple], path: Path) -> float:
    um.data.read(io.BytesIO(b"1 1 1\n0 0:1\n"))  # the compiler's memory is not the reader's
    before = peak_megabytes()
    reader(path)
    return peak_megabytes() - before


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
