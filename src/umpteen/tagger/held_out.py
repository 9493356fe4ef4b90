"""Answers to samples that were not learned from."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.errors import ParameterError
from umpteen.metrics.hits import found_in
from umpteen.storage import Shape, Within, storable
from umpteen.validation import check_label_lists, check_texts

if TYPE_CHECKING:
    from umpteen.tagger.tagger import Tagger

RANKS = 20  # answers per sample that take part


@storable
@dataclass(eq=False, frozen=True)
class HeldOut:
    """Answers to samples that were not learned from: probabilities and which are right."""

    labels: Annotated[npt.NDArray[np.int32], Shape("samples", "k"), Within(-1, "labels")]
    probabilities: Annotated[npt.NDArray[np.float32], Shape("samples", "k")]
    hits: Annotated[npt.NDArray[np.bool_], Shape("samples", "k")]
    n_relevant: Annotated[npt.NDArray[np.int64], Shape("labels")]  # samples of each label

    @classmethod
    def of(cls, top: TopK, Y: csr_matrix) -> "HeldOut":
        """From answers with probabilities, and the right labels."""
        n_relevant = np.bincount(Y.indices, minlength=Y.shape[1])
        return cls(top.labels, top.scores, found_in(Y, top.labels), n_relevant)

    @cached_property
    def tuned(self) -> dict[str, Any]:
        """Thresholds that were chosen on these answers, by their metric."""
        return {}

    def without(self, labels: npt.NDArray[np.int32]) -> "HeldOut":
        """As if some labels were neither answered nor relevant."""
        gone = np.isin(self.labels, labels)
        n_relevant = self.n_relevant.copy()
        n_relevant[labels] = 0
        return HeldOut(
            np.where(gone, -1, self.labels), self.probabilities, self.hits & ~gone, n_relevant
        )


def judged(tagger: "Tagger", texts: Any, labels: Any) -> HeldOut:
    """The answers of a tagger to some texts; without any, those to the texts that it held out."""
    if texts is not None:
        texts = check_texts(texts)
        lists = check_label_lists(labels, len(texts))
        if not texts:
            raise ParameterError("there are no texts to tune on: the list is empty")
        names = tagger.label_names_.with_unknown(lists)
        return HeldOut.of(tagger.predict_topk(texts, RANKS).padded(RANKS), names.matrix(lists))
    if labels is not None:
        raise ParameterError("there are labels but no texts to tune on: give both, or neither")
    if tagger.held_out_ is None:
        raise ParameterError(
            "no texts were held out when this tagger was fitted: give texts and labels that "
            "it did not learn from"
        )
    return tagger.held_out_
