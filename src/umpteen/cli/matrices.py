"""Files of matrices for models that learned from such files."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umpteen.cli.errors import UsageError
from umpteen.cli.reading import Reading

if TYPE_CHECKING:
    from umpteen.cluster.offline_answers import Limits
    from umpteen.data import Samples


def read_matrices(file: Path, reading: Reading, classifier: Any) -> "Samples":
    """Return the samples of a file, with as many columns as the model has features."""
    samples = reading.read(file)
    if samples.X is None:
        raise UsageError(
            f"the model learned from matrices, but {file} holds texts: give an xmc or svmlight "
            "file, or fit a model on texts"
        )
    _widen(samples.X, classifier.n_features_in_)
    if samples.Y is not None:
        _widen(samples.Y, classifier.n_labels_)
    return samples


def answer_matrix(
    classifier: Any, file: Path, reading: Reading, limits: "Limits"
) -> Iterator[tuple["Samples", list[Any]]]:
    """Yield the samples of a file and the ids of their labels, with scores."""
    from umpteen.cluster.offline_answers import answer

    if isinstance(limits.threshold, str):
        raise UsageError(
            f"--threshold {limits.threshold} needs a model of texts; give a score such as 0.7"
        )
    samples = read_matrices(file, reading, classifier)
    yield samples, answer(classifier, samples, limits)


def _widen(matrix: Any, width: int) -> None:
    if matrix.shape[1] < width:
        matrix.resize(matrix.shape[0], width)
