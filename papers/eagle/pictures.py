"""Figures 5 and 10: label embeddings as pictures, and what they need in large bags."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure as Picture
from sklearn.preprocessing import normalize

from papers.contents import Block, Cell, Figure, Section, Table, Value
from papers.drawing import svg
from papers.eagle.images import Floats, Images, image_sets, what_is_missing
from umpteen.aggregated import group_label_embeddings

ITERATIONS = (0, 20)


def sections(n_images: int | None) -> list[Section]:
    """The pictures, and how well embeddings find their images."""
    return [
        Section(
            "Figures 5 and 10, label embeddings",
            "the embedding of a label, seen as a picture, looks like what it stands for.",
            "The images of Table 3. The paper prints only pictures, of Fashion-MNIST in bags of "
            "4, and so there are none of its numbers here.",
            partial(_pictures, n_images),
        )
    ]


def _pictures(n_images: int | None) -> Iterator[Block]:
    names: list[str] = []
    rows: list[list[Cell]] = []
    for images in image_sets(n_images):
        names.append(images.name)
        if images.name != "MNIST":
            yield picture(images, embed(images, 4, iterations=20, center=True))
        rows += [_row(images, size, center) for size in (4, 50) for center in (False, True)]
    yield from what_is_missing(names)
    yield Table(
        "Embeddings before and after 20 iterations. Found: of the labels in the lists of bags, "
        "those whose nearest image in the bag has them, in %. Alike: the mean cosine of two labels",
        ["images, size of bags, mean", "found, 0", "found, 20", "alike, 0", "alike, 20"],
        rows,
    )
    yield (
        "The paper subtracts the mean of the images. Brought to length one, they have a mean "
        "again, and in large bags all labels point at it unless it is subtracted, too "
        "(center=True, as in Table 3 here)."
    )


def embed(images: Images, size: int, iterations: int, center: bool) -> Floats:
    """Label embeddings out of random bags, `(labels, pixels)`."""
    found = group_label_embeddings(
        images.X, *images.bags(size, seed=0), iterations=iterations, center=center, random_state=0
    )
    return found.toarray()  # type: ignore[no-any-return]


def picture(images: Images, embeddings: Floats) -> Figure:
    """A picture for each label: dark where it has more ink than the average image."""
    drawn = Picture(figsize=(8, 3.6), layout="constrained")
    side, reach = int(np.sqrt(embeddings.shape[1])), float(np.abs(embeddings).max())
    for label, axes in enumerate(drawn.subplots(2, -(-len(embeddings) // 2)).ravel()):
        axes.set_axis_off()
        if label < len(embeddings):
            pixels = embeddings[label].reshape(side, side)
            axes.imshow(pixels, cmap="gray_r", vmin=-reach, vmax=reach)
            axes.set_title(images.kind(label), fontsize=9)
    alike = like_their_images(images, embeddings)
    kinds = ", ".join(images.kind(label) for label in range(len(embeddings)))
    return Figure(
        f"{images.name}: label embeddings from random bags of 4 images, 20 iterations. Dark is "
        "where a label has more ink than the average image, light where it has less",
        f"Pictures of {kinds}. {alike} of {len(embeddings)} are most like the mean image of "
        "their own kind",
        svg(drawn),
        {"embeddings": embeddings.astype(float).round(4), "like their images": alike},
    )


def like_their_images(images: Images, embeddings: Floats) -> int:
    """How many labels have an embedding nearer to the mean of their images than to other means."""
    units = normalize(images.X)
    kinds = range(len(embeddings))
    means = np.array([units[images.labels == label].mean(axis=0) for label in kinds])
    nearest = (embeddings @ normalize(means - units.mean(axis=0)).T).argmax(axis=1)
    return int((nearest == np.arange(len(embeddings))).sum())


def _row(images: Images, size: int, center: bool) -> list[Cell]:
    both = [embed(images, size, iterations, center) for iterations in ITERATIONS]
    return [
        f"{images.name}, {size}, {'subtracted' if center else 'kept'}",
        *(Value(100 * share_found(images, size, embeddings), digits=1) for embeddings in both),
        *(Value(mean_cosine(embeddings)) for embeddings in both),
    ]


def share_found(images: Images, size: int, embeddings: Floats) -> float:
    """The share of labels in the lists of bags whose nearest image in the bag has them."""
    groups, counts = images.bags(size, seed=0)
    cosines = normalize(images.X) @ embeddings.T
    best = np.maximum.reduceat(cosines[groups.indices], groups.indptr[:-1], axis=0)
    of_image = groups.T.tocsr().indices  # each image is in one bag
    is_nearest = cosines == best[of_image]
    right = is_nearest[np.arange(len(images.labels)), images.labels]
    hits = np.zeros(counts.shape)  # (bags, labels)
    hits[of_image[right], images.labels[right]] = 1
    return float(counts.multiply(hits).sum() / counts.sum())


def mean_cosine(embeddings: Floats) -> float:
    """Of two different labels."""
    cosines = normalize(embeddings) @ normalize(embeddings).T
    return float(cosines[~np.eye(len(embeddings), dtype=bool)].mean())
