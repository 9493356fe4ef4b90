"""Values on their way to other machines: a little pickle, and each large array by itself.

Pickles go between processes of one cluster only, which run each other's code anyway.
"""

import io
import pickle
import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.extras import require

Bytes = npt.NDArray[np.uint8]

_SMALL = 1 << 16  # bytes: a smaller array travels in the pickle


class Parcel(NamedTuple):
    """A value in pieces: `rest` is its pickle without the large arrays, which are in `arrays`.

    `frozen` says which of the arrays were read-only.
    """

    rest: bytes
    arrays: list[Bytes]
    frozen: list[bool]

    @property
    def n_bytes(self) -> int:
        """Return the size of all pieces."""
        return len(self.rest) + sum(array.nbytes for array in self.arrays)


def pack(value: Any, pickler: Any = pickle) -> Parcel:
    """Take a value apart; `pickler` may be one that also takes functions of `__main__`.

    >>> unpack(pack({"a": np.arange(3)}))
    {'a': array([0, 1, 2])}
    """
    buffers: list[memoryview] = []

    def stays_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _SMALL:
            return True
        buffers.append(raw)
        return False

    rest = pickler.dumps(value, protocol=5, buffer_callback=stays_inside)
    arrays = [np.frombuffer(raw, np.uint8) for raw in buffers]
    return Parcel(rest, arrays, [raw.readonly for raw in buffers])


def fingerprint(value: Any, pickler: Any = pickle) -> str:
    """Return letters that tell a value from any other, in every process.

    A pickle alone does not: it depends on which arrays share an object for their type.

    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3).astype(np.dtype("i8", copy=True)))
    True
    """

    class Canonical(pickler.Pickler):  # type: ignore[misc, name-defined]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, np.ndarray | np.generic) and not thing.dtype.hasobject:
                content = np.ascontiguousarray(thing).reshape(-1).view(np.uint8)
                return tuple, ((sys.intern(repr(thing.dtype)), thing.shape, digest(content)),)
            inherited = getattr(super(), "reducer_override", None)
            return NotImplemented if inherited is None else inherited(thing)

    file = io.BytesIO()
    Canonical(file, protocol=5).dump(value)
    return digest(file.getvalue())


def unpack(parcel: Parcel) -> Any:
    """Put a value together in place: its large arrays are those of the parcel, and read-only."""
    return pickle.loads(parcel.rest, buffers=[_read_only(array) for array in parcel.arrays])  # noqa: S301


def unpack_copy(parcel: Parcel) -> Any:
    """Put a value together from copies, so that it is the same as where it was packed.

    Arrays that were read-only are so again, and others can be written to.
    """
    copies = [
        array.tobytes() if frozen else bytearray(array)
        for array, frozen in zip(parcel.arrays, parcel.frozen, strict=True)
    ]
    return pickle.loads(parcel.rest, buffers=copies)  # noqa: S301


def _read_only(array: Bytes) -> memoryview:
    return array.data.toreadonly()


def digest(*pieces: bytes | Bytes) -> str:
    """Return letters that tell these bytes from any others.

    They are read at the speed of memory. Different bytes have the same letters by chance only, but
    somebody could make such bytes on purpose.

    >>> digest(b"a", b"b") == digest(b"ab")
    False
    """
    whole = require("xxhash", "cluster").xxh3_128(repr(list(map(len, pieces))).encode())
    for piece in pieces:
        whole.update(piece)
    return str(whole.hexdigest())
