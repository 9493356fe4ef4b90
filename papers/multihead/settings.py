"""How the networks of each data set are trained, all in one place.

What `tried` says was tried on a validation split of the training samples, one seed each, and
the best was taken, for a full layer as for the others; a set without `tried` was not tuned. Test
splits were not used. `python benchmarks/head_rates.py` goes through rates, head by head.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from umpteen.neural import Bag, Blueprint, NeuralClassifier, blueprint

RATES = (1e-3, 3e-3, 1e-2)


@dataclass(frozen=True)
class Training:
    """Epochs, size of batches and of features, and learning rates, by the name of the head."""

    epochs: int
    batch_size: int = 128
    dim: int = 256
    learning_rate: float = 1e-2
    rates: Mapping[str, float] = field(default_factory=dict)  # of heads that have another
    tried: str = ""  # before it was chosen, on a validation split

    def rate(self, head: Blueprint) -> float:
        """The learning rate of a head."""
        return self.rates.get(_name(head), self.learning_rate)

    def in_words(self) -> str:
        """In words."""
        others = "".join(f", {name} {rate:g}" for name, rate in self.rates.items())
        tried = f" (chosen on a validation split, of {self.tried})" if self.tried else ""
        return (
            f"{self.dim} features, up to {self.epochs} epochs of AdamW in batches of "
            f"{self.batch_size}, learning rate {self.learning_rate:g}{others}{tried}; the epoch "
            "that is best on a validation split, a tenth of the training samples, is kept"
        )

    def network(self, head: Blueprint, seed: int, **options: Any) -> NeuralClassifier:
        """Words as a `Bag`, unless another encoder is given."""
        settings: dict[str, Any] = {
            "encoder": blueprint(Bag, dim=self.dim), "epochs": self.epochs, "recipe__patience": 4,
            "batch_size": self.batch_size, "learning_rate": self.rate(head),
        }  # fmt: skip
        model = NeuralClassifier(head=head, random_state=seed, verbose=False)
        return model.set_params(**{**settings, **options})


CLASSES = {
    "pydocs": Training(
        10,
        tried="rates of 0.005 and 0.01 (full, MHC) and some others; not every head with all",
    ),
    "wordnet-ancestors": Training(
        5, batch_size=512, dim=128, tried="rates of 0.003 and 0.01, one seed"
    ),
}
LABELS = {
    "eurlex57k": Training(8, tried="rates of 0.003 and 0.01"),
    "debian-tags": Training(8, tried="rates of 0.003 and 0.01"),
}
_IMAGES = Training(
    6, batch_size=64, dim=128, rates={"SamplingHead": 3e-3}, tried="rates of 0.001, 0.003 and 0.01"
)
STACKS = {  # by the number of images
    1: replace(_IMAGES, rates={}),
    2: replace(_IMAGES, tried="rates of 0.003 and 0.01, with 8,000 stacks"),
    3: _IMAGES,
    4: replace(_IMAGES, learning_rate=1e-3, rates={"ProductHead": 1e-2}),
}
QUICK = Training(4, batch_size=32, dim=64, learning_rate=2e-2)


def training_of(name: str, quick: bool) -> Training:
    """How networks learn from a set of texts."""
    return QUICK if quick else {**CLASSES, **LABELS}.get(name, Training(8))


def _name(head: Blueprint) -> str:
    return head.path.rpartition(".")[2]
