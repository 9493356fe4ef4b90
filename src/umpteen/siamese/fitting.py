"""How a model is fitted: rankers on a validation split, then all the rest on all samples."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.neural.checkpoint import Keeper
from umpteen.neural.device import find_device
from umpteen.progress import Verbose
from umpteen.ranking import QuadraticRanker
from umpteen.siamese.lexical import LexicalIndex, index_of
from umpteen.siamese.prediction import Predictor
from umpteen.siamese.recipe import SiameseRecipe
from umpteen.siamese.tower import FloatArray, Tower
from umpteen.siamese.training import TowerSettings, TrainedTower, TrainingSet, train_tower
from umpteen.siamese.weighing import ValidationEvidence, hidden_pairs, newcomers
from umpteen.siamese.words import WordClassifiers
from umpteen.validation import as_csr, unit_rows

if TYPE_CHECKING:
    from umpteen.siamese.siamese_xml import SiameseXML

Mask = npt.NDArray[np.bool_]
_SPLIT, _SPLIT_SAMPLES, _LARGEST_SPLIT = 0.1, 1_000, 0.25  # shares, and samples to learn weights of


def split_share(n_samples: int) -> float:
    """Return the share of the validation split; it is larger if there are few samples.

    >>> split_share(2_000), split_share(100_000)
    (0.25, 0.1)
    """
    return max(_SPLIT, min(_LARGEST_SPLIT, _SPLIT_SAMPLES / n_samples))


def counts_of(Y: csr_matrix) -> npt.NDArray[np.int64]:
    """Return the number of samples of each label."""
    return np.asarray(Y.getnnz(axis=0), np.int64)


@dataclass(frozen=True, eq=False)
class FittedParts:
    """The parts of a fitted model, learned from all samples.

    There are rankers, classifiers of words and learned texts only if there was a validation split.
    """

    towers: list[TrainedTower]
    evidence: ValidationEvidence | None = None
    ranker: QuadraticRanker | None = None
    newcomer_ranker: QuadraticRanker | None = None
    words: WordClassifiers | None = None
    learned_texts: csr_matrix | None = None


@dataclass(frozen=True, eq=False)
class Fitting:
    """The settings of a fit, and where it starts."""

    settings: Callable[[SiameseRecipe, str], TowerSettings]  # of a recipe, and the tower's name
    recipe: SiameseRecipe
    n_models: int
    n_jobs: int | None
    verbose: Verbose
    texts: csr_matrix  # of labels, as they were given
    table: FloatArray | None  # initial vectors of features
    seed: int

    def run(self, whole: TrainingSet, split: Mask | None) -> FittedParts:
        """Learn from all samples, and the rankers from the split if there is one."""
        if split is None:
            return FittedParts(self._towers(whole, self.recipe, "whole"))
        evidence, keeps_joint = self._validated(whole, split)
        recipe = self.recipe
        if not keeps_joint:
            modules = tuple(name for name in recipe.modules if name != "joint")
            recipe = replace(recipe, modules=modules)
        towers = self._towers(whole, recipe, "whole")
        ranker = evidence.ranker()
        if ranker is None:
            return FittedParts(towers, evidence)
        return FittedParts(
            towers, evidence, ranker, evidence.newcomer_ranker(ranker), self.words(whole, towers),
            learned_texts(whole),
        )  # fmt: skip

    def words(self, data: TrainingSet, made: list[TrainedTower]) -> WordClassifiers | None:
        """Return classifiers of labels on single words, with the hard negatives of all towers."""
        recipe = self.recipe
        if not recipe.word_classifiers:
            return None
        hard = [each.hard for each in made]
        own = as_csr(unit_rows(self.texts)) if recipe.texts_as_samples else None
        return WordClassifiers.fitted(
            data.X, data.Y, hard, self.seed, self.n_jobs, self.verbose, own
        )

    def _validated(self, whole: TrainingSet, split: Mask) -> tuple[ValidationEvidence, bool]:
        """Return the evidence of towers without the split, and whether Module IV made it better.

        Some labels are hidden from these towers, so that the split shows how well labels without
        samples are found.
        """
        hidden = newcomers(whole.Y[~split], self.texts, self.seed)
        part = whole.rows(~split, self.texts, hidden)
        made = self._towers(part, self.recipe, "part")
        counts, Y = counts_of(part.Y), csr_matrix(whole.Y[split])
        lexical = LexicalIndex(part.label_features, counts)
        words, learned = self.words(part, made), index_of(learned_texts(part), lexical)

        def evidence(towers: list[Tower]) -> ValidationEvidence:
            predictor = Predictor(
                towers, lexical, words, learned, int(self.recipe.shortlist), True, None,
                self.n_jobs, self.verbose,
            )  # fmt: skip
            further = hidden_pairs(predictor, part.X, csr_matrix(whole.Y[~split]), hidden)
            return ValidationEvidence.of(predictor, whole.X[split], Y, counts, hidden, further)

        found = evidence([each.tower for each in made])
        earlier = [each.before_joint for each in made if each.before_joint is not None]
        if not earlier:
            return found, True
        before = evidence(earlier)
        better = found.quality() > before.quality()
        return (found if better else before), better

    def _towers(self, data: TrainingSet, recipe: SiameseRecipe, stage: str) -> list[TrainedTower]:
        return [
            train_tower(
                data, self.table, self.settings(recipe, f"{stage}-{number}"), self.seed + number
            )
            for number in range(self.n_models)
        ]


def tower_settings(
    model: "SiameseXML", mark: str, recipe: SiameseRecipe, name: str
) -> TowerSettings:
    """Return the settings of a model for training one tower, whose checkpoints have this name."""

    def keeper(module: str) -> Keeper:
        if model.checkpoint is None:
            return Keeper(None, recipe.checkpoint_every)
        folder = Path(model.checkpoint) / f"{name}-{module}"
        return Keeper(folder, recipe.checkpoint_every, mark)

    return TowerSettings(
        recipe=recipe, dim=model.dim, epochs=model.epochs, learning_rate=model.learning_rate,
        search=model.search, device=find_device(model.device), n_jobs=model.n_jobs,
        verbose=model.verbose, keeper=keeper,
    )  # fmt: skip


def learned_texts(data: TrainingSet) -> csr_matrix:
    """Return the words of labels with samples."""
    return csr_matrix(data.label_features[data.Y.getnnz(axis=0) > 0])
