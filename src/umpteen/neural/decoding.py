"""Decoders: from a network's features to whole label sets, in place of the best few labels.

A decoder has `fit(features, Y)`, which gives itself, and `predict(features)`, which gives an
indicator `(n, n_labels)`: `NearestSet` and `OneVsAll` of `umpteen.collapse`, or one's own.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen.errors import LabelsError, ParameterError
from umpteen.validation import check_labels

Floats = npt.NDArray[np.float32]


class Decoder(Protocol):
    """An object that turns features into label sets; to be saved, it must be storable, too."""

    def fit(self, features: Any, Y: Any) -> Any: ...
    def predict(self, features: Any) -> Any: ...


def check_decoder(decoder: Any, single_label: bool) -> None:
    """Refuse what cannot decode, before hours of training and not after."""
    if decoder is None:
        return
    if isinstance(decoder, type):
        raise ParameterError(
            f"decoder={decoder.__name__} is a class: pass an instance, {decoder.__name__}()"
        )
    if not all(callable(getattr(decoder, name, None)) for name in ("fit", "predict")):
        raise ParameterError(
            f"decoder={decoder!r} cannot decode: it needs fit(features, Y) and predict(features), "
            "as umpteen.collapse.NearestSet() and OneVsAll() have"
        )
    if single_label:
        raise LabelsError(
            "a decoder predicts label sets, but Y is 1-D, with one class per sample: leave "
            "decoder out, or give Y as lists of labels"
        )


def fit_decoder(decoder: Any, features: Floats, labels: csr_matrix) -> Decoder:
    """Return a copy of the decoder, fitted to these features; `decoder` itself stays as it is."""
    fitted: Decoder = clone(decoder, safe=False)
    fitted.fit(features, labels)
    return fitted


def decode(decoder: Decoder, features: Floats, n_labels: int) -> csr_matrix:
    """Return the label set of each sample, an indicator `(n, n_labels)`."""
    answers = decoder.predict(features)
    sets = check_labels(
        answers, n_samples=len(features), n_labels=n_labels, name="the decoder's answer"
    )
    return csr_matrix(sets, dtype=np.int8)
