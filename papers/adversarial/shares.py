"""How much of what tells classes apart is in the directions that a tree sees."""

from typing import Any

import numpy as np

from papers.adversarial.tasks import Task
from umpteen.softmax import NoiseTree


def signal_share(task: Task, tree: NoiseTree) -> float:
    """Return the information on classes in the tree's directions, as a share of that in all.

    In features of unit covariance, classes explain a matrix R of the variance, corrected for what
    class means of few samples differ by themselves; the information is -log det(I - R) / 2.
    """
    centred = task.X - task.X.mean(axis=0, dtype=np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = values > 1e-6 * values.max()
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    sums = task.Y.T @ (centred @ whiten)
    counts = np.bincount(task.Y.indices, minlength=task.n_classes)
    between = (sums / np.maximum(counts, 1)[:, None]).T @ sums / len(centred)
    by_chance = (task.n_classes - 1) / (len(centred) - 1)
    explained = (between - by_chance * np.eye(len(between))) / (1 - by_chance)
    unwhiten = (vectors[:, kept] * np.sqrt(values[kept])).T
    seen = np.linalg.qr(unwhiten @ tree.reduction_.components)[0]
    return _information(seen.T @ explained @ seen) / _information(explained)


def _information(explained: Any) -> float:
    shares = np.clip(np.linalg.eigvalsh(explained), 0, 0.999)
    return -0.5 * float(np.log1p(-shares).sum())
