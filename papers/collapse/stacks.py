"""Images with several labels, the networks that learn from them, and how far these collapse."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from papers import sets
from papers.collapse.stacking import Images, stack_images
from papers.sets import train_and_test
from umpteen.collapse import EtfHead
from umpteen.metrics import CollapseMeasures, collapse_measures
from umpteen.neural import Conv, NetworkRecipe, NeuralClassifier, blueprint

SETS = {"MNIST": "images/mnist", "Fashion-MNIST": "images/fashion-mnist"}
_N_DEV = 10_000  # training images that only make samples to choose by

Sizes = Mapping[int, int | Sequence[int]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stacks:
    """Images with several labels: to learn from, to choose by, and to test on.

    No original image is in more than one of the three.
    """

    name: str
    train: Images
    dev: Images
    test: Images

    def in_words(self) -> str:
        """Its size in words."""
        of = np.bincount(np.diff(self.train.Y.indptr))
        by_number = ", ".join(f"{count:,} with {m}" for m, count in enumerate(of) if count)
        return (
            f"{self.name}: {self.train.Y.shape[0]:,} images of {self.train.X.shape[2]} x "
            f"{self.train.X.shape[3]} pixels to learn from ({by_number} label(s)), "
            f"{self.test.Y.shape[0]:,} to test on, {self.train.Y.shape[1]} labels."
        )


def available() -> list[str]:
    """Image sets that are there, by the names that they have here."""
    there = sets.available(list(SETS.values()))
    return [name for name, path in SETS.items() if path in there]


def stacks(
    name: str,
    samples: Sizes,
    *,
    test_samples: Sizes | None = None,
    missing: Iterable[Sequence[int]] = (),
    n_classes: int = 10,
    seed: int = 0,
) -> Stacks:
    """Stacks of images of a set, half as wide as the paper's.

    Those to choose by and to test on are `test_samples`, a fifth of `samples` unless it is given.
    """
    train, test = _originals(name)
    chosen = train[0][:-_N_DEV], train[1][:-_N_DEV]
    dev = train[0][-_N_DEV:], train[1][-_N_DEV:]
    sizes = test_samples or {m: max(1, int(np.max(n)) // 5) for m, n in samples.items()}

    def made(part: tuple[Any, Any], sizes: Sizes, seed: int, **options: Any) -> Images:
        rows = part[1] < n_classes
        return stack_images(
            part[0][rows], part[1][rows], sizes, shrink=2, random_state=seed, **options
        )

    return Stacks(
        name,
        made(chosen, samples, 3 * seed, missing=missing),
        made(dev, sizes, 3 * seed + 1),
        made(test, sizes, 3 * seed + 2),
    )


@cache
def _originals(name: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    train, test = train_and_test(SETS[name])
    return (train.X, train.y), (test.X, test.y)


@dataclass(frozen=True)
class Training:
    """How networks are trained here, all alike; penalties were chosen by how far these collapse."""

    epochs: int
    dim: int = 16
    learning_rate: float = 2e-3
    weight_decay: float = 0.1
    feature_penalty: float = 0.05
    weight_penalty: float = 0.01
    batch_size: int = 64

    def in_words(self) -> str:
        return (
            f"two stages of convolution, a layer of 256 and one of {self.dim} outputs without "
            f"ReLU; {self.epochs} epochs of AdamW, learning rate {self.learning_rate:g}, weight "
            f"decay {self.weight_decay:g}, penalties on features {self.feature_penalty:g} and on "
            f"the last layer {self.weight_penalty:g}"
        )

    def network(self, seed: int, *, learned: bool = True, **options: Any) -> NeuralClassifier:
        """A small convolutional network, with a last layer that is learned or fixed."""
        settings: dict[str, Any] = {
            "encoder": blueprint(Conv, dim=self.dim, width=8, hidden=256, linear=True),
            "head": blueprint(
                EtfHead,
                learned=learned,
                feature_penalty=self.feature_penalty,
                weight_penalty=self.weight_penalty,
            ),
        }
        recipe = NetworkRecipe(weight_decay=self.weight_decay, validation_fraction=0.0)
        return NeuralClassifier(
            **{**settings, **options}, epochs=self.epochs, learning_rate=self.learning_rate,
            batch_size=self.batch_size, recipe=recipe, random_state=seed, n_jobs=1, verbose=False,
        )  # fmt: skip


@dataclass
class Measures:
    """The measures at some moments of a training; call it after each epoch (`watch`)."""

    X: Any
    Y: Any
    moments: Sequence[int]
    epochs: list[int] = field(default_factory=list)
    found: list[CollapseMeasures] = field(default_factory=list)
    also: Callable[[Any], object] | None = None  # called with the features

    def __call__(self, model: NeuralClassifier) -> None:
        epoch = len(model.history_["loss"])
        if epoch in self.moments:
            features = model.features(self.X)
            self.epochs.append(epoch)
            self.found.append(collapse_measures(features, self.Y, model.weights_["head.weight"]))
            if self.also is not None:
                self.also(features)

    def curves(self) -> dict[str, list[float]]:
        """A curve for each measure, by the paper's names."""
        last = self.found[-1]
        curves = {
            f"NC1, {m} label(s)": [each.variability[m] for each in self.found]
            for m in last.variability
        }
        curves["NC2, classifier"] = [_number(each.classifier_simplex) for each in self.found]
        curves["NC2, means"] = [each.means_simplex for each in self.found]
        curves["NC3"] = [_number(each.self_duality) for each in self.found]
        for m in last.tagwise_angle:
            curves[f"NCm, {m} labels"] = [each.tagwise_angle[m] for each in self.found]
        return curves


def moments(epochs: int) -> list[int]:
    """About ten epochs to look at, close to one another at first.

    >>> moments(60)
    [1, 2, 4, 5, 8, 12, 18, 27, 40, 60]
    """
    found = {epochs}
    now = float(epochs)
    while now > 1.2:
        now /= 1.5
        found.add(max(1, round(now)))
    return sorted(found)


def _number(found: float | None) -> float:
    return float("nan") if found is None else found
