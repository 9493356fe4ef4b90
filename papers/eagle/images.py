"""The images that the multi-instance networks are measured on, and bags of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits

from umpteen import data
from umpteen.errors import DataFormatError, DatasetNotFoundError

SETS = {"MNIST": "images/mnist", "Fashion-MNIST": "images/fashion-mnist"}
DIGITS = "scikit-learn's digits"
KINDS = {
    "Fashion-MNIST": ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt",
                      "sneaker", "bag", "ankle boot"),
}  # fmt: skip
_N_TEST_DIGITS = 397

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """Images as rows of pixels, the mean of the training images subtracted, and their kinds."""

    name: str
    X: Floats
    labels: Integers
    X_test: Floats
    labels_test: Integers

    def bags(self, size: int, seed: int) -> tuple[csr_matrix, csr_matrix]:
        """Random bags of `size` images, and how often each label is in the list of each bag."""
        groups = data.group_randomly(len(self.X), size, random_state=seed)
        return groups, data.aggregate(self.labels, groups)

    def kind(self, label: int) -> str:
        """What a label is called."""
        return KINDS[self.name][label] if self.name in KINDS else str(label)


def image_sets(n_samples: int | None) -> Iterator[Images]:
    """The sets under `UMPTEEN_DATA`, or scikit-learn's digits where there are none."""
    missing = []
    for name in SETS:
        try:
            yield load_images(name, n_samples)
        except DatasetNotFoundError:
            missing.append(name)
    if len(missing) == len(SETS):
        yield digits()


def load_images(name: str, n_samples: int | None = None) -> Images:
    """A set under `UMPTEEN_DATA`; `n_samples` takes the first images of its training part."""
    found = data.load(SETS[name])
    if found.test is None:
        raise DataFormatError(f"{name} has no test images (t10k-images-idx3-ubyte): get them, too")
    X, X_test = (np.asarray(part.X).reshape(len(part.X), -1) for part in (found.train, found.test))
    labels, labels_test = (
        np.asarray(part.Y.argmax(axis=1)).ravel() for part in (found.train, found.test)
    )
    return _centred(name, X[:n_samples], labels[:n_samples], X_test, labels_test)


def digits() -> Images:
    """1,797 images of 8 x 8 pixels that come with scikit-learn; the last 397 are for testing."""
    X, labels = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    end = len(X) - _N_TEST_DIGITS
    return _centred(DIGITS, X[:end], labels[:end], X[end:], labels[end:])


def what_is_missing(names: list[str]) -> Iterator[str]:
    """A sentence on sets that were not there, and what was used instead."""
    missing = [name for name in SETS if name not in names]
    if missing:
        instead = f"; {DIGITS} (8 x 8 pixels) were taken instead" if DIGITS in names else ""
        yield (
            f"{' and '.join(missing)} not found: no such images in the folder of UMPTEEN_DATA"
            f"{instead}. The paper has no numbers for other images."
        )


def _centred(
    name: str, X: Floats, labels: Integers, X_test: Floats, labels_test: Integers
) -> Images:
    mean = X.mean(axis=0)
    return Images(name, X - mean, labels, X_test - mean, labels_test)
