"""Omikuji, through its Python binding.

The binding trains from a file and predicts one row of (feature, value) pairs per call. Reading the
file is left out of the clock; a batch is predicted by as many Python threads as there are cores,
which works because a call releases Python's lock.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import omikuji
from omikuji import _libomikuji
from scipy.sparse import csr_matrix

from harness.libraries.base import Answers, Library, from_pairs

Row = list[tuple[int, float]]


class Adapter(Library):
    """A forest; its trees are random, and the binding takes no seed."""

    def prepare_training(self, X: csr_matrix, Y: csr_matrix, folder: Path) -> Any:
        path = folder / "train.txt"
        given = np.diff(X.indptr) > 0  # a row without features makes it abort
        write_xmc(path, X[given], Y[given])
        self.pool = omikuji._ThreadPoolHandle(self.threads)
        name = _libomikuji.ffi.new("char[]", str(path).encode())
        data = _libomikuji.lib.load_omikuji_data_set(name, self.pool.ptr)
        path.unlink()
        return data

    def train(self, data: Any, folder: Path, **settings: Any) -> None:
        parameters = omikuji.Model.default_hyper_param()
        for name, value in settings.items():
            setattr(parameters, name, value)
        pointer = _libomikuji.lib.train_omikuji_model(data, parameters, self.pool.ptr)
        self.model = omikuji.Model(pointer)

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def load(self, folder: Path, *, beam: int = 10, densify: float | None = 0.1) -> None:
        self.beam = beam
        self.model = omikuji.Model.load(str(folder))
        self.model.init_prediction_thread_pool(self.threads)
        if densify is not None:
            self.model.densify_weights(densify)
        self.workers = ThreadPoolExecutor(self.threads)

    def prepare_rows(self, X: csr_matrix) -> list[Row]:
        return [list(zip(*row, strict=True)) for row in _rows(X)]

    def predict(self, rows: list[Row], k: int) -> list[list[tuple[int, float]]]:
        if self.threads == 1 or len(rows) == 1:
            return [self._predict_row(row, k) for row in rows]
        return list(self.workers.map(lambda row: self._predict_row(row, k), rows))

    def to_arrays(self, answers: list[list[tuple[int, float]]], k: int) -> Answers:
        return from_pairs(answers, k)

    def _predict_row(self, row: Row, k: int) -> list[tuple[int, float]]:
        return self.model.predict(row, beam_size=self.beam, top_k=k)


def write_xmc(path: Path, X: csr_matrix, Y: csr_matrix) -> None:
    """The Extreme Classification Repository's text format."""
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for x, y in zip(_rows(X), _rows(Y), strict=True):
            labels = ",".join(map(str, y[0]))
            file.write(f"{labels} {' '.join(f'{i}:{v:.7g}' for i, v in zip(*x, strict=True))}\n")


def _rows(matrix: csr_matrix) -> list[tuple[list[int], list[float]]]:
    parts = (np.split(array, matrix.indptr[1:-1]) for array in (matrix.indices, matrix.data))
    return [(i.tolist(), v.tolist()) for i, v in zip(*parts, strict=True)]
