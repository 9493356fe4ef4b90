"""Figure 1 on features that were trained on labels, as the paper's are: a network's last layer."""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

from papers.adversarial.readings import HOW, compared
from papers.adversarial.tasks import Samples, Task, task
from papers.contents import Block, Section
from papers.sets import available

SETS = ("wordnet-ancestors", "debian-deps", "eurlex57k")
_DIM, _EPOCHS = 128, 4


def sections(quick: bool) -> list[Section]:
    """A section for each set of texts; without PyTorch, the page does without them."""
    if find_spec("torch") is None:
        return []
    points = (0.05, 0.2) if quick else (0.2, 1.0, 5.0, 25.0)
    names = ["pydocs"] if quick else available(SETS)
    return [
        Section(
            f"Figure 1 on trained features: {name}",
            "with classes drawn from the tree, training converges at least ten times as fast as "
            "with every baseline. The features are those of a network (XML-CNN) that was trained "
            "on the labels.",
            f"{name}; a sample's class is the rarest of its labels that has at least three "
            f"training samples. Features: the {_DIM} outputs of a Bag over TF-IDF of single words, "
            f"trained below a full layer for {_EPOCHS} epochs (AdamW, rate 0.01, batches of 256) "
            "on the same classes. " + HOW,
            partial(_measure, name, quick, points),
        )
        for name in names
    ]


def _measure(name: str, quick: bool, points: tuple[float, ...]) -> Iterator[Block]:
    chosen = trained(task(name, quick))
    yield from compared(name, chosen, points, n_seeds=1 if quick else 3)


def trained(words: Task) -> Task:
    """The same samples with the features of a network that learned the classes of words."""
    from umpteen.neural import Bag, NeuralClassifier, blueprint

    network = NeuralClassifier(
        blueprint(Bag, dim=_DIM), "full", epochs=_EPOCHS, learning_rate=0.01, batch_size=256,
        n_jobs=1, verbose=False,
    ).fit(words.X, words.Y.indices)  # fmt: skip
    others = [
        Samples(network.features(part.X), part.y)
        for part in (words.validation.first(2_000), words.test.first(2_000))
    ]
    return Task(words.name, network.features(words.X), words.Y, *others)
