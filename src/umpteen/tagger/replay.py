"""Training samples that a tagger keeps, for labels that come later and to show neighbours."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen.shards import Texts, texts_at
from umpteen.storage import Shape, storable


@storable
@dataclass(eq=False, frozen=True)
class Replay:
    """Features, labels and perhaps the texts of some training samples."""

    X: Annotated[csr_matrix, Shape("samples", "features")]
    Y: Annotated[csr_matrix, Shape("samples", "labels")]
    texts: Annotated[list[str], Shape("samples")] | None = None

    @classmethod
    def drawn(cls, X: csr_matrix, Y: csr_matrix, texts: Texts | None, most: int, seed: int) -> Self:
        """Draw at most that many samples: half with the rarest labels, half at random."""
        rows = _drawn(Y, most, seed, np.bincount(Y.indices, minlength=Y.shape[1]))
        if rows is None:  # lists of callers may change
            return cls(X, Y, None if texts is None else list(texts))
        return cls(X[rows], Y[rows], None if texts is None else texts_at(texts, rows))

    def redrawn(self, most: int, seed: int, counts: npt.NDArray[np.int64]) -> Self:
        """Draw once more where more came; `counts` has how many samples each label has in all."""
        rows = _drawn(self.Y, most, seed, counts)
        if rows is None:
            return self
        texts = None if self.texts is None else texts_at(self.texts, rows)
        return replace(self, X=self.X[rows], Y=self.Y[rows], texts=texts)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def widened(self, n_labels: int) -> "Replay":
        """Return the same samples with room for new labels."""
        Y = self.Y
        return replace(
            self, Y=csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], n_labels))
        )

    def joined(
        self, X: csr_matrix, Y: csr_matrix, texts: list[str], *, corrected: bool = False
    ) -> "Replay":
        """Return these and more samples; those that are there already get the new labels as well.

        So nothing is at once an example of a label and an example against it. If `corrected`,
        such samples get the new labels instead of the old.
        """
        X, Y, texts = _each_once(X, Y, texts)
        number = {key: row for row, key in enumerate(_row_keys(X)) if key or not corrected}
        same = [(row, number[key]) for row, key in enumerate(_row_keys(self.X)) if key in number]
        old, given = np.array(same, np.int64).reshape(-1, 2).T
        moved = csr_matrix((np.ones(len(old)), (old, given)), shape=(len(self), X.shape[0]))
        kept = np.ones(len(self), np.float32)
        kept[old] = not corrected
        merged = csr_matrix(sparse.diags(kept) @ self.Y + moved @ Y)
        merged.eliminate_zeros()
        merged.data[:] = 1
        new = np.setdiff1d(np.arange(X.shape[0]), given)
        return Replay(
            csr_matrix(sparse.vstack([self.X, X[new]])),
            csr_matrix(sparse.vstack([merged, Y[new]]), dtype=np.float32),
            None if self.texts is None else [*self.texts, *(texts[row] for row in new)],
        )

    @cached_property
    def _lengths(self) -> npt.NDArray[np.float64]:
        rows = np.repeat(np.arange(len(self)), np.diff(self.X.indptr))
        return np.sqrt(np.bincount(rows, np.square(self.X.data), minlength=len(self)))

    def nearest(self, x: csr_matrix, k: int) -> list[tuple[int, float]]:
        """Return the `k` samples most similar to the first row of `x`: number and cosine."""
        product = np.asarray((self.X @ normalize(x).T).todense()).ravel()
        similarity = product / np.maximum(self._lengths, np.finfo(np.float32).tiny)
        order = np.argsort(-similarity, kind="stable")[:k]
        return [(int(row), float(similarity[row])) for row in order if similarity[row] > 0]


def _drawn(
    Y: csr_matrix, most: int, seed: int, counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64] | None:
    """Rows with the rarest labels and others at random, ascending; None if there are no more."""
    if most >= Y.shape[0]:
        return None
    random = np.random.default_rng(seed).permutation(Y.shape[0])
    rare = random[np.argsort(_rarest_label(Y, counts)[random], kind="stable")][: most // 2]
    others = random[~np.isin(random, rare)][: most - len(rare)]
    return np.sort(np.append(rare, others))


def _row_keys(X: csr_matrix) -> list[bytes]:
    """Bytes that are the same for rows that are the same."""
    return [
        X.indices[first:last].tobytes() + X.data[first:last].tobytes()
        for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]


def _each_once(
    X: csr_matrix, Y: csr_matrix, texts: list[str]
) -> tuple[csr_matrix, csr_matrix, list[str]]:
    """The different rows of `X`, each with all labels that it has anywhere."""
    number: dict[bytes, int] = {}
    group = [number.setdefault(key, len(number)) for key in _row_keys(X)]
    _, first = np.unique(group, return_index=True)
    members = np.ones(len(group)), (group, np.arange(len(group)))
    together = csr_matrix(members, shape=(len(number), len(group)))
    merged = csr_matrix(together @ Y, dtype=np.float32)
    merged.data[:] = 1
    return X[first], merged, [texts[row] for row in first]


def _rarest_label(Y: csr_matrix, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return how many samples have each sample's rarest label; infinity without labels."""
    rarest = np.full(Y.shape[0], np.inf)
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    np.minimum.at(rarest, rows, counts[Y.indices])
    return rarest
