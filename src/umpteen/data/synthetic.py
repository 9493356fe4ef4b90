"""Made-up extreme data that can be learned: any size, the same for the same seed."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen.data.dataset import Dataset, Split
from umpteen.data.hierarchy import Ints, SyntheticHierarchy
from umpteen.errors import ParameterError

_CHUNK = 2**15  # samples drawn at a time, which bounds the memory for drawing
_MAX_INT32 = np.iinfo(np.int32).max


def make_extreme(
    n_samples: int = 10_000,
    n_features: int = 20_000,
    n_labels: int = 5_000,
    *,
    labels_per_sample: float = 3.0,
    features_per_sample: int = 50,
    exponent: float = 1.0,
    branching: int = 16,
    depth: int = 2,
    noise: float = 0.8,
    label_features: bool = False,
    test_fraction: float = 0.2,
    random_state: int = 0,
) -> Dataset:
    """Make up samples whose words tell their labels, with the long tail of real data.

    Label frequency falls with rank to the power of `-exponent`. Labels stand in a hidden tree:
    `branching` of them share a parent, `depth` times. A label has words of its own and uses
    those of its ancestors; the labels of one sample are mostly relatives. A sample draws
    `features_per_sample` words from its labels, the share `noise` of them from a background of
    Zipf's law instead, weighted like TF-IDF to unit length. A word drawn twice counts more, so
    samples have somewhat fewer non-zero features than that.

    If there are at least as many training samples as labels, every label has one; with fewer,
    rare labels have none, as in a sample of a larger data set. With `label_features`, the data
    set also has the words of each label as `dataset.label_features`.

    >>> make_extreme(n_samples=1000, n_features=500, n_labels=200)
    Dataset('extreme': 800 train, 200 test, 200 labels)
    """
    _check_range("n_samples", n_samples, 2, _MAX_INT32 // max(1, features_per_sample))
    _check_range("n_features", n_features, 1, _MAX_INT32)
    _check_range("n_labels", n_labels, 1, _MAX_INT32)
    _check_range("labels_per_sample", labels_per_sample, 1, n_labels)
    _check_range("features_per_sample", features_per_sample, 1, _MAX_INT32)
    _check_range("exponent", exponent, 0, 10)
    _check_range("branching", branching, 2, 2**20)
    _check_range("depth", depth, 0, 3)
    _check_range("noise", noise, 0, 1)
    _check_range("test_fraction", test_fraction, 0, 1 - 1 / n_samples)
    rng = np.random.default_rng(random_state)
    hierarchy = SyntheticHierarchy.draw(rng, n_labels, n_features, exponent, branching, depth)
    n_train = n_samples - round(test_fraction * n_samples)
    main = _main_labels(rng, hierarchy, n_samples, n_train)
    Y = _labels(rng, hierarchy, main, labels_per_sample)
    X = _features(rng, hierarchy, Y, n_features, features_per_sample, noise)
    _weigh(X, n_train)
    ids = rng.permutation(n_labels).astype(np.int32)  # an id must not tell who is near
    words = hierarchy.label_features(n_features)[np.argsort(ids)] if label_features else None
    return Dataset(
        train=_split(X[:n_train], Y[:n_train], ids),
        test=_split(X[n_train:], Y[n_train:], ids) if n_train < n_samples else None,
        name="extreme",
        label_features=words,
    )


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ParameterError(f"{name}={value!r} is not possible: expected {low:,} to {high:,}")


def _main_labels(
    rng: np.random.Generator, hierarchy: SyntheticHierarchy, n_samples: int, n_train: int
) -> Ints:
    """One label per sample; repeats in train give way to labels that were not drawn."""
    labels = hierarchy.draw_labels(rng, n_samples)
    if n_train >= hierarchy.n_labels:
        is_repeat = np.ones(n_train, bool)
        drawn, first = np.unique(labels[:n_train], return_index=True)
        is_repeat[first] = False
        missing = np.setdiff1d(np.arange(hierarchy.n_labels), drawn, assume_unique=True)
        labels[rng.choice(np.flatnonzero(is_repeat), len(missing), replace=False)] = missing
    return labels


def _labels(
    rng: np.random.Generator, hierarchy: SyntheticHierarchy, main: Ints, per_sample: float
) -> csr_matrix:
    """The main label of each sample and its relatives."""
    chunks = [main[start : start + _CHUNK] for start in range(0, len(main), _CHUNK)]
    drawn = [_with_relatives(rng, hierarchy, chunk, per_sample) for chunk in chunks]
    counts = np.concatenate([count for count, _ in drawn])
    indices = np.concatenate([labels for _, labels in drawn]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    ones = np.ones(len(indices), np.float32)
    return csr_matrix((ones, indices, indptr), shape=(len(main), hierarchy.n_labels))


def _with_relatives(
    rng: np.random.Generator, hierarchy: SyntheticHierarchy, main: Ints, per_sample: float
) -> tuple[Ints, Ints]:
    """How many labels each sample has, and the labels; four times are drawn, for repeats."""
    wanted = 1 + rng.poisson(per_sample - 1, size=len(main))
    rows = np.repeat(np.arange(len(main)), 4 * wanted - 3)
    is_first = np.diff(rows, prepend=-1) > 0
    labels = hierarchy.draw_relatives(rng, main[rows])
    labels[is_first] = main
    _, first = np.unique(rows * hierarchy.n_labels + labels, return_index=True)
    first.sort()
    rows, labels = rows[first], labels[first]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = rank < wanted[rows]
    return np.bincount(rows[kept], minlength=len(main)), labels[kept]


def _features(
    rng: np.random.Generator,
    hierarchy: SyntheticHierarchy,
    Y: csr_matrix,
    n_features: int,
    per_sample: int,
    noise: float,
) -> csr_matrix:
    """How often each sample has each word."""
    background = rng.permutation(n_features).astype(np.int32)
    pieces = []
    for start in range(0, Y.shape[0], _CHUNK):
        rows = Y[start : start + _CHUNK]
        words = hierarchy.draw_words(rng, _label_of_each_word(rng, rows, per_sample))
        is_noise = rng.random(len(words), dtype=np.float32) < noise
        words[is_noise] = background[_zipf(rng, n_features, int(is_noise.sum()))]
        pieces.append(_counted(words.reshape(-1, per_sample)))
    counts, indices, lengths = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return csr_matrix((counts, indices, indptr), shape=(Y.shape[0], n_features))


def _label_of_each_word(rng: np.random.Generator, Y: csr_matrix, per_sample: int) -> Ints:
    n_labels = np.diff(Y.indptr)[:, np.newaxis]
    choice = (rng.random((Y.shape[0], per_sample)) * n_labels).astype(np.int64)
    return np.take(Y.indices, (Y.indptr[:-1, np.newaxis] + choice).ravel()).astype(np.int64)


def _zipf(rng: np.random.Generator, n: int, size: int) -> Ints:
    """Ranks from 0 to n - 1, falling as 1 / rank, by inverting the distribution."""
    ranks = np.exp(rng.random(size) * np.log(n + 1.0)).astype(np.int64) - 1
    clipped: Ints = np.minimum(ranks, n - 1)
    return clipped


def _counted(
    words: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], Ints]:
    """Count, word and number of different words, row by row."""
    words.sort(axis=1)
    is_new = np.diff(words, axis=1, prepend=-1) > 0
    starts = np.flatnonzero(is_new)
    counts = np.diff(starts, append=words.size).astype(np.float32)
    return counts, words[is_new], is_new.sum(axis=1)


def _weigh(X: csr_matrix, n_train: int) -> None:
    """Counts become TF-IDF of unit length, in place; how rare a word is, is up to train."""
    frequency = np.bincount(X.indices[: X.indptr[n_train]], minlength=X.shape[1])
    rarity = (1 + np.log((1 + n_train) / (1 + frequency))).astype(np.float32)
    np.log(X.data, out=X.data)
    X.data += 1
    X.data *= rarity[X.indices]
    normalize(X, copy=False)


def _split(X: csr_matrix, Y: csr_matrix, ids: npt.NDArray[np.int32]) -> Split:
    numbered = csr_matrix((Y.data, ids[Y.indices], Y.indptr), shape=Y.shape)
    numbered.sort_indices()
    return Split(Y=numbered, X=X)
