"""SentenceVectors: texts by a pretrained encoder, where `sentence-transformers` is installed."""

from collections.abc import Iterable
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval

from umpteen.errors import (
    MissingExtraError,
    ModelNotFoundError,
    NotFittedError,
    ParameterError,
)
from umpteen.extras import require
from umpteen.storage import Size, storable
from umpteen.validation import check_parameters, check_texts, unit_rows

_MIN_VERSION = 6  # before, a folder's own Python ran without being asked for


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    if state:
        state.setdefault("encoder_name_", "unknown name")


@storable(version=2, upgrades={1: _from_1})
class SentenceVectors(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Encode texts as unit vectors with a pretrained sentence encoder; replaces a `Vectorizer`.

    Needs `pip install 'umpteen[encoders]'`. A saved model stores neither the encoder nor its path,
    because a model from an untrusted source must not choose which files are opened. After
    `umpteen.load`, open the encoder with `tagger.vectorizer_.open("folder/of/the/encoder")`.

    Parameters
    ----------
    model : folder of a `sentence-transformers` model, or the name of one in the local cache.
        Nothing is downloaded. Python code in the folder is never run, and weights are read from
        safetensors files only.
    batch_size : number of texts that are encoded at a time.
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("model",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [str, PathLike, None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }

    n_features_: Annotated[int, Size("features")]
    encoder_name_: str  # of the encoder that was fitted, to tell people
    _encoder: Any = None

    def __init__(self, model: str | PathLike[str] | None = None, *, batch_size: int = 32) -> None:
        self.model = model
        self.batch_size = batch_size

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Open the encoder; nothing is learned."""
        check_parameters(self)
        if self.model is None:
            raise ParameterError(
                "model=None names no sentence encoder; pass its folder: "
                "SentenceVectors('folder/of/the/encoder')"
            )
        self._encoder = sentence_encoder(self.model)
        self.n_features_ = dimension(self._encoder)
        self.encoder_name_ = Path(self.model).name
        return self

    def open(self, model: str | PathLike[str]) -> Self:
        """Open the sentence encoder of a loaded model; it must be the one used in training."""
        encoder = sentence_encoder(model)
        if dimension(encoder) != self.n_features_:
            raise ParameterError(
                f"the encoder in {str(model)!r} gives {dimension(encoder):,} numbers for a text, "
                f"but the model was trained with one that gives {self.n_features_:,} "
                f"({self.encoder_name_}): open that one"
            )
        self.model, self._encoder = model, encoder
        return self

    def transform(self, texts: Iterable[str]) -> npt.NDArray[np.float32]:
        """Return a row of numbers for each text, `(n, n_features_)`."""
        if self._encoder is None:
            self._open_own()
        listed = check_texts(texts)
        if not listed:
            return np.zeros((0, self.n_features_), np.float32)
        found = self._encoder.encode(listed, batch_size=self.batch_size, show_progress_bar=False)
        return np.asarray(unit_rows(np.asarray(found, np.float32)), np.float32)

    def _open_own(self) -> None:
        """Open the encoder that the constructor was given, which a loaded model was not."""
        if self.model is not None:
            self.fit([])
            return
        raise NotFittedError(
            f"this model needs the sentence encoder ({self.encoder_name_}), which is not saved "
            "with it; after umpteen.load, open it with "
            "tagger.vectorizer_.open('folder/of/the/encoder')"
        )


def sentence_encoder(model: str | PathLike[str]) -> Any:
    """Return a `SentenceTransformer` from local files, none of which is run."""
    library = require("sentence_transformers", "encoders")
    if int(library.__version__.split(".")[0]) < _MIN_VERSION:
        raise MissingExtraError(
            f"sentence-transformers {library.__version__} runs whatever Python code the folder "
            f"of an encoder holds; upgrade to version {_MIN_VERSION} or later: "
            "pip install --upgrade 'umpteen[encoders]'"
        )
    try:
        return library.SentenceTransformer(
            str(model), device="cpu", local_files_only=True, trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(
            f"no text encoder {str(model)!r} can be opened on this machine ({error}): "
            "download it first and pass its folder"
        ) from error


def dimension(encoder: Any) -> int:
    """Return how many numbers its vectors have."""
    return int(encoder.get_embedding_dimension())
