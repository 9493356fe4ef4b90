"""Which loss for which size of bags: why the loss of a list fails in large ones."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import umpteen as um
from papers.contents import Block, Section, Table, over_seeds
from papers.drawing import lines
from papers.eagle.images import Images, image_sets, what_is_missing
from papers.progress import progress_bar
from umpteen.errors import MissingExtraError

SIZES = (4, 10, 25, 50)
LOSSES: dict[str, dict[str, Any]] = {
    "list, no mask": {"temperature": 0, "recipe__loss": "list"},
    "list": {"recipe__loss": "list"},
    "assigned": {"recipe__loss": "assigned"},
    "sigmoid": {"recipe__loss": "sigmoid"},
}
_LARGE = 20
_N_IMAGES, _N_SEEDS = 5_000, 3


def sections(quick: bool) -> list[Section]:
    """Accuracy over the size of bags, a curve for each loss."""
    n_images, sizes = (2_000, (4, 50)) if quick else (_N_IMAGES, SIZES)
    return [
        Section(
            "Losses, over the size of bags",
            "the paper does not name the loss of its networks; its labels are lists.",
            f"The first {n_images:,} training images of the sets of Table 3 in random bags, all "
            f"test images one by one; {1 if quick else _N_SEEDS} seeds. Temperature and learning "
            "rate are the defaults for all losses.",
            partial(_losses, n_images, sizes, 1 if quick else _N_SEEDS),
        )
    ]


def _losses(n_images: int, sizes: tuple[int, ...], n_seeds: int) -> Iterator[Block]:
    names = []
    for images in image_sets(n_images):
        names.append(images.name)
        try:
            found = measure(images, sizes, n_seeds)
        except MissingExtraError as error:
            yield f"Not measured: {error}."
            return
        yield Table(
            f"{images.name}: accuracy in % on single test images",
            ["size of bags", *LOSSES],
            [[str(size), *(over_seeds(found[loss, size]) for loss in LOSSES)] for size in sizes],
        )
        yield lines(
            f"{images.name}: accuracy over the size of bags",
            [str(size) for size in sizes],
            {loss: [over_seeds(found[loss, size]).ours for size in sizes] for loss in LOSSES},
            x_label="images in a bag",
            y_label="accuracy, %",
        )
    yield from what_is_missing(names)
    yield (
        "With a mask, the loss of a list fails in large bags. Images that look like a label share "
        "its mask, whose sum is the size of the bag: the more of them there are, the lower is its "
        "peak, and so the bag's logit. The network has to learn the opposite. The loss of assigned "
        "labels compares logits without the mask. The sigmoid asks only whether a label occurs, "
        "and nearly all do in a large bag: what it learns there, it learns from the mask, whose "
        "embeddings know counts."
    )


def measure(
    images: Images, sizes: tuple[int, ...], n_seeds: int
) -> dict[tuple[str, int], list[float]]:
    """Accuracies of each loss and size of bags, one for each seed."""
    found: dict[tuple[str, int], list[float]] = {}
    with progress_bar(f"{images.name}, losses", len(sizes) * len(LOSSES)) as advance:
        for size in sizes:
            for loss, settings in LOSSES.items():
                found[loss, size] = [_accuracy(images, size, s, settings) for s in range(n_seeds)]
                advance()
    return found


def _accuracy(images: Images, size: int, seed: int, settings: dict[str, Any]) -> float:
    groups, group_labels = images.bags(size, seed)
    batch_size, epochs = (8, 40) if size > _LARGE else (32, 15)
    model = um.CoAttentionMIML(
        batch_size=batch_size, epochs=epochs, random_state=seed, verbose=False
    ).set_params(**settings)
    model.fit(images.X, groups=groups, group_labels=group_labels)
    return 100 * float(model.score(images.X_test, images.labels_test))
