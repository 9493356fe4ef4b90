"""From a model to plain JSON and a list of arrays that keep its exact types and bits.

None, bool, int, str and finite floats stand for themselves and lists are lists; everything else
is `{kind: content}`, where an array is its number in the list.
"""

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from umpteen.errors import NotStorableError, ParameterError
from umpteen.storage.arrays import Array
from umpteen.storage.registry import (
    is_estimator,
    is_fitted,
    is_storable,
    unsaved_parameters,
    version_of,
)

Json: TypeAlias = Any
_Where: TypeAlias = tuple[str, ...]  # the path to a value, for errors: ("Tagger", ".model", "[3]")

_LONG = 1000  # JSON is slow: a longer list of texts or numbers becomes an array
_DEEP = 100
_NUMBER_KINDS = {bool: "b", int: "iu", float: "f"}


def pack(model: Any) -> tuple[Json, list[Array]]:
    """Return the JSON and the arrays that make up `model`."""
    name = type(model).__name__
    if not is_storable(model):
        raise NotStorableError(
            f"a {name} is not a model: pass an umpteen model, or an object of your own class "
            "with the decorator umpteen.storage.storable"
        )
    packer = _Packer()
    return packer.pack(model, (name,)), packer.arrays


class _Packer:
    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def pack(self, value: Any, where: _Where) -> Json:
        if len(where) > _DEEP:
            raise NotStorableError(f"{''.join(where[:4])}... holds itself, or is nested too deeply")
        if value is None or type(value) in (bool, int, str):
            return value
        pack_kind = self._kinds.get(type(value))
        if pack_kind is not None:
            return pack_kind(self, value, where)
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if is_storable(value):
            return self._object(value, where)
        raise _refusal(value, where)

    def _float(self, value: float, where: _Where) -> Json:
        return value if math.isfinite(value) else {"float": str(value)}

    def _scalar(self, value: np.generic, where: _Where) -> Json:
        if isinstance(value, np.str_):
            return str(value)
        if value.dtype.kind not in "biufc":
            raise _refusal(value, where)
        return {"scalar": {"dtype": value.dtype.str, "hex": value.tobytes().hex()}}

    def _array(self, array: Array, where: _Where) -> Json:
        if array.dtype.kind not in "biufc":
            raise _refusal(array, where)
        return {"array": self._add(array)}

    def _add(self, array: Array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _csr(self, matrix: Any, where: _Where) -> Json:
        if matrix.ndim != 2:
            raise _refusal(matrix, where)
        n_stored = int(matrix.indptr[-1])
        return {
            type(matrix).__name__: {
                "shape": [int(length) for length in matrix.shape],
                "sorted": bool(matrix.has_sorted_indices),
                "canonical": bool(matrix.has_canonical_format),
                "data": self._add(matrix.data[:n_stored]),
                "indices": self._add(matrix.indices[:n_stored]),
                "indptr": self._add(matrix.indptr),
            }
        }

    def _list(self, values: list[Any], where: _Where) -> Json:
        return self._sequence(values, range(len(values)), where)

    def _tuple(self, values: tuple[Any, ...], where: _Where) -> Json:
        return {"tuple": self._list(list(values), where)}

    def _dict(self, items: dict[Any, Any], where: _Where) -> Json:
        for key in items:
            if type(key) is not str:
                raise NotStorableError(
                    f"{''.join(where)} has the key {key!r}; only a dict with str keys can be saved"
                )
        return {
            "dict": {
                "keys": self._list(list(items), where),
                "values": self._sequence(list(items.values()), items, where),
            }
        }

    def _sequence(self, values: list[Any], keys: Iterable[Any], where: _Where) -> Json:
        long = self._long_sequence(values) if len(values) > _LONG else None
        if long is not None:
            return long
        return [
            self.pack(value, (*where, f"[{key!r}]"))
            for key, value in zip(keys, values, strict=True)
        ]

    def _long_sequence(self, values: list[Any]) -> Json:
        """Texts, or numbers of one type, as arrays; None for anything else."""
        types = set(map(type, values))
        if types <= {str, np.str_}:
            return self._texts(values)
        kinds = _NUMBER_KINDS.get(types.pop(), "") if len(types) == 1 else ""
        numbers = np.array(values) if kinds else np.array([])
        # ints beyond 64 bits become an array of another kind
        return {"numbers": self._add(numbers)} if numbers.dtype.kind in kinds else None

    def _texts(self, texts: list[str]) -> Json:
        """One text, split at a character that is in none of them: far quicker than offsets."""
        everything = "".join(texts)
        candidates = chain("\n", map(chr, range(sys.maxunicode)))
        separator = next(character for character in candidates if character not in everything)
        encoded = separator.join(texts).encode("utf-8", "surrogatepass")
        utf8 = self._add(np.frombuffer(encoded, np.uint8))
        return {"texts": {"utf8": utf8, "separator": separator, "count": len(texts)}}

    def _object(self, value: Any, where: _Where) -> Json:
        cls = type(value)
        packed: Json = {
            "class": cls.__qualname__, "module": cls.__module__, "version": version_of(cls),
        }  # fmt: skip
        if is_estimator(value):
            packed["parameters"] = self._parameters(value, where)
            state = {name: v for name, v in vars(value).items() if is_fitted(name)}
        else:
            unsaved = unsaved_parameters(cls)
            names = [field.name for field in fields(value) if field.name not in unsaved]
            state = {name: getattr(value, name) for name in names}
        return {"object": packed | {"state": self._members(state, where)}}

    def _parameters(self, estimator: Any, where: _Where) -> Json:
        unsaved, given = unsaved_parameters(type(estimator)), estimator.get_params(deep=False)
        parameters = {name: value for name, value in given.items() if name not in unsaved}
        for name, value in parameters.items():
            if isinstance(value, np.random.Generator | np.random.RandomState):
                raise ParameterError(
                    f"{''.join(where)} has {name}={value}, whose state changes with use and "
                    f"cannot be saved: pass an int as the seed, for example {name}=0"
                )
        return self._members(parameters, where)

    def _members(self, members: dict[str, Any], where: _Where) -> Json:
        return {name: self.pack(value, (*where, f".{name}")) for name, value in members.items()}

    _kinds: dict[type, Callable[["_Packer", Any, _Where], Json]] = {  # noqa: RUF012
        float: _float,
        list: _list,
        tuple: _tuple,
        dict: _dict,
        np.ndarray: _array,
        np.memmap: _array,
        csr_matrix: _csr,
        csr_array: _csr,
    }


def _refusal(value: Any, where: _Where) -> NotStorableError:
    what = f"a {type(value).__module__}.{type(value).__name__}"
    if hasattr(value, "dtype"):
        what += f" of dtype {value.dtype}"
    if hasattr(value, "shape"):
        what += f" and shape {value.shape}"
    return NotStorableError(
        f"{''.join(where)} is {what}, which cannot be saved. Numbers, texts, numeric arrays, "
        "scipy CSR matrices, lists, tuples and dicts of these can, and objects of classes with "
        "the decorator umpteen.storage.storable"
    )
