"""The matrices that every system trains and predicts on, made once and kept as npz."""

import json
import lzma
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, load_npz, save_npz
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

from umpteen.data import make_extreme

MAX_FEATURES = {"eurlex57k": 150_000, "debian-deps": 80_000, "wordnet-ancestors": 40_000}
SYNTHETIC = {"n_train": 100_000, "n_features": 50_000, "n_labels": 100_000}
QUICK = 10  # a quick run takes one row in so many
SETS = (*MAX_FEATURES, "synthetic")


@dataclass(frozen=True)
class Matrices:
    """One data set's folder: `X_train`, `Y_train`, `X_test`, `Y_test`, and more where known."""

    folder: Path

    def __getitem__(self, name: str) -> csr_matrix:
        return csr_matrix(load_npz(self.folder / f"{name}.npz"))

    @property
    def complete(self) -> bool:
        return (self.folder / "complete").exists()

    def begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def finish(self) -> None:
        (self.folder / "complete").touch()

    def save(self, name: str, matrix: csr_matrix) -> None:
        matrix = csr_matrix(matrix)
        matrix.sort_indices()
        save_npz(self.folder / f"{name}.npz", matrix, compressed=False)


def prepare(name: str, cache: Path, *, seed: int = 0, quick: bool = False) -> Matrices:
    """The matrices of data set `name`, made in `cache` unless they are already there."""
    if name == "synthetic":
        shape = {key: size // (QUICK if quick else 1) for key, size in SYNTHETIC.items()}
        return synthesise(cache, seed=seed, **shape)
    matrices = Matrices(cache / name)
    if not matrices.complete:
        matrices.begin()
        _vectorise(matrices, _data_folder() / name, MAX_FEATURES[name])
        matrices.finish()
    return _shrink(matrices) if quick else matrices


def synthesise(
    cache: Path, *, seed: int = 0, n_train: int, n_test: int = 10_000, **shape: float
) -> Matrices:
    """Made-up data of the given shape, made in `cache` unless it is already there."""
    name = "-".join(f"{value:g}" for value in (n_train, n_test, *shape.values(), seed))
    matrices = Matrices(cache / f"synthetic-{name}")
    if not matrices.complete:
        matrices.begin()
        n_samples = n_train + n_test
        data = make_extreme(n_samples, test_fraction=n_test / n_samples, random_state=seed, **shape)
        for split, part in (("train", data.train), ("test", data.test)):
            matrices.save(f"X_{split}", part.X)
            matrices.save(f"Y_{split}", part.Y)
        matrices.finish()
    return matrices


def _data_folder() -> Path:
    folder = os.environ.get("UMPTEEN_DATA")
    if not folder:
        raise SystemExit("Set UMPTEEN_DATA to the folder that holds the data sets' folders.")
    return Path(folder)


def _vectorise(matrices: Matrices, source: Path, max_features: int) -> None:
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, min_df=2, max_features=max_features, dtype=np.float32
    )
    binarizer = MultiLabelBinarizer(sparse_output=True)
    train = _read(source / "train.jsonl.xz")
    matrices.save("X_train", vectorizer.fit_transform(row["text"] for row in train))
    matrices.save("Y_train", _indicator(binarizer.fit([row["labels"] for row in train]), train))
    for split in ("dev", "test"):
        if (path := source / f"{split}.jsonl.xz").exists():
            rows = _read(path)
            matrices.save(f"X_{split}", vectorizer.transform(row["text"] for row in rows))
            matrices.save(f"Y_{split}", _indicator(binarizer, rows))
    texts = {row["label"]: row["text"] for row in _read(source / "labels.jsonl.xz")}
    matrices.save("Z", vectorizer.transform(texts.get(c, "") for c in binarizer.classes_))


def _read(path: Path) -> list[dict]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _indicator(binarizer: MultiLabelBinarizer, rows: list[dict]) -> csr_matrix:
    """The labels of `rows`, without those that no training row has."""
    known = set(binarizer.classes_)
    kept = [[label for label in row["labels"] if label in known] for row in rows]
    return csr_matrix(binarizer.transform(kept), dtype=np.float32)


def _shrink(matrices: Matrices) -> Matrices:
    """A small set out of a large one: its first rows, and the labels that those have."""
    small = Matrices(matrices.folder.with_name(f"{matrices.folder.name}-quick"))
    small.begin()
    n_train = matrices["Y_train"].shape[0] // QUICK
    used = np.flatnonzero(matrices["Y_train"][:n_train].getnnz(axis=0))
    for split in ("train", "test"):
        n_rows = matrices[f"Y_{split}"].shape[0] // QUICK
        small.save(f"X_{split}", matrices[f"X_{split}"][:n_rows])
        small.save(f"Y_{split}", matrices[f"Y_{split}"][:n_rows][:, used])
    return small
