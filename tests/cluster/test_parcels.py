"""Values on their way: the same when they arrive, and no kernel is compiled for them again."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tests.cluster.models import fitted, small_tasks  # noqa: F401
from umpteen import parallel
from umpteen.cluster import parcels


def test_large_arrays_arrive_in_place_and_read_only():
    """A copy for each worker would fill a node with many cores."""
    large, small = np.arange(100_000.0), np.arange(3)
    parcel = parcels.pack({"large": csr_matrix(large), "small": small})
    found = parcels.unpack(parcel)
    assert len(parcel.rest) < 10_000 < parcel.n_bytes
    assert np.shares_memory(found["large"].data, large) is False  # csr_matrix took the non-zero
    assert any(np.shares_memory(found["large"].data, array) for array in parcel.arrays)
    assert not found["large"].data.flags.writeable
    np.testing.assert_array_equal(found["large"].toarray()[0], large)
    np.testing.assert_array_equal(found["small"], small)


def test_copies_may_be_written_to_where_that_was_possible():
    frozen, free = np.arange(100_000.0), np.arange(100_000.0)
    frozen.flags.writeable = False
    parcel = parcels.pack((frozen, free))
    copies = parcels.unpack_copy(parcel)
    assert [copy.flags.writeable for copy in copies] == [False, True]
    copies[1][:] = 0
    np.testing.assert_array_equal(parcels.unpack_copy(parcel)[1], free)


@pytest.mark.parametrize("size", [1, 16, 100, 300])
def test_digests_tell_contents_apart(size):
    """Every byte counts; otherwise a cluster would train on the wrong one of two arrays."""
    array = np.arange(size, dtype=np.uint8)
    digests = {parcels.digest(array), parcels.digest(array[:-1]), parcels.digest(array, array)}
    for place in range(size):
        other = array.copy()
        other[place] ^= 1
        digests.add(parcels.digest(other))
    assert len(digests) == size + 3
    assert parcels.digest(array) == parcels.digest(bytes(array)) in digests
    assert parcels.digest(array[:1], array[1:]) not in digests
    assert parcels.digest(b"", array) not in digests


class FromStore:
    """An engine in this process whose tasks get arrays as those of an object store are."""

    width = 3

    def __init__(self):
        self.n_tasks = 0

    def map(self, function, items, shared):
        function, shared = parcels.unpack(parcels.pack((function, shared)))
        for item in items:
            self.n_tasks += 1
            result = function(parcels.unpack(parcels.pack(item)), *shared)
            yield parcels.unpack_copy(parcels.pack(result))


def signatures():
    """The types that each kernel was compiled for."""
    modules = [module for name, module in sys.modules.items() if name.startswith("umpteen.kernels")]
    found = {each for module in modules for each in vars(module).values() if hasattr(each, "stats")}
    return {each.__name__: len(each.signatures) for each in found}


@pytest.mark.parametrize("smallest", [0, 1000])  # all arrays read-only, and some of them
@pytest.mark.parametrize("name", ["LabelTree", "Tagger", "Eagle", "Ensemble"])
@pytest.mark.usefixtures("small_tasks")
def test_kernels_are_compiled_once_for_arrays_from_anywhere(name, smallest, monkeypatch):
    """Numba takes half a minute for all of them, in each worker of a fresh cluster."""
    monkeypatch.setattr(parcels, "_SMALL", smallest)
    expected, before, engine = fitted(name), signatures(), FromStore()
    with parallel.engine(engine):
        assert fitted(name) == expected
    assert engine.n_tasks > 3
    assert signatures() == before


def test_fingerprints_do_not_depend_on_shared_objects():
    """A restarted fit would compute again what it has: its arrays have other types by identity."""
    one = np.arange(3, dtype=np.dtype("i4"))
    other = np.arange(3).astype(np.dtype("i4", copy=True))
    assert one.dtype is not other.dtype
    assert parcels.fingerprint((one, one.copy())) == parcels.fingerprint((one, other))
    assert parcels.fingerprint((one, one[::-1])) != parcels.fingerprint((one, other))
    assert parcels.fingerprint(one) != parcels.fingerprint(one.astype(np.int64))
    assert parcels.fingerprint(np.float32(1)) != parcels.fingerprint(np.float32(2))
