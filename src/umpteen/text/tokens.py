"""Tokens: texts as the token ids of a pretrained model, for `umpteen.neural.Transformer`."""

from collections.abc import Iterable, Iterator
from numbers import Integral
from os import PathLike
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval

from umpteen.errors import ModelNotFoundError, NotFittedError, ParameterError
from umpteen.extras import require
from umpteen.storage import Size, Sizes, storable
from umpteen.validation import check_parameters, check_texts


@storable
class Tokens(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Write texts as token ids for `umpteen.neural.Transformer`; replaces a `Vectorizer`.

    Needs `pip install 'umpteen[encoders]'`. Entry j of a row is one plus the id of the text's j-th
    token; 0 is no token. Longer texts are cut off. A saved model contains the tokenizer, but not
    the path `model`.

    Parameters
    ----------
    model : folder of a model of `transformers`, or the name of one in the local cache. Nothing is
        downloaded, and Python code in the folder is never run.
    max_length : maximum number of tokens of a text, special ones included.
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("model",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [str, PathLike, None],
        "max_length": [Interval(Integral, 3, None, closed="left")],
    }

    n_features_: Annotated[int, Size("features")]
    tokenizer_: str  # JSON of the library `tokenizers`
    _tokenizer: Any = None

    def __init__(self, model: str | PathLike[str] | None = None, *, max_length: int = 128) -> None:
        self.model = model
        self.max_length = max_length

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Open the tokenizer; nothing is learned."""
        check_parameters(self)
        if self.model is None:
            raise ParameterError(
                "model=None names no tokenizer; pass the folder of a model: Tokens('folder')"
            )
        library = require("transformers", "encoders")
        try:
            found = library.AutoTokenizer.from_pretrained(
                str(self.model), local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError) as error:
            raise ModelNotFoundError(
                f"no tokenizer {str(self.model)!r} can be opened on this machine ({error}): "
                "download it first and pass its folder"
            ) from error
        if not hasattr(found, "backend_tokenizer"):
            raise ParameterError(
                f"the tokenizer {type(found).__name__} is written in Python only and cannot be "
                "saved: use a model with a tokenizer.json"
            )
        self.tokenizer_, self._tokenizer = found.backend_tokenizer.to_str(), None
        self.n_features_ = int(self.max_length)
        return self

    def transform(self, texts: Iterable[str]) -> csr_matrix:
        """Return token ids plus one, `(n, max_length)`."""
        if not hasattr(self, "tokenizer_"):
            raise NotFittedError("this Tokens is not fitted yet: call fit(texts) first")
        if self._tokenizer is None:
            self._tokenizer = self._opened()
        codes = self._tokenizer.encode_batch(check_texts(texts))
        ids = [np.asarray(code.ids, np.float32) + 1 for code in codes]
        starts = np.cumsum([0, *map(len, ids)], dtype=np.int32)
        places = [np.arange(len(each), dtype=np.int32) for each in ids]
        flat = np.concatenate([np.zeros(0, np.float32), *ids])
        columns = np.concatenate([np.zeros(0, np.int32), *places])
        return csr_matrix((flat, columns, starts), shape=(len(ids), self.n_features_))

    def _opened(self) -> Any:
        tokenizer = require("tokenizers", "encoders").Tokenizer.from_str(self.tokenizer_)
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.n_features_)
        return tokenizer

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a tokenizer that cannot be read."""
        try:
            self._opened()
        except ImportError:
            return
        except Exception as error:  # the library raises no other
            yield f"has a tokenizer that cannot be read ({error})"
