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
from umpteen.siamese.embedding import Goal, LabelBatches, PairNetwork
from umpteen.siamese.encoder import ACTIVATIONS, Encoder
from umpteen.siamese.label_features import centroids_of, complete, mean_directions
from umpteen.siamese.refining import Refiner, SampleBatches
from umpteen.siamese.shortlist import hard_negatives
from umpteen.siamese.tower import Tower, TrainedEncoder
from umpteen.validation import unit_rows

FloatArray = npt.NDArray[np.float32]
MODULES = ("embed", "mine", "refine", "joint")


@dataclass(frozen=True)
class Plan:
    """How to train; what `SiameseXML` says of its parameters of the same names."""

    modules: tuple[str, ...]
    dim: int
    activation: str
    residual: bool
    dropout: float
    goal: Goal
    epochs: int
    batch_size: int
    learning_rate: float
    power: float
    mine_every: int
    n_mined: int
    refine_epochs: int
    refine_batch_size: int
    refine_learning_rate: float
    shortlist: int
    n_random: int
    start: str
    search: str
    device: torch.device
    n_jobs: int | None
    verbose: Verbose
    keeper: Callable[[str], Keeper]


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples and labels: features of length 1, and which belong together."""

    X: csr_matrix
    label_features: csr_matrix
    Y: csr_matrix

    @classmethod
    def of(cls, X: csr_matrix, label_features: csr_matrix, Y: csr_matrix) -> "Problem":
        """From features of any length."""
        return cls(_units(X), _units(label_features), Y)

    def rows(self, chosen: npt.NDArray[np.bool_], texts: csr_matrix) -> "Problem":
        """Some samples; labels that say nothing of themselves (`texts`) are completed by these."""
        X, Y = self.X[chosen], csr_matrix(self.Y[chosen])
        return Problem(X, _units(complete(texts, X, Y)), Y)


def train_tower(
    problem: Problem, table: FloatArray | None, plan: Plan, seed: int
) -> tuple[Tower, dict[str, list[float]]]:
    """Run the modules that are wanted; the tower, and the losses of each module's epochs.

    Its index compares all labels: few are asked before it is done.
    """
    losses: dict[str, list[float]] = {}
    with one_thread(), seeded(seed, plan.device):
        encoder = Encoder(
            problem.X.shape[1], plan.dim,
            activation=plan.activation, residual=plan.residual, dropout=plan.dropout,
        ).to(plan.device)  # fmt: skip
        if table is not None:
            encoder.table.weight.data.copy_(shared(table))
        if "embed" in plan.modules:
            losses["embed"] = _embed(problem, encoder, plan, seed)
        tower = _tower(problem, encoder, plan)
        shifts = _start(tower, problem, plan)
        hard = np.zeros((problem.X.shape[0], 0), np.int32)
        if "mine" in plan.modules and {"refine", "joint"} & set(plan.modules):
            bags = tower.encoder.bags(problem.X)
            n_each = max(1, plan.shortlist // 2)
            indexes = [
                LabelIndex(vectors, method=plan.search, n_jobs=plan.n_jobs)  # type: ignore[arg-type]
                for vectors in (tower.texts, tower.centroids)
            ]
            hard = hard_negatives(indexes, bags, problem.Y, n_each)
        for module in ("refine", "joint"):
            if module in plan.modules:
                losses[module], shifts = _refine(module, problem, encoder, shifts, hard, plan, seed)
        if {"refine", "joint"} & set(plan.modules) or plan.start != "text":
            tower = _tower(problem, encoder, plan, shifts)
    return tower, losses


def _embed(problem: Problem, encoder: Encoder, plan: Plan, seed: int) -> list[float]:
    """Module I."""
    network = PairNetwork(encoder, problem.Y.shape[1], plan.n_mined, plan.goal).to(plan.device)
    batches = LabelBatches(
        problem.X, problem.label_features, problem.Y, network,
        power=plan.power, mine_every=plan.mine_every, device=plan.device, n_jobs=plan.n_jobs,
    )  # fmt: skip
    n_labels = int(np.count_nonzero(batches.counts))
    size = min(plan.batch_size, max(2, n_labels // 2))
    settings = _settings(plan.epochs, size, plan.learning_rate, seed)
    return _train("Learning texts", "embed", network, batches, settings, plan)


def _refine(
    module: str,
    problem: Problem,
    encoder: Encoder,
    shifts: Tensor,
    hard: npt.NDArray[np.int32],
    plan: Plan,
    seed: int,
) -> tuple[list[float], Tensor]:
    """Module III, or IV if that is the `module`."""
    fixed = _trained(encoder)
    network = Refiner(
        encoder,
        shared(fixed.bags(problem.X)).to(plan.device),
        shared(fixed.bags(problem.label_features)).to(plan.device),
        shifts,
        (problem.X, problem.label_features) if module == "joint" else None,
    ).to(plan.device)
    batches = SampleBatches(problem.Y, hard, n_random=plan.n_random, device=plan.device)
    size = min(plan.refine_batch_size, max(2, len(batches) // 8))
    settings = _settings(plan.refine_epochs, size, plan.refine_learning_rate, seed)
    losses = _train("Learning labels", module, network, batches, settings, plan)
    return losses, network.shifts.weight.detach()


def _train(
    title: str, module: str, network: nn.Module, batches: Any, settings: Settings, plan: Plan
) -> list[float]:
    if settings.epochs == 0:
        return []
    optimizers = make_optimizers(network, "adamw", settings.learning_rate, 0.0)
    run = Run(network, optimizers)  # type: ignore[arg-type]
    keeper = plan.keeper(module)
    keeper.begin(run, settings.seed, plan.device)
    total = settings.epochs * batches.n_batches(settings.batch_size)
    with progress_bar(title, total, verbose=plan.verbose) as bar:
        train(run, batches, None, settings, keeper, bar)
    network.eval()
    return run.counters.losses


def _settings(epochs: int, batch_size: int, learning_rate: float, seed: int) -> Settings:
    return Settings(
        epochs=epochs, max_seconds=None, batch_size=batch_size, learning_rate=learning_rate,
        schedule="cosine", warmup=0.0, clip=None, averaging=0.0, patience=1, seed=seed,
    )  # fmt: skip


def _start(tower: Tower, problem: Problem, plan: Plan) -> Tensor:
    """The shifts before training: none, or (`start="centroid"`) towards the labels' samples."""
    shape = (problem.Y.shape[1], plan.dim)
    if plan.start == "text":
        return torch.zeros(shape, device=plan.device)
    lifted = tower.encoder.lift(tower.encoder.bags(problem.X))
    return shared(mean_directions(problem.Y, lifted)).to(plan.device)


def _tower(problem: Problem, encoder: Encoder, plan: Plan, shifts: Tensor | None = None) -> Tower:
    fixed = _trained(encoder)
    texts = fixed.bags(problem.label_features)
    lifted = fixed.lift(texts)
    moved = lifted
    if shifts is not None:  # a label without samples was a negative only: it stays at its text
        has_samples = problem.Y.getnnz(axis=0)[:, None] > 0
        moved = np.where(has_samples, lifted + shifts.cpu().numpy(), lifted)
    centroids = centroids_of(fixed, problem.X, problem.Y)
    return Tower.of(fixed, texts, centroids, moved, method="exact", n_jobs=plan.n_jobs)


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
