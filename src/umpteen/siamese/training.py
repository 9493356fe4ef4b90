"""The modules one after the other, and the tower that they make."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix, diags
from torch import nn

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
from umpteen.siamese.loss import PairLoss
from umpteen.siamese.recipe import SiameseRecipe
from umpteen.siamese.refining import Refiner, SampleBatches, Starts
from umpteen.siamese.shortlist import hard_negatives
from umpteen.siamese.tower import SCALE, Tower, TrainedEncoder, log_odds
from umpteen.validation import unit_rows

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Losses = dict[str, list[float]]
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
        return cls(_canonical_units(X), _canonical_units(label_features), Y)

    def rows(
        self, chosen: Mask, texts: csr_matrix, without: npt.NDArray[np.int64]
    ) -> "TrainingSet":
        """Return some samples, `without` some labels: these are there, but no sample has them.

        Labels without `texts` get the centroid of the samples.
        """
        kept = np.ones(self.Y.shape[1], self.Y.dtype)
        kept[without] = 0
        X, Y = self.X[chosen], csr_matrix(self.Y[chosen] @ diags(kept))
        Y.eliminate_zeros()
        return TrainingSet(X, _canonical_units(complete(texts, X, Y)), Y)


@dataclass(frozen=True, eq=False)
class TrainedTower:
    """A tower, the losses of each module's epochs, and the tower as it was before Module IV.

    `hard` (samples, any) are the hard negatives of Module II, -1 for none.

    Indexes compare all labels, since few are asked before a tower is chosen.
    """

    tower: Tower
    losses: Losses
    before_joint: Tower | None
    hard: npt.NDArray[np.int32]


def train_tower(
    data: TrainingSet, table: FloatArray | None, settings: TowerSettings, seed: int
) -> TrainedTower:
    """Run the modules that are wanted; `table` is where the vectors of features begin."""
    with one_thread(), seeded(seed, settings.device):
        return _Trainer(data, settings, seed).run(table)


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

    def run(self, table: FloatArray | None) -> TrainedTower:
        losses: Losses = {}
        if table is not None:
            given = torch.from_numpy(np.flatnonzero(table.any(axis=1)))
            self.encoder.table.weight.data[given] = shared(table).to(self.settings.device)[given]
        if "embed" in self.modules:
            losses["embed"] = self._embed()
        tower = self._tower()
        starts = self._start(tower)
        hard = self._mine(tower)
        before_joint = None
        if "refine" in self.modules:
            losses["refine"], starts = self._refine("refine", starts, hard)
        if "joint" in self.modules:
            before_joint = self._tower(starts)
            losses["joint"], starts = self._refine("joint", starts, hard)
        return TrainedTower(self._tower(starts), losses, before_joint, hard)

    def _embed(self) -> list[float]:
        """Module I."""
        data, settings, recipe = self.data, self.settings, self.settings.recipe
        n_mined = _N_MINED if recipe.mine_every else 0
        network = PairNetwork(
            self.encoder, data.Y.shape[1], n_mined, kind=recipe.loss,
            likelihood=PairLoss(*recipe.likelihood), n_hardest=recipe.n_negatives,
        ).to(settings.device)  # fmt: skip
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
        recipe = settings.recipe
        learns_words = recipe.word_classifiers and recipe.weights == "learned"
        if "mine" not in self.modules or not (learns_words or self.modules & {"refine", "joint"}):
            return np.zeros((data.X.shape[0], 0), np.int32)
        indexes = [
            LabelIndex(vectors, method=settings.search, n_jobs=settings.n_jobs)  # type: ignore[arg-type]
            for vectors in (tower.texts, tower.centroids)
        ]
        n_each = -(-recipe.n_hard // 2)
        bags = tower.encoder.bags(data.X)
        return hard_negatives(indexes, bags, data.Y, n_each, settings.n_jobs)

    def _refine(
        self, module: str, starts: Starts, hard: npt.NDArray[np.int32]
    ) -> tuple[list[float], Starts]:
        """Module III, or IV if that is the `module`."""
        data, device, recipe = self.data, self.settings.device, self.settings.recipe
        fixed = _trained(self.encoder)
        network = Refiner(
            self.encoder,
            shared(fixed.bags(data.X)).to(device),
            shared(fixed.bags(data.label_features)).to(device),
            starts,
            PairLoss(*recipe.refine_likelihood),
            (data.X, data.label_features) if module == "joint" else None,
        ).to(device)
        batches = SampleBatches(
            data.Y, hard, n_random=recipe.n_random, corrected=self._is_logistic, device=device
        )
        size = min(_REFINE_BATCH, max(2, len(batches) // 8))
        epochs = recipe.joint_epochs if module == "joint" else recipe.refine_epochs
        losses = self._train(
            "Learning labels", module, network, batches, epochs, size, recipe.refine_learning_rate,
        )  # fmt: skip
        return losses, network.learned()

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

    @property
    def _is_logistic(self) -> bool:
        return self.settings.recipe.classifier == "logistic"

    def _start(self, tower: Tower) -> Starts:
        """What `start` says; the vectors of logistic labels are means, those of cosines shifts."""
        data, device = self.data, self.settings.device
        texts = tower.encoder.lift(tower.texts)
        if self.settings.recipe.start == "text":
            shifts, means = np.zeros_like(texts), texts
        else:
            lifted = tower.encoder.lift(tower.encoder.bags(data.X))
            shifts = mean_directions(data.Y, lifted)
            means = np.where(shifts.any(axis=1, keepdims=True), (texts + shifts) / 2, texts)
        if not self._is_logistic:
            return Starts(shared(shifts).to(device), None)
        odds = log_odds(data.Y.getnnz(axis=0), data.X.shape[0])[:, None] / np.float32(SCALE)
        return Starts(shared(means).to(device), shared(odds).to(device))

    def _tower(self, starts: Starts | None = None) -> Tower:
        data, fixed = self.data, _trained(self.encoder)
        has_samples = data.Y.getnnz(axis=0)[:, None] > 0  # others were negatives only
        texts = fixed.bags(data.label_features)
        own, biases = fixed.lift(texts), None
        if starts is not None and starts.biases is None:
            own = np.where(has_samples, own + starts.vectors.cpu().numpy(), own)
        elif starts is not None and starts.biases is not None:
            own = np.float32(SCALE) * np.where(has_samples, starts.vectors.cpu().numpy(), own)
            biases = np.float32(SCALE) * starts.biases[:, 0].cpu().numpy()
        centroids = centroids_of(fixed, data.X, data.Y)
        search = {"method": "exact", "n_jobs": self.settings.n_jobs}
        return Tower.of(fixed, texts, centroids, own, biases, **search)


def _trained(encoder: Encoder) -> TrainedEncoder:
    matrix = None if encoder.matrix is None else encoder.matrix.weight
    names = {activation: name for name, activation in ACTIVATIONS.items()}
    return TrainedEncoder(
        encoder.table.weight.detach().cpu().numpy().copy(),
        None if matrix is None else matrix.detach().cpu().numpy().copy(),
        names[encoder.activation],
    )


def _canonical_units(X: csr_matrix) -> csr_matrix:
    """Return rows of length 1, sorted and without zeros, so that sums always have the same bits."""
    ordered = csr_matrix(X, dtype=np.float32, copy=True)
    ordered.sum_duplicates()
    ordered.eliminate_zeros()
    return csr_matrix(unit_rows(ordered))
