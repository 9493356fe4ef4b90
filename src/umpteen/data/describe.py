"""What a data set looks like: its sizes, and how its labels are spread."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.extras import require
from umpteen.writing import save_picture

if TYPE_CHECKING:
    from rich.table import Table

    from umpteen.data.dataset import Dataset, Split

_ROWS = {
    "n_samples": "samples",
    "n_features": "features",
    "features_per_sample": "features per sample, mean",
    "words_per_text": "words per text, mean",
    "n_labels": "labels with samples",
    "labels_per_sample_mean": "labels per sample, mean",
    "labels_per_sample_median": "labels per sample, median",
    "labels_per_sample_max": "labels per sample, max",
    "samples_per_label_mean": "samples per label, mean",
    "samples_per_label_median": "samples per label, median",
    "samples_per_label_max": "samples per label, max",
    "share_of_labels_with_1_sample": "labels with 1 sample",
    "share_of_labels_with_5_or_fewer": "labels with 5 samples or fewer",
    "share_of_samples_in_top_tenth": "samples that have one of the top 10 % of labels",
    "zipf_exponent": "tail: frequency falls as rank to the power of -",
    "n_labels_not_in_train": "labels never seen in train",
}


@dataclass(frozen=True)
class Description:
    """Figures of each split of a data set; prints as a table."""

    name: str
    n_labels: int
    figures: Mapping[str, Mapping[str, float]]
    frequencies: Mapping[str, npt.NDArray[np.int64]]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of each split as plain numbers."""
        splits = {split: dict(figures) for split, figures in self.figures.items()}
        return {"name": self.name, "n_labels": self.n_labels, "splits": splits}

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw label frequency against rank, both logarithmic, into an image file."""
        figure = require("matplotlib.figure", "plots").Figure(figsize=(6, 4))
        axes = figure.subplots()
        for split, counts in self.frequencies.items():
            if len(counts):
                axes.loglog(np.arange(1, len(counts) + 1), counts, label=split)
        axes.set(title=self.name, xlabel="label, most frequent first", ylabel="samples")
        axes.legend()
        save_picture(figure, path, bbox_inches="tight", dpi=150)

    def __rich__(self) -> "Table":
        from rich.table import Table

        table = Table("", title=f"{self.name}: {self.n_labels:,} labels")
        for split in self.figures:
            table.add_column(split, justify="right")
        for key, title in _ROWS.items():
            if any(key in figures for figures in self.figures.values()):
                cells = (figures.get(key) for figures in self.figures.values())
                table.add_row(title, *(_shown(key, value) for value in cells))
        return table

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=100, color_system=None)
        with console.capture() as capture:
            console.print(self)
        return capture.get()


def describe(dataset: "Dataset") -> Description:
    """Return the figures of each split of `dataset`."""
    seen = _frequencies(dataset.train.Y) > 0
    figures = {
        name: _inputs(split) | _labels(split.Y) | _unseen(name, split.Y, seen)
        for name, split in dataset.splits.items()
    }
    frequencies = {
        name: -np.sort(-counts[counts > 0])
        for name, split in dataset.splits.items()
        for counts in [_frequencies(split.Y)]
    }
    return Description(dataset.name, dataset.n_labels, figures, frequencies)


def _inputs(split: "Split") -> dict[str, float]:
    figures: dict[str, float] = {"n_samples": len(split)}
    if split.texts is not None:
        figures["words_per_text"] = _mean(np.array([len(text.split()) for text in split.texts]))
    else:
        figures["n_features"] = int(np.prod(split.X.shape[1:]))
        if isinstance(split.X, csr_matrix):
            figures["features_per_sample"] = _mean(np.diff(split.X.indptr))
    return figures


def _labels(Y: csr_matrix) -> dict[str, float]:
    per_sample, counts = np.diff(Y.indptr), _frequencies(Y)
    per_label = counts[counts > 0]
    return {
        "n_labels": len(per_label),
        **_spread("labels_per_sample", per_sample),
        **_spread("samples_per_label", per_label),
        "share_of_labels_with_1_sample": _mean(per_label == 1),
        "share_of_labels_with_5_or_fewer": _mean(per_label <= 5),
        "share_of_samples_in_top_tenth": _coverage(Y, counts),
        "zipf_exponent": zipf_exponent(per_label),
    }


def _unseen(name: str, Y: csr_matrix, seen: npt.NDArray[np.bool_]) -> dict[str, float]:
    here = _frequencies(Y) > 0
    return {} if name == "train" else {"n_labels_not_in_train": int((here & ~seen).sum())}


def _frequencies(Y: csr_matrix) -> npt.NDArray[np.int64]:
    return np.bincount(Y.indices, minlength=Y.shape[1])


def _spread(name: str, counts: npt.NDArray[Any]) -> dict[str, float]:
    return {
        f"{name}_mean": _mean(counts),
        f"{name}_median": float(np.median(counts)) if len(counts) else 0.0,
        f"{name}_max": int(counts.max(initial=0)),
    }


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _coverage(Y: csr_matrix, counts: npt.NDArray[np.int64]) -> float:
    """Share of samples that have at least one of the most frequent tenth of labels."""
    n_top = -(-np.count_nonzero(counts) // 10)
    is_top = np.zeros(Y.shape[1], bool)
    is_top[np.argsort(-counts, kind="stable")[:n_top]] = True
    hits = np.concatenate([[0], np.cumsum(is_top[Y.indices])])
    return _mean(hits[Y.indptr[1:]] > hits[Y.indptr[:-1]])


def zipf_exponent(counts: npt.NDArray[Any]) -> float:
    """Return the power at which label frequency falls with rank: 0 is flat, 1 is Zipf's law.

    A line through the logarithms at ranks 1, 2, 4, ..., so that head and tail weigh alike.

    >>> round(zipf_exponent(np.array([100, 50, 33, 25, 20])), 2)
    1.0
    """
    ordered = -np.sort(-np.asarray(counts))
    if len(ordered) < 2:
        return 0.0
    ranks = 2 ** np.arange(int(np.log2(len(ordered))) + 1)
    slope = np.polyfit(np.log(ranks), np.log(ordered[ranks - 1]), deg=1)[0]
    return float(max(0.0, -slope))


def _shown(key: str, value: float | None) -> str:
    if value is None:
        return ""
    if key.startswith("share"):
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
