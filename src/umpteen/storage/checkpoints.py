"""Checkpoints: what a later fit on the same data goes on from."""

import hashlib
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from umpteen.errors import ModelNotFoundError, ModelPathError
from umpteen.storage.checking import check_loaded

Kind = TypeVar("Kind")


def fingerprint(X: Any, Y: Any, settings: dict[str, Any]) -> str:
    """Return a few letters that tell one training from any other, by its data and settings.

    >>> fingerprint(np.eye(2), np.array([0, 1]), {"seed": 3}) == fingerprint(
    ...     np.eye(2), np.array([0, 1]), {"seed": 4}
    ... )
    False
    """
    digest = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=16)
    for matrix in (X, Y):
        arrays: list[Any]
        arrays = [matrix.data, matrix.indices, matrix.indptr] if issparse(matrix) else [matrix]  # type: ignore[attr-defined]
        for array in arrays:
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def deciding_settings(model: Any, but: tuple[str, ...], seed: int) -> dict[str, Any]:
    """Return an estimator's parameters that decide about its result: all `but` those named.

    `random_state` counts as the seed that it gave, or as None where every fit draws its own.
    """
    parameters = model.get_params(deep=False).items()
    settings = {name: value for name, value in parameters if name not in but}
    settings["random_state"] = None if model.random_state is None else seed
    return settings


def read_checkpoint(
    folder: str | PathLike[str],
    kind: type[Kind],
    expected: str,
    sizes: dict[str, int] | None = None,
) -> Kind | None:
    """Read the checkpoint in a folder, an object of `kind`; None if there is nothing yet.

    Its `fingerprint` must be the `expected` one: it belongs to the same training. `sizes` are those
    of the training, which its declarations name.
    """
    from umpteen.storage import load

    try:
        found = load(folder)
    except ModelNotFoundError:
        return None  # `save` says what is wrong with the folder, if anything is
    if not isinstance(found, kind):
        raise ModelPathError(
            f"checkpoint={str(folder)!r} holds a {type(found).__name__}, not a checkpoint of this "
            "training: choose another folder"
        )
    if found.fingerprint != expected:  # type: ignore[attr-defined]
        raise ModelPathError(
            f"the checkpoint in {str(folder)!r} belongs to another training, with other data or "
            "settings: to continue it, use the same data and settings; to start again, choose "
            "another folder or remove this one"
        )
    check_loaded(found, sizes)
    return found
