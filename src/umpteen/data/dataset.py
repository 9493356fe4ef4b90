"""Dataset: a training split, perhaps a dev and a test split, and the labels they share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.data.samples import Samples, check_samples
from umpteen.data.vocabulary import label_vocabulary, numbered, widened
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError

if TYPE_CHECKING:
    from umpteen.data.describe import Description


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """One split of a data set (train, dev, test): `texts` or features `X`, with labels `Y`."""

    Y: csr_matrix
    X: Any = None
    texts: list[str] | None = None
    ids: list[str] | None = None
    label_names: list[str] | None = None

    def __post_init__(self) -> None:
        n_inputs = len(self.texts) if self.texts is not None else np.shape(self.X)[0]
        if n_inputs != self.Y.shape[0]:
            raise LabelsShapeError(
                f"{n_inputs:,} samples but {self.Y.shape[0]:,} rows of labels; "
                "each row of Y holds the labels of the same sample"
            )

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    def __repr__(self) -> str:
        inputs = "texts" if self.texts is not None else f"X {np.shape(self.X)}"
        return f"<Split: {len(self):,} samples, {inputs}, {self.Y.shape[1]:,} labels>"

    @property
    def labels(self) -> list[list[str]]:
        """The names of each sample's labels; a label without a name goes by its number."""
        ids = np.split(self.Y.indices, self.Y.indptr[1:-1]) if len(self) else []
        if self.label_names is None:
            return [[str(label) for label in row.tolist()] for row in ids]
        return [[self.label_names[label] for label in row.tolist()] for row in ids]

    @property
    def y(self) -> npt.NDArray[np.int64]:
        """One label id per sample, for data where each sample has exactly one label."""
        counts = np.diff(self.Y.indptr)
        if (counts != 1).any():
            row = int(np.flatnonzero(counts != 1)[0])
            raise LabelsError(
                f"sample {row} has {counts[row]} labels; y is for data with exactly one label "
                "per sample, use Y"
            )
        return self.Y.indices.astype(np.int64)

    def take(self, rows: npt.NDArray[np.integer]) -> "Split":
        """Return the samples with these row numbers, in this order."""
        return replace(
            self,
            Y=self.Y[rows],
            X=None if self.X is None else self.X[rows],
            texts=None if self.texts is None else [self.texts[row] for row in rows],
            ids=None if self.ids is None else [self.ids[row] for row in rows],
        )


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples in splits (train, dev, test), with one numbering of labels for all.

    Label ids: the labels of train in alphabetical order come first, then those that only dev or
    test have (nothing can learn them from samples, but evaluation counts them as relevant),
    then those that only have a text. The same files give the same ids.

    >>> samples = Samples(texts=["a cat", "a dog"], labels=[["pet", "cat"], ["pet"]])
    >>> dataset = Dataset.from_samples(samples, test=Samples(texts=["ox"], labels=[["cattle"]]))
    >>> dataset.label_names
    ['cat', 'pet', 'cattle']
    >>> dataset
    Dataset('dataset': 2 train, 1 test, 3 labels)
    """

    train: Split
    dev: Split | None = None
    test: Split | None = None
    name: str = "dataset"
    label_names: list[str] | None = None
    label_texts: list[str] | None = None
    label_features: csr_matrix | None = None

    @classmethod
    def from_samples(
        cls,
        train: Samples,
        dev: Samples | None = None,
        test: Samples | None = None,
        *,
        label_texts: Mapping[str, str] | None = None,
        name: str = "dataset",
    ) -> Self:
        """Return a data set with the same label ids in all splits; narrower splits are widened.

        Dev and test may be unlabelled: their `Y` is empty then. Samples that come with numbers
        (`Y`) keep them, and then `label_texts` is by number: `{"0": "text of label 0"}`.
        """
        given = {"train": train, "dev": dev, "test": test}
        samples = {split: one for split, one in given.items() if one is not None}
        for split, one in samples.items():
            check_samples(one, split)
        if train.labels is None and train.Y is None:
            raise LabelsError("the samples of train have no labels; there is nothing to learn")
        names = label_vocabulary(samples.values(), label_texts or {})
        Ys = numbered(list(samples.values()), names)
        Xs = widened([one.X for one in samples.values()])
        splits = {
            split: Split(Y=Y, X=X, texts=one.texts, ids=one.ids, label_names=names)
            for (split, one), Y, X in zip(samples.items(), Ys, Xs, strict=True)
        }
        texts = None
        if label_texts is not None:
            labels = names if names is not None else map(str, range(Ys[0].shape[1]))
            texts = [label_texts.get(label, "") for label in labels]
        return cls(
            train=splits["train"],
            dev=splits.get("dev"),
            test=splits.get("test"),
            name=name,
            label_names=names,
            label_texts=texts,
        )

    @property
    def splits(self) -> dict[str, Split]:
        """The splits that there are, by name."""
        given = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: split for name, split in given.items() if split is not None}

    @property
    def n_labels(self) -> int:
        """How many labels there are in all."""
        return int(self.train.Y.shape[1])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(split):,} {name}" for name, split in self.splits.items())
        return f"Dataset({self.name!r}: {sizes}, {self.n_labels:,} labels)"

    def describe(self) -> "Description":
        """Describe sizes and the distribution of labels: a table to print, a plot, or a dict."""
        from umpteen.data.describe import describe

        return describe(self)

    def split(self, dev: float = 0.1, random_state: int = 0) -> "Dataset":
        """Return a data set whose dev split is a random share of train.

        Labels that had all of their samples drawn into dev are then missing in train, as
        new labels are in practice.

        >>> samples = Samples(texts=list("abcd"), labels=[["x"], ["y"], ["x"], ["y"]])
        >>> Dataset.from_samples(samples).split(dev=0.25)
        Dataset('dataset': 3 train, 1 dev, 2 labels)
        """
        if self.dev is not None:
            raise ParameterError(
                f"{self!r} has a dev split already; to draw another, first remove it with "
                "dataclasses.replace(dataset, dev=None)"
            )
        drawn, kept = _drawn(len(self.train), dev, random_state)
        return replace(self, train=self.train.take(kept), dev=self.train.take(drawn))


def _drawn(n_samples: int, share: float, seed: int) -> Sequence[npt.NDArray[np.int64]]:
    """Rows drawn without replacement and the rest, both in their old order."""
    if not 0 < share < 1 or n_samples < 2:
        raise ParameterError(
            f"dev={share!r} of {n_samples:,} samples is not possible: it is a share between 0 "
            "and 1, and both splits need a sample"
        )
    n_drawn = min(max(1, round(share * n_samples)), n_samples - 1)
    order = np.random.default_rng(seed).permutation(n_samples)
    return np.sort(order[:n_drawn]), np.sort(order[n_drawn:])
