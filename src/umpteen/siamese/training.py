"""The modules one after the other, and the tower that they make."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from umpteen.neural.checkpoint import Keeper
from umpteen.neural.device import one_thread, seeded, shared
from umpteen.neural.optimizers import make_optimizers
from umpteen.neural.run import Run
from umpteen.neural.training import Settings, train
from umpteen.progress import Verbose, progress_bar
from umpteen.search import LabelIndex
from umpteen.siamese.embedding import LabelBatches, PairNetwork
from umpteen.siamese.encoder import ACTIVATIONS, Encoder
from umpteen.siamese.label_features import centroids_of, complete, mean_directions
from umpteen.siamese.recipe import SiameseRecipe
from umpteen.siamese.refining import Refiner, SampleBatches
from umpteen.siamese.shortlist import hard_negatives
from umpteen.siamese.tower import Tower, TrainedEncoder
from umpteen.validation import unit_rows

FloatArray = npt.NDArray[np.float32]
_N_MINED = 4  # hard negatives kept per label, of which each draw takes one
_REFINE_BATCH = 256


@dataclass(frozen=True)
class TowerSettings:
    """How to train a tower: parameters of `SiameseXML`, and where to write checkpoints."""

    recipe: SiameseRecipe
    dim: int
    epochs: int
    learning_rate: float
    search: str
    device: torch.device
    n_jobs: int | None
    verbose: Verbose
    keeper: Callable[[str], Keeper]  # of each module


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Samples, labels and which belong together; features have length 1."""

    X: csr_matrix
    label_features: csr_matrix
    Y: csr_matrix

    @classmethod
    def of(cls, X: csr_matrix, label_features: csr_matrix, Y: csr_matrix) -> "TrainingSet":
        """Make one from features of any length."""
        return cls(_units(X), _units(label_features), Y)

    def rows(self, chosen: npt.NDArray[np.bool_], texts: csr_matrix) -> "TrainingSet":
        """Return some samples; labels without `texts` get the centroid of these."""
        X, Y = self.X[chosen], csr_matrix(self.Y[chosen])
        return TrainingSet(X, _units(complete(texts, X, Y)), Y)


def train_tower(
    data: TrainingSet, table: FloatArray | None, settings: TowerSettings, seed: int
) -> tuple[Tower, dict[str, list[float]]]:
    """Run the modules that are wanted; return the tower, and the losses of each module's epochs.

    `table` is where the vectors of features begin. The tower's index compares all labels, since
    few are asked before it is complete.
    """
    with one_thread(), seeded(seed, settings.device):
        return _Trainer(data, settings, seed).run(table)


def completed(tower: Tower, part: TrainingSet, whole: TrainingSet, **search: Any) -> Tower:
    """Return a tower with the centroids of all samples, trained on some of them.

    Labels that none of these have are represented by their texts.
    """
    texts = tower.encoder.bags(whole.label_features)
    learned = part.Y.getnnz(axis=0)[:, None] > 0
    own = np.where(learned, tower.classifiers, tower.encoder.lift(texts))
    return Tower.of(
        tower.encoder, texts, centroids_of(tower.encoder, whole.X, whole.Y), own, **search
    )


class _Trainer:
    """One tower's modules, one after the other."""

    def __init__(self, data: TrainingSet, settings: TowerSettings, seed: int) -> None:
        recipe = settings.recipe
        self.data, self.settings, self.seed = data, settings, seed
        self.modules = set(recipe.modules)
        self.encoder = Encoder(
            data.X.shape[1], settings.dim,
            activation=recipe.activation, residual=recipe.residual, dropout=recipe.dropout,
        ).to(settings.device)  # fmt: skip

    def run(self, table: FloatArray | None) -> tuple[Tower, dict[str, list[float]]]:
        losses: dict[str, list[float]] = {}
        if table is not None:
            self.encoder.table.weight.data.copy_(shared(table))
        if "embed" in self.modules:
            losses["embed"] = self._embed()
        tower = self._tower()
        shifts = self._start(tower)
        hard = self._mine(tower)
        for module in ("refine", "joint"):
            if module in self.modules:
                losses[module], shifts = self._refine(module, shifts, hard)
        if self.modules & {"refine", "joint"} or self.settings.recipe.start != "text":
            tower = self._tower(shifts)
        return tower, losses

    def _embed(self) -> list[float]:
        """Module I."""
        data, settings, recipe = self.data, self.settings, self.settings.recipe
        n_mined = _N_MINED if recipe.mine_every else 0
        network = PairNetwork(
            self.encoder, data.Y.shape[1], n_mined, loss=recipe.loss, n_hardest=recipe.n_negatives
        ).to(settings.device)
        batches = LabelBatches(
            data.X, data.label_features, data.Y, network, power=recipe.label_power,
            mine_every=max(1, recipe.mine_every), device=settings.device, n_jobs=settings.n_jobs,
        )  # fmt: skip
        size = min(recipe.batch_size, max(2, int(np.count_nonzero(batches.counts)) // 2))
        return self._train(
            "Learning texts", "embed", network, batches, settings.epochs, size,
            settings.learning_rate,
        )  # fmt: skip

    def _mine(self, tower: Tower) -> npt.NDArray[np.int32]:
        """Module II: hard negatives for the modules that learn from them."""
        data, settings = self.data, self.settings
        if "mine" not in self.modules or not self.modules & {"refine", "joint"}:
            return np.zeros((data.X.shape[0], 0), np.int32)
        indexes = [
            LabelIndex(vectors, method=settings.search, n_jobs=settings.n_jobs)  # type: ignore[arg-type]
            for vectors in (tower.texts, tower.centroids)
        ]
        n_each = max(1, settings.recipe.shortlist // 2)
        return hard_negatives(indexes, tower.encoder.bags(data.X), data.Y, n_each)

    def _refine(
        self, module: str, shifts: Tensor, hard: npt.NDArray[np.int32]
    ) -> tuple[list[float], Tensor]:
        """Module III, or IV if that is the `module`."""
        data, device, recipe = self.data, self.settings.device, self.settings.recipe
        fixed = _trained(self.encoder)
        network = Refiner(
            self.encoder,
            shared(fixed.bags(data.X)).to(device),
            shared(fixed.bags(data.label_features)).to(device),
            shifts,
            (data.X, data.label_features) if module == "joint" else None,
        ).to(device)
        batches = SampleBatches(data.Y, hard, n_random=max(1, recipe.shortlist // 5), device=device)
        size = min(_REFINE_BATCH, max(2, len(batches) // 8))
        losses = self._train(
            "Learning labels", module, network, batches, recipe.refine_epochs, size,
            recipe.refine_learning_rate,
        )  # fmt: skip
        return losses, network.shifts.weight.detach()

    def _train(
        self, title: str, module: str, network: nn.Module, batches: Any, epochs: int,
        batch_size: int, learning_rate: float,
    ) -> list[float]:  # fmt: skip
        if epochs == 0:
            return []
        settings = Settings(
            epochs=epochs, max_seconds=None, batch_size=batch_size, learning_rate=learning_rate,
            schedule="cosine", warmup=0.0, clip=None, averaging=0.0, patience=1, seed=self.seed,
        )  # fmt: skip
        run = Run(network, make_optimizers(network, "adamw", learning_rate, 0.0))  # type: ignore[arg-type]
        keeper = self.settings.keeper(module)
        keeper.begin(run, self.seed, self.settings.device)
        total = epochs * batches.n_batches(batch_size)
        with progress_bar(title, total, verbose=self.settings.verbose) as bar:
            train(run, batches, None, settings, keeper, bar)
        network.eval()
        return run.counters.losses

    def _start(self, tower: Tower) -> Tensor:
        """The shifts before training: none, or (`start="centroid"`) towards the labels' samples."""
        device = self.settings.device
        if self.settings.recipe.start == "text":
            return torch.zeros((self.data.Y.shape[1], self.settings.dim), device=device)
        lifted = tower.encoder.lift(tower.encoder.bags(self.data.X))
        return shared(mean_directions(self.data.Y, lifted)).to(device)

    def _tower(self, shifts: Tensor | None = None) -> Tower:
        data, fixed = self.data, _trained(self.encoder)
        texts = fixed.bags(data.label_features)
        lifted = fixed.lift(texts)
        moved = lifted
        if shifts is not None:  # a label without samples was a negative only: it stays at its text
            has_samples = data.Y.getnnz(axis=0)[:, None] > 0
            moved = np.where(has_samples, lifted + shifts.cpu().numpy(), lifted)
        centroids = centroids_of(fixed, data.X, data.Y)
        return Tower.of(fixed, texts, centroids, moved, method="exact", n_jobs=self.settings.n_jobs)


def _trained(encoder: Encoder) -> TrainedEncoder:
    matrix = None if encoder.matrix is None else encoder.matrix.weight
    names = {activation: name for name, activation in ACTIVATIONS.items()}
    return TrainedEncoder(
        encoder.table.weight.detach().cpu().numpy().copy(),
        None if matrix is None else matrix.detach().cpu().numpy().copy(),
        names[encoder.activation],
    )


def _units(X: csr_matrix) -> csr_matrix:
    """Rows of length 1, in the same order and without zeros: sums then have the same bits."""
    ordered = csr_matrix(X, dtype=np.float32, copy=True)
    ordered.sum_duplicates()
    ordered.eliminate_zeros()
    return csr_matrix(unit_rows(ordered))
