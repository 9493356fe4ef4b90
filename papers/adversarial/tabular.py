"""Eight classes and six kinds of samples: small enough for all probabilities to be known."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import expit, log_softmax

from papers.adversarial.tasks import as_matrix
from umpteen.progress import progress_bar
from umpteen.softmax import AdversarialSoftmax, NoiseTree
from umpteen.softmax.noise import Noise
from umpteen.softmax.training import State, train
from umpteen.softmax.weights import DenseScores

_N_KINDS, _N_CLASSES = 6, 8
_NEWTON_STEPS = 100

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tabular:
    """Samples `X`, each a unit vector that tells its kind, and their classes."""

    X: npt.NDArray[np.float32]
    Y: csr_matrix
    log_data: FloatArray  # (kinds, classes), as the samples have it

    @classmethod
    def drawn(cls, n_samples: int, seed: int) -> "Tabular":
        """Every class has a probability of 2 % or more for every kind."""
        random = np.random.default_rng(seed)
        odds = 0.16 / _N_CLASSES + 0.84 * random.dirichlet(np.ones(_N_CLASSES), _N_KINDS)
        kinds = np.arange(n_samples) % _N_KINDS
        y = (odds.cumsum(axis=1)[kinds] < random.random((n_samples, 1))).sum(axis=1)
        y = np.minimum(y, _N_CLASSES - 1)
        counts = np.zeros((_N_KINDS, _N_CLASSES))
        np.add.at(counts, (kinds, y), 1)
        X = np.eye(_N_KINDS, dtype=np.float32)[kinds]
        log_data = np.log(counts / counts.sum(axis=1, keepdims=True))
        return cls(X, as_matrix(y, _N_CLASSES), log_data)

    def noises(self) -> dict[str, Noise]:
        """The three to draw from."""
        tree = NoiseTree(regularizer=1.0, verbose=False)
        return {
            "tree": Noise.of_tree(tree, self.X, self.Y, 0.0),
            "frequency": Noise.by_frequency(self.Y),
            "uniform": Noise.uniform(_N_CLASSES),
        }

    def trained(
        self, noise: Noise, epochs: tuple[int, ...], learning_rate: float = 0.1
    ) -> Iterator[tuple[float, float]]:
        """Deviations after so many epochs each."""
        scores = DenseScores.zeros(_N_CLASSES, _N_KINDS)
        state = State(scores, noise, np.full(len(self.X), float(_N_CLASSES)), seed=0)
        for n in epochs:
            model = AdversarialSoftmax(
                objective="negative_sampling",
                n_negatives=1,
                learning_rate=learning_rate,
                regularizer=0.0,
                epochs=n,
                n_jobs=1,
            )
            with progress_bar("", n, verbose=False) as bar:
                train(state, self.X, self.Y, model.plan(_N_CLASSES, feature_length=1.0), bar=bar)
            yield self.deviations(state.model.table(np.eye(_N_KINDS, dtype=np.float32)), noise)

    def optimum(self, noise: Noise) -> FloatArray:
        """Scores that minimise Eq. 2, each by Newton's method on its own."""
        p, q = np.exp(self.log_data), np.exp(self.log_noise(noise))
        scores = np.zeros_like(p)
        for _ in range(_NEWTON_STEPS):
            chance = expit(scores)
            gradient = q * chance - p * (1 - chance)
            scores -= np.clip(gradient / ((p + q) * chance * (1 - chance)), -1, 1)
        return scores

    def deviations(self, scores: npt.NDArray, noise: Noise) -> tuple[float, float]:
        """Largest, of log-probabilities with the noise taken out and without, from the data's."""
        found = [log_softmax(s, axis=1) for s in (scores + self.log_noise(noise), scores)]
        corrected, uncorrected = (float(np.abs(f - self.log_data).max()) for f in found)
        return corrected, uncorrected

    def log_noise(self, noise: Noise) -> FloatArray:
        """(kinds, classes)."""
        kinds = np.eye(_N_KINDS, dtype=np.float32)
        table = noise.log_prob_table(noise.reduce(kinds)).astype(np.float64)
        return np.broadcast_to(table, (_N_KINDS, _N_CLASSES))
