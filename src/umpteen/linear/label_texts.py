"""What the labels' own features add to a score: their cosine to the sample, and more."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, vstack
from sklearn.preprocessing import normalize

from umpteen.errors import FeaturesError, ModelCorruptError
from umpteen.kernels.blending import blend, join_evidence
from umpteen.kernels.compiling import frozen
from umpteen.kernels.nearest import merge_nearest
from umpteen.kernels.topk import frozen_csr, sparse_topk
from umpteen.linear.search import Answer
from umpteen.linear.text_ranker import TextRanker
from umpteen.sharding import OnRows, Sharded, over_blocks
from umpteen.storage import Offsets, Shape, Sizes, Within, storable
from umpteen.validation import Features, check_describes, check_features

_BLOCK = 2048
_RARE, _FEW_LABELS = 0.003, 100  # share and number of labels below which a word is rare
_N_RANKED = 30  # candidates that tree and label texts offer to a ranker, each

IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    state.setdefault("counts", np.zeros(state["features"].shape[0], np.int64))
    state.update(ranker=None, limits=None, names=None, name_starts=None)


def _from_2(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    quadratic, limits = state["ranker"], state.pop("limits", None)
    if (quadratic is None) != (limits is None):
        raise ModelCorruptError("has a ranker without limits of its evidence, or only limits")
    state["ranker"] = None if quadratic is None else TextRanker(quadratic, limits, None)


@dataclass(frozen=True, eq=False)
class NameFeatures:
    """Features of the names of labels, a row for each name.

    The rows of label i are `starts[i]` to before `starts[i + 1]`; a label may have no name.
    """

    features: Features
    starts: IntArray


@storable(version=3, upgrades={1: _from_1, 2: _from_2})
@dataclass(eq=False)
class LabelTexts:
    """Unit rows of label features, and how they count: by a ranker, or by a weight of the cosine.

    `counts` has the number of training samples of each label. Where a label has several names,
    `names` are their unit rows, those of label i from `name_starts[i]` on; otherwise `features` are
    its name.
    """

    features: Annotated[csr_matrix, Shape("labels", "features"), Within(-2, 2)]  # of length 1
    counts: Annotated[IntArray, Shape("labels"), Within(0, 2**62)]
    weight: Annotated[float, Within(0, 1e9)] = 0.0
    n_candidates: Annotated[int, Within(1, 100_000)] = 100
    ranker: TextRanker | None = None
    names: Annotated[csr_matrix, Shape("names", "features"), Within(-2, 2)] | None = None
    name_starts: Annotated[IntArray, Shape("labels + 1"), Offsets("names")] | None = None

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: names without labels."""
        if (self.names is None) != (self.name_starts is None):
            yield "has names of labels, and not whose they are"

    @classmethod
    def of(cls, features: Features, counts: IntArray, names: NameFeatures | None = None) -> Self:
        """Return unit rows of features as given, one per label, and of names."""
        check_describes(features, len(counts))
        texts = cls(_unit(features), counts)
        if names is None:
            return texts
        own = check_features(names.features, n_features=features.shape[1], name="label_names")
        starts = _check_starts(names.starts, len(counts), own.shape[0])
        return replace(texts, names=_unit(own), name_starts=starts)

    @property
    def is_used(self) -> bool:
        """Whether label texts count at all."""
        return self.ranker is not None or self.weight > 0

    @property
    def n_asked(self) -> int:
        """The number of labels that the tree has to find."""
        return self.n_candidates if self.ranker is None else _N_RANKED

    def extended(self, new_counts: IntArray, more: "LabelTexts | None" = None) -> "LabelTexts":
        """Return texts with rows for further labels, empty ones for those without features."""
        features, n_new = self.features, len(new_counts)
        counts = np.concatenate([self.counts, new_counts])
        none = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(n_new + 1, np.int32)
        new = csr_matrix(none, shape=(n_new, features.shape[1])) if more is None else more.features
        changed = replace(self, features=csr_matrix(vstack([features, new])), counts=counts)
        if self.names is None or self.name_starts is None:
            return changed
        starts = np.append(self.name_starts, self.name_starts[-1] + 1 + np.arange(n_new))
        return replace(changed, names=csr_matrix(vstack([self.names, new])), name_starts=starts)

    def without(self, labels: npt.NDArray[np.int32]) -> "LabelTexts":
        """Return texts with empty rows for some labels, which are then never found."""
        kept = np.ones(self.features.shape[0], np.float32)
        kept[labels] = 0
        changed = replace(self, features=_rows_kept(self.features, kept))
        if self.names is None or self.name_starts is None:
            return changed
        of_names = np.repeat(kept, np.diff(self.name_starts))
        return replace(changed, names=_rows_kept(self.names, of_names))

    @cached_property
    def postings(self) -> csr_matrix:
        """Return `(features, names)`: which names have a feature, if not very many have it.

        They find nothing that rarer words do not find, and cost most of the time.
        """
        postings = csr_matrix((self.features if self.names is None else self.names).T)
        n_labels = np.diff(postings.indptr)
        rare = n_labels <= max(_FEW_LABELS, _RARE * postings.shape[1])
        postings.data *= np.repeat(rare, n_labels)
        postings.eliminate_zeros()
        return postings

    @cached_property
    def _log_counts(self) -> npt.NDArray[np.float32]:
        """Labels without samples count as those with one, from which rankers learn."""
        logarithms = np.log1p(np.maximum(self.counts, 1)).astype(np.float32)
        return frozen(logarithms)  # type: ignore[no-any-return]

    @cached_property
    def _named(self) -> tuple[Any, npt.NDArray[np.int64]]:
        """Names, and where those of each label begin."""
        if self.names is None or self.name_starts is None:
            return frozen_csr(self.features), frozen(np.arange(self.features.shape[0] + 1))
        return frozen_csr(self.names), frozen(np.asarray(self.name_starts))

    @cached_property
    def _owners(self) -> npt.NDArray[np.int32]:
        """The label of each name, and -1 for no name."""
        _, starts = self._named
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return np.append(owners, -1).astype(np.int32)

    def combine(
        self, X: csr_matrix, best: Answer, k: int, n_jobs: int | None, near: Labels | None = None
    ) -> Answer:
        """Return the `k` best of what the tree found and what the texts find, by both together.

        `near` is what `nearest` found, if that is known already.
        With a ranker, scores are its probabilities. Otherwise they are (tree + weight * cosine) /
        (1 + weight): a label that only one of the two found has zero from the other, but the cosine
        of the tree's candidates is always computed.
        """
        if not self.is_used or X.shape[0] == 0:
            return best[0][:, :k], best[1][:, :k]
        tables = best if near is None else (*best, near)
        return _stacked(self._over_blocks(_combined, X, n_jobs, tables, k))

    def evidence(self, X: csr_matrix, best: Answer, near: Labels, n_jobs: int | None) -> Answer:
        """Return the candidates of samples, and the evidence for each (see `join_evidence`)."""
        return _stacked(self._over_blocks(_evidence, X, n_jobs, (*best, near)))

    def nearest(self, X: csr_matrix, n_jobs: int | None) -> Labels:
        """Return the labels whose names are nearest to samples, -1 for none."""
        return np.concatenate(self._over_blocks(_nearest, X, n_jobs, ()))

    def _over_blocks(
        self, function: Any, X: csr_matrix, n_jobs: int | None, tables: tuple[Any, ...], *more: Any
    ) -> list[Any]:
        """Return the results of a function of blocks of samples and the same rows of tables."""
        shared = (Sharded(X, *tables), self, *more)
        if len(tables) < 3:
            _ = self.postings  # so that threads do not each derive them
        return over_blocks(function, X.shape[0], _BLOCK, shared, n_jobs=n_jobs)

    def _near(self, samples: Any) -> Labels:
        postings = self.postings
        found, _ = sparse_topk(samples, frozen_csr(postings), postings.shape[1], self.n_asked)
        near: Labels = self._owners[found]
        return near

    def _joined(self, samples: Any, best: Answer, near: Labels) -> Answer:
        names, starts = self._named
        tables = (np.ascontiguousarray(each[:, :_N_RANKED]) for each in (*best, near))
        return join_evidence(  # type: ignore[no-any-return]
            samples, frozen_csr(self.features), names, starts, *frozen(tuple(tables)),
            self._log_counts, self.features.shape[1],
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be derived again from what was learned."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def cosine(self, x: csr_matrix, label: int) -> float:
        """Return the similarity of one sample and one label."""
        return float((normalize(x) @ self.features[label].T).sum())

    def covered(self, x: csr_matrix, label: int) -> float:
        """Return how much of one of a label's names a sample has at most, in [0, 1]."""
        rows = self.features[label]
        if self.names is not None and self.name_starts is not None:
            rows = self.names[self.name_starts[label] : self.name_starts[label + 1]]
        has = np.isin(rows.indices, x.indices)
        of_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        return float(np.bincount(of_row, has * rows.data**2, minlength=1).max())


class _Rows(NamedTuple):
    """Some samples as unit rows, what a tree found for them, and labels with near names."""

    samples: Any
    best: Answer
    near: Labels

    @classmethod
    def of(cls, task: OnRows, sharded: Sharded, texts: LabelTexts) -> "_Rows":
        (X, *tables), places = sharded.at(task.rows)
        rows = slice(places.start, places.stop)
        samples = frozen_csr(csr_matrix(normalize(X[rows])))
        own = frozen(tuple(table[rows] for table in tables))
        near = own[2] if len(own) > 2 else frozen(texts._near(samples))
        return cls(samples, own[:2], near)


def _nearest(task: OnRows, sharded: Sharded, texts: LabelTexts) -> Labels:
    return _Rows.of(task, sharded, texts).near


def _evidence(task: OnRows, sharded: Sharded, texts: LabelTexts) -> Answer:
    return texts._joined(*_Rows.of(task, sharded, texts))


def _combined(task: OnRows, sharded: Sharded, texts: LabelTexts, k: int) -> Answer:
    samples, best, near = _Rows.of(task, sharded, texts)
    if texts.ranker is None:
        return blend(  # type: ignore[no-any-return]
            samples, frozen_csr(texts.features), *best, near, np.float32(texts.weight), k,
            texts.features.shape[1],
        )  # fmt: skip
    found, evidence = texts._joined(samples, best, near)
    n_best = k if k <= _N_RANKED else found.shape[1]
    ranked = merge_nearest(found, texts.ranker.probabilities(evidence), n_best)
    return _with_others(ranked, (best[0][:, _N_RANKED:], best[1][:, _N_RANKED:]), k)


def _stacked(blocks: list[Answer]) -> Answer:
    return np.concatenate([a for a, _ in blocks]), np.concatenate([b for _, b in blocks])


def _check_starts(starts: Any, n_labels: int, n_names: int) -> IntArray:
    found = np.asarray(starts)
    whole = found.shape == (n_labels + 1,) and np.issubdtype(found.dtype, np.integer)
    if not whole or found[0] != 0 or found[-1] != n_names or (np.diff(found) < 0).any():
        raise FeaturesError(
            f"label_names.starts does not divide {n_names:,} names among {n_labels:,} labels: "
            f"expected {n_labels + 1:,} integers that rise from 0 to {n_names:,}"
        )
    return found.astype(np.int64)


def _unit(features: Features) -> csr_matrix:
    return csr_matrix(normalize(csr_matrix(features)), dtype=np.float32)


def _rows_kept(features: csr_matrix, kept: npt.NDArray[np.float32]) -> csr_matrix:
    features = csr_matrix(diags(kept) @ features)
    features.eliminate_zeros()
    return features


def _with_others(ranked: Answer, others: Answer, k: int) -> Answer:
    """What a ranker ranks, then further labels of the tree, whose scores go on from the last one.

    So the first labels are the same for every `k`.
    """
    if k <= _N_RANKED:
        return ranked
    labels, scores = others
    is_new = ~(labels[:, :, None] == ranked[0][:, None, :]).any(axis=2)
    lowest = np.where(np.isfinite(ranked[1]), ranked[1], 1).min(axis=1, keepdims=True)
    more = (lowest * np.clip(scores, 0, 1)).astype(np.float32)
    return merge_nearest(  # type: ignore[no-any-return]
        np.concatenate([ranked[0], np.where(is_new, labels, -1)], axis=1),
        np.concatenate([ranked[1], more], axis=1),
        k,
    )
