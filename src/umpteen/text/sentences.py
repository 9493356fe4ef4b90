"""SentenceVectors: texts by a pretrained encoder, where `sentence-transformers` is installed."""

from collections.abc import Iterable
from numbers import Integral
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval

from umpteen.errors import ModelNotFoundError
from umpteen.extras import require
from umpteen.storage import Size, storable
from umpteen.validation import check_parameters, check_texts, unit_rows


@storable
class SentenceVectors(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Texts as vectors of a pretrained sentence encoder, of length 1; in place of a `Vectorizer`.

    Needs `pip install 'umpteen[encoders]'`. A saved model keeps the encoder's name, not its
    weights: the encoder must be there again where it is loaded.

    Parameters
    ----------
    model : folder of a `sentence-transformers` model, or a name that is in the local cache
        already: nothing is downloaded.
    batch_size : texts that are encoded at a time.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [str],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }

    n_features_: Annotated[int, Size("features")]
    _encoder: Any = None

    def __init__(self, model: str, *, batch_size: int = 32) -> None:
        self.model = model
        self.batch_size = batch_size

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Open the encoder; nothing is learned."""
        check_parameters(self)
        self._encoder = sentence_encoder(self.model)
        self.n_features_ = dimension(self._encoder)
        return self

    def transform(self, texts: Iterable[str]) -> npt.NDArray[np.float32]:
        """(n, n_features_)."""
        if self._encoder is None:
            self.fit([])
        listed = check_texts(texts)
        if not listed:
            return np.zeros((0, self.n_features_), np.float32)
        found = self._encoder.encode(listed, batch_size=self.batch_size, show_progress_bar=False)
        return np.asarray(unit_rows(np.asarray(found, np.float32)), np.float32)


def sentence_encoder(model: str) -> Any:
    """A `SentenceTransformer` from local files."""
    library = require("sentence_transformers", "encoders")
    try:
        return library.SentenceTransformer(model, device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(
            f"there is no text encoder {model!r} on this machine ({error}): download it first "
            "and pass its folder"
        ) from error


def dimension(encoder: Any) -> int:
    """How many numbers its vectors have."""
    ask = getattr(encoder, "get_embedding_dimension", None)  # in newer versions of the library
    return int((ask or encoder.get_sentence_embedding_dimension)())
