"""From the JSON and the arrays of a model folder back to the model; the inverse of `pack`."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from umpteen.errors import ModelCorruptError
from umpteen.storage.arrays import Array, number_dtype
from umpteen.storage.checking import check_loaded
from umpteen.storage.declarations import Within, is_rising
from umpteen.storage.packing import Json
from umpteen.storage.registry import find_class, is_estimator, is_fitted, unsaved_parameters


def unpack(content: Json, arrays: list[Array], made_by: str = "") -> Any:
    """Return the object that `pack` was given, checked against the declarations of its classes.

    `made_by` is the version of umpteen that saved it; objects of older versions are upgraded.
    """
    model = _Unpacker(arrays, made_by).unpack(content)
    check_loaded(model)
    return model


class _Unpacker:
    def __init__(self, arrays: list[Array], made_by: str) -> None:
        self._arrays = arrays
        self._unused = set(range(len(arrays)))
        self.made_by = made_by

    def unpack(self, content: Json) -> Any:
        if isinstance(content, list):
            return [self.unpack(value) for value in content]
        if not isinstance(content, dict):
            return content
        ((kind, value),) = content.items()
        return self._kinds[kind](self, value)

    def _take(self, number: int) -> Array:
        """An array, once: a small folder must not become a large model by naming it often."""
        if number not in self._unused:
            raise ModelCorruptError(f"manifest.json names array {number!r} twice, or there is none")
        self._unused.remove(number)
        return self._arrays[number]

    def _float(self, text: str) -> float:
        return float(text)

    def _scalar(self, content: Json) -> Any:
        return np.frombuffer(bytes.fromhex(content["hex"]), number_dtype(content["dtype"]))[0]

    def _array(self, number: int) -> Array:
        return self._take(number)

    def _numbers(self, number: int) -> list[Any]:
        return list(self._take(number).tolist())

    def _texts(self, content: Json) -> list[str]:
        text: str = self._take(content["utf8"]).tobytes().decode("utf-8", "surrogatepass")
        texts = text.split(content["separator"])
        if len(texts) != content["count"]:
            raise ModelCorruptError(
                f"the model has {len(texts):,} texts where {content['count']:,} were saved: "
                "copy its folder again"
            )
        return texts

    def _tuple(self, values: Json) -> tuple[Any, ...]:
        return tuple(self.unpack(values))

    def _dict(self, content: Json) -> dict[str, Any]:
        keys, values = self.unpack(content["keys"]), self.unpack(content["values"])
        if not all(type(key) is str for key in keys):
            raise ModelCorruptError("manifest.json has a dict whose keys are not texts")
        return dict(zip(keys, values, strict=True))

    def _csr_matrix(self, content: Json) -> Any:
        return self._fill(csr_matrix, content)

    def _csr_array(self, content: Json) -> Any:
        return self._fill(csr_array, content)

    def _fill(self, cls: Any, content: Json) -> Any:
        """The parts are set afterwards: the constructor would read all of them."""
        data, indices, indptr = (
            self._take(content[part]) for part in ("data", "indices", "indptr")
        )
        shape = tuple(content["shape"])
        _check_csr(data, indices, indptr, shape)
        matrix = cls(shape)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        if content["canonical"] and not matrix.has_canonical_format:
            raise ModelCorruptError(
                f"a sparse matrix of shape {shape} has unsorted indices or duplicates"
            )
        return matrix

    def _object(self, content: Json) -> Any:
        found = find_class(content["module"], content["class"], self.made_by)
        parameters = self._members(content.get("parameters", {}))
        state = self._members(content["state"])
        found.upgrade(content.get("version", 1), parameters, state, self.made_by)
        if is_estimator(found.cls):
            return _estimator(found.cls, parameters, state)
        unsaved = unsaved_parameters(found.cls)
        kept = {name: each for name, each in state.items() if name not in unsaved}
        return _dataclass(found.cls, kept, self.made_by)

    def _members(self, members: dict[str, Json]) -> dict[str, Any]:
        return {name: self.unpack(value) for name, value in members.items()}

    _kinds: dict[str, Callable[["_Unpacker", Any], Any]] = {  # noqa: RUF012
        "float": _float,
        "scalar": _scalar,
        "array": _array,
        "numbers": _numbers,
        "texts": _texts,
        "tuple": _tuple,
        "dict": _dict,
        "csr_matrix": _csr_matrix,
        "csr_array": _csr_array,
        "object": _object,
    }


def _estimator(cls: type, parameters: dict[str, Any], state: dict[str, Any]) -> Any:
    unsaved = unsaved_parameters(cls)
    estimator = cls(**{name: each for name, each in parameters.items() if name not in unsaved})
    if not all(map(is_fitted, state)):
        raise ModelCorruptError(f"a {cls.__name__} cannot have the attributes {sorted(state)}")
    for name, value in state.items():
        setattr(estimator, name, value)
    return estimator


def _dataclass(cls: Any, state: dict[str, Any], made_by: str) -> Any:
    """Without `__init__`, so that nothing is computed or converted a second time.

    A field that was not stored is one that the class did not have yet: it gets its default.
    """
    defaults = {field.name: _default(field) for field in fields(cls)}
    unknown = [*state.keys() - defaults.keys()]
    missing = [name for name in defaults if name not in state and defaults[name] is MISSING]
    if unknown or missing:
        raise ModelCorruptError(
            f"the model holds a {cls.__name__} with fields {sorted(state)}, but here it has "
            f"{sorted(defaults)}: use the version of umpteen that saved it ({made_by})"
        )
    instance = cls.__new__(cls)
    for name, value in (defaults | state).items():
        object.__setattr__(instance, name, value)  # also where the dataclass is frozen
    return instance


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _check_csr(data: Array, indices: Array, indptr: Array, shape: tuple[int, ...]) -> None:
    fits = (
        data.ndim == indices.ndim == indptr.ndim == 1
        and len(shape) == 2
        and len(indptr) == shape[0] + 1
        and indices.dtype == indptr.dtype in (np.int32, np.int64)
        and data.dtype.isnative
        and (data.dtype.kind in "biu" or data.dtype in (np.float32, np.float64))
        and indptr[0] == 0
        and indptr[-1] == len(indices) == len(data)
        and is_rising(indptr)
        and Within(0, shape[1]).fault(indices, {}) is None
    )
    if not fits:
        raise ModelCorruptError(
            f"a sparse matrix of shape {shape} does not fit its arrays: copy the model folder again"
        )
