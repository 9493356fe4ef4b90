"""Table 3: the multi-instance networks on images, and on sentences in documents."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import umpteen as um
from papers.contents import Block, Cell, Section, Table, Value
from papers.eagle import losses, pictures
from papers.eagle.images import DIGITS, Images, image_sets, what_is_missing
from papers.eagle.sentences import SET, Sentences, load_sentences
from papers.progress import progress_bar
from papers.sets import available
from umpteen.errors import MissingExtraError

_N_SEEDS = 5
SIZES = (4, 50)
METHODS = ("Deep-MIML", "EAGLE-0", "EAGLE")
PAPER = {  # accuracy in percent, by set and size of bags
    ("MNIST", 4): (94.70, 94.82, 94.82),
    ("MNIST", 50): (33.33, 36.10, 38.46),
    ("Fashion-MNIST", 4): (84.70, 84.89, 85.09),
    ("Fashion-MNIST", 50): (19.00, 27.62, 28.65),
}
# As many steps of training for few large bags as for many small ones, in order of magnitude.
TRAINING: dict[int, dict[str, Any]] = {
    4: {"batch_size": 64, "epochs": 8},
    50: {"batch_size": 16, "epochs": 12},
}
FEW_IMAGES: dict[int, dict[str, Any]] = {
    4: {"batch_size": 8, "epochs": 60, "recipe__patience": 15},
    50: {"batch_size": 2, "epochs": 120, "recipe__patience": 30},
}
_MASKED = (
    {"temperature": 1, "recipe__loss": "assigned"},
    {"temperature": 3, "recipe__loss": "assigned"},
    {"temperature": 1, "recipe__loss": "list"},
)
CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "Deep-MIML": [
        {"temperature": 0, "recipe__loss": loss, "learning_rate": rate}
        for loss, rate in (("list", 1e-3), ("list", 3e-4), ("assigned", 1e-3))
    ],
    "EAGLE-0": [{"recipe__iterations": 0, **settings} for settings in _MASKED],
    "EAGLE": [{"recipe__iterations": 20, **settings} for settings in _MASKED],
}
_MASKED_SENTENCES = (
    {"temperature": 3, "recipe__loss": "assigned"},
    {"temperature": 3, "recipe__loss": "sigmoid"},
    {"temperature": 1, "recipe__loss": "list"},
)
SENTENCE_CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "Deep-MIML": [
        {"temperature": 0, "recipe__loss": loss} for loss in ("list", "sigmoid", "assigned")
    ],
    "EAGLE-0": [{"recipe__iterations": 0, **settings} for settings in _MASKED_SENTENCES],
    "EAGLE": [{"recipe__iterations": 20, **settings} for settings in _MASKED_SENTENCES],
}


def sections(quick: bool) -> list[Section]:
    """Table 3, and the label embeddings of Figures 5 and 10."""
    n_images = 5_000 if quick else None
    return [
        Section(
            "Table 3, networks for bags of images",
            "a mask that label embeddings make (EAGLE-0; EAGLE after iterations) improves "
            "Deep-MIML, in large bags above all.",
            f"MNIST and Fashion-MNIST, {'the first 5,000' if quick else 'all'} training images "
            "in random bags with lists of labels, all test images one by one; without these in "
            f"the folder of UMPTEEN_DATA, {DIGITS}. Yelp, the paper's other set, is not there; the "
            "next section has sentences in its place.",
            partial(_table3, n_images, quick),
        ),
        Section(
            "Table 3, networks for sentences in documents",
            "on reviews of four sentences, EAGLE has a precision at 1 of 46.25 on single "
            "sentences, EAGLE-0 45.82 and Deep-MIML 40.69.",
            f"Sentences of documents of {SET}, with the documents' labels; test on titles.",
            partial(_sentences, quick),
        ),
        *losses.sections(quick),
        *pictures.sections(n_images),
    ]


def _table3(n_images: int | None, quick: bool) -> Iterator[Block]:
    try:
        outcomes = list(_outcomes(n_images, quick))
    except MissingExtraError as error:
        yield f"Not measured: {error}."
        return
    yield from what_is_missing([outcome.name for outcome in outcomes])
    spread = f"mean and standard deviation over {_N_SEEDS} seeds, of bags as well as of networks"
    yield Table(
        f"Accuracy in % on single test images; {'one seed' if quick else spread}",
        ["images, size of bags", *METHODS],
        _by_method(outcomes, Outcome.value),
    )
    yield (
        "The paper leaves loss, learning rate and temperature open. They are chosen for each "
        "method on a tenth of the bags of the first seed, held out from training, by how well the "
        "labels named for images account for the lists of bags; so is the epoch, for every "
        "seed. Test images, and labels of single images, take no part."
        + " In quick mode there is nothing to choose: the first settings are taken."
        * quick
    )
    yield Table("The settings", ["images, size of bags", *METHODS],
                _by_method(outcomes, Outcome.settings_text))  # fmt: skip


def _sentences(quick: bool) -> Iterator[Block]:
    if not available([SET]):
        yield f"Not measured: {SET} is not in the folder of UMPTEEN_DATA."
        return
    data = load_sentences(*((300, 300) if quick else (3_000, 2_000)))
    n_seeds, n_tried = (1, 1) if quick else (3, 3)
    try:
        outcomes = [measure_sentences(data, method, n_seeds, n_tried) for method in METHODS]
    except MissingExtraError as error:
        yield f"Not measured: {error}."
        return
    yield Table(
        f"Precision at 1 in %; {data.in_words()}; mean and deviation over {n_seeds} seeds",
        ["", *METHODS],
        [["sentences", *(outcome.value() for outcome in outcomes)]],
    )
    yield Table("The settings, chosen as for images", ["", *METHODS],
                [["sentences", *(outcome.settings_text() for outcome in outcomes)]])  # fmt: skip


def measure_sentences(data: Sentences, method: str, n_seeds: int, n_tried: int) -> "Outcome":
    """Choose settings on the validation split of the first seed, then train with all seeds."""

    def fit(seed: int, settings: dict[str, Any]) -> Any:
        model = um.CoAttentionMIML(random_state=seed, verbose=False).set_params(**settings)
        return model.fit(data.X, groups=data.groups, group_labels=data.group_labels)

    candidates = SENTENCE_CANDIDATES[method][:n_tried]
    tried = [fit(0, settings) for settings in candidates]
    best = int(np.argmax([max(model.validation_scores_) for model in tried]))
    models = [tried[best], *(fit(seed, candidates[best]) for seed in range(1, n_seeds))]
    scores = [100 * model.score(data.X_test, data.Y_test) for model in models]
    return Outcome("sentences", 0, method, candidates[best], scores)


@dataclass(frozen=True)
class Outcome:
    """A method on a set of images in bags of some size."""

    name: str
    size: int
    method: str
    settings: dict[str, Any]
    accuracies: list[float]  # in percent, one per seed

    def value(self) -> Value:
        """Mean and deviation beside the paper's number."""
        printed = PAPER.get((self.name, self.size))
        return Value(
            float(np.mean(self.accuracies)),
            float(np.std(self.accuracies, ddof=1)) if len(self.accuracies) > 1 else None,
            None if printed is None else printed[METHODS.index(self.method)],
        )

    def settings_text(self) -> str:
        """Such as `loss list, rate 0.001`."""
        shown = {"loss": "recipe__loss", "temperature": "temperature", "rate": "learning_rate"}
        return ", ".join(
            f"{name} {self.settings[setting]}"
            for name, setting in shown.items()
            if self.settings.get(setting)
        )


def _by_method(outcomes: list[Outcome], cell: Any) -> list[list[Cell]]:
    rows: dict[str, list[Cell]] = {}
    for outcome in outcomes:
        first = f"{outcome.name}, {outcome.size}"
        rows.setdefault(first, [first]).append(cell(outcome))
    return list(rows.values())


def _outcomes(n_images: int | None, quick: bool) -> Iterator[Outcome]:
    n_seeds, n_tried = (1, 1) if quick else (_N_SEEDS, 3)
    for images in image_sets(n_images):
        with progress_bar(images.name, len(SIZES) * len(METHODS)) as advance:
            for size in SIZES:
                for method in METHODS:
                    yield measure(images, size, method, n_seeds, n_tried)
                    advance()


def measure(images: Images, size: int, method: str, n_seeds: int, n_tried: int) -> Outcome:
    """Choose settings on the validation split of the first seed, then train with all seeds."""
    candidates = CANDIDATES[method][:n_tried]
    tried = [fit_bags(images, size, 0, settings) for settings in candidates]
    best = int(np.argmax([max(model.validation_scores_) for model in tried]))
    models = [tried[best]]
    models += [fit_bags(images, size, seed, candidates[best]) for seed in range(1, n_seeds)]
    accuracies = [100 * model.score(images.X_test, images.labels_test) for model in models]
    return Outcome(images.name, size, method, candidates[best], accuracies)


def fit_bags(images: Images, size: int, seed: int, settings: dict[str, Any]) -> Any:
    """A network trained on random bags; it needs PyTorch."""
    training = FEW_IMAGES if len(images.X) < 5_000 else TRAINING
    model = um.CoAttentionMIML(random_state=seed, verbose=False)
    model.set_params(**training[size], **settings)
    groups, group_labels = images.bags(size, seed)
    return model.fit(images.X, groups=groups, group_labels=group_labels)
