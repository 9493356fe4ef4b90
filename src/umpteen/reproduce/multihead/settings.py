"""How the networks of each data set are trained, all in one place.

Rates were chosen for each head, as the best of `RATES` on an eighth of the training samples that
was held out; `python benchmarks/head_rates.py` does it again. Test parts were not used. Dropout,
smaller batches and other sizes were tried in the same way, for a full layer and MHP.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from umpteen.neural import Bag, NeuralClassifier, Recipe, recipe

RATES = (3e-3, 5e-3, 1e-2, 2e-2)


@dataclass(frozen=True)
class Training:
    """Epochs, size of batches and of features, and learning rates, by the name of the head."""

    epochs: int
    batch_size: int = 128
    dim: int = 256
    learning_rate: float = 1e-2
    rates: Mapping[str, float] = field(default_factory=dict)  # of heads that have another

    def rate(self, head: Recipe) -> float:
        """The learning rate of a head."""
        return self.rates.get(_name(head), self.learning_rate)

    def said(self) -> str:
        """In words."""
        others = "".join(f", {name} {rate:g}" for name, rate in self.rates.items())
        return (
            f"up to {self.epochs} epochs of AdamW in batches of {self.batch_size}, learning rate "
            f"{self.learning_rate:g}{others}, chosen for each head on held-out training samples; "
            "the epoch that is best on another held-out tenth is kept"
        )

    def network(self, head: Recipe, seed: int, **options: Any) -> NeuralClassifier:
        """Words as a `Bag`, unless another encoder is given."""
        settings: dict[str, Any] = {
            "encoder": recipe(Bag, dim=self.dim), "epochs": self.epochs, "patience": 4,
            "batch_size": self.batch_size, "learning_rate": self.rate(head),
        }  # fmt: skip
        return NeuralClassifier(
            **{**settings, **options}, head=head, random_state=seed, verbose=False
        )


CLASSES = {
    "pydocs": Training(10),
    "wordnet-ancestors": Training(6, batch_size=512, dim=128),
}
LABELS = {"eurlex57k": Training(8), "debian-tags": Training(8)}
STACKS = Training(8, batch_size=64)
QUICK = Training(3, dim=64)


def _name(head: Recipe) -> str:
    return head.path.rpartition(".")[2]
