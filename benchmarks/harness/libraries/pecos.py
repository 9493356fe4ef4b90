"""PECOS XR-Linear (libpecos)."""

from pathlib import Path
from typing import Any

from pecos.utils.smat_util import CsrEnsembler
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from scipy.sparse import csr_matrix

from harness.libraries.base import Answers, Library, from_csr


class Adapter(Library):
    """One model, or several whose trees differ by seed and whose scores are averaged."""

    def prepare_training(self, X: csr_matrix, Y: csr_matrix, folder: Path) -> Any:
        return X, Y, Y.tocsc()

    def train(self, data: Any, folder: Path, *, n_models: int = 1, **settings: Any) -> None:
        X, Y, Y_columns = data
        label_features = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=self.threads)
        self.models = []
        for number in range(n_models):
            clusters = Indexer.gen(label_features, seed=self.seed + number, threads=self.threads)
            model = XLinearModel.train(X, Y_columns, C=clusters, threads=self.threads, **settings)
            self.models.append(model)

    def save(self, folder: Path) -> None:
        for number, model in enumerate(self.models):
            model.save(str(folder / str(number)))

    def load(self, folder: Path, *, beam: int = 10, chunks: str = "BINARY_SEARCH_CHUNKED") -> None:
        self.beam = beam
        self.models = [
            XLinearModel.load(str(path), is_predict_only=True, weight_matrix_type=chunks)
            for path in sorted(folder.iterdir())
        ]

    def predict(self, rows: csr_matrix, k: int) -> csr_matrix:
        # an average needs more than the k best of each
        top = k if len(self.models) == 1 else 4 * k
        options = {"beam_size": self.beam, "only_topk": top, "threads": self.threads}
        answers = [model.predict(rows, **options) for model in self.models]
        return answers[0] if len(answers) == 1 else CsrEnsembler.average(*answers)

    def to_arrays(self, answers: csr_matrix, k: int) -> Answers:
        return from_csr(answers, k)
