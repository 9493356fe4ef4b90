"""This library, as it is installed without extras."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scipy.sparse import csr_matrix
from scipy.sparse import random as random_matrix

sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]  # extras have it: 67 MB, if there

import umpteen as um  # noqa: E402
from harness.libraries.base import Answers, Library  # noqa: E402


class Adapter(Library):
    """`corner` names one of `LabelTree`'s published corners; without it, plain `LabelTree()`."""

    def warm_up(self, **settings: Any) -> None:
        """As much data as it takes to grow a tree; a model read from disk compiles anew."""
        X = random_matrix(300, 40, density=0.3, format="csr", dtype="float32", random_state=0)
        Y = random_matrix(300, 250, density=0.02, format="csr", dtype="float32", random_state=1)
        model = self._new(**settings).fit(X, Y)
        with TemporaryDirectory() as scratch:
            model.save(Path(scratch) / "model")
            for ready in (model, um.load(Path(scratch) / "model")):
                ready.predict_topk(X, k=5)
                ready.predict_topk(X[0], k=5)

    def prepare_training(self, X: csr_matrix, Y: csr_matrix, folder: Path) -> Any:
        return X, Y

    def train(self, data: Any, folder: Path, **settings: Any) -> None:
        self.model = self._new(**settings).fit(*data)

    def save(self, folder: Path) -> None:
        self.model.save(folder)

    def load(self, folder: Path, **settings: Any) -> None:
        self.model = um.load(folder)
        self.model.set_params(n_jobs=self.threads, **settings)

    def predict(self, rows: csr_matrix, k: int) -> um.TopK:
        return self.model.predict_topk(rows, k=k)

    def to_arrays(self, answers: um.TopK, k: int) -> Answers:
        return answers.labels, answers.scores

    def _new(self, *, corner: str | None = None, **settings: Any) -> Any:
        make = getattr(um.LabelTree, corner) if corner else um.LabelTree
        return make(n_jobs=self.threads, random_state=self.seed, **settings)
