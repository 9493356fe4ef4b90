"""napkinXC's probabilistic label trees."""

from pathlib import Path
from typing import Any

from napkinxc.models import PLT
from scipy.sparse import csr_matrix

from harness.libraries.base import Answers, Library, from_pairs


class Adapter(Library):
    """It writes the model while it trains, so that its training time includes the writing."""

    def prepare_training(self, X: csr_matrix, Y: csr_matrix, folder: Path) -> Any:
        return X, Y

    def train(self, data: Any, folder: Path, **settings: Any) -> None:
        PLT(str(folder), threads=self.threads, seed=self.seed, **settings).fit(*data)

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path, **settings: Any) -> None:
        self.model = PLT(str(folder), threads=self.threads, **settings)
        self.model.load()

    def predict(self, rows: csr_matrix, k: int) -> list[list[tuple[int, float]]]:
        return self.model.predict_proba(rows, top_k=k)

    def to_arrays(self, answers: list[list[tuple[int, float]]], k: int) -> Answers:
        return from_pairs(answers, k)
