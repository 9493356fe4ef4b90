import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from umpteen.kernels.hashing import (
    SEED,
    find,
    finish,
    free_slots,
    index,
    join,
    number,
    places,
    stir,
)

# Few different keys that crowd into the same slots, and any others.
keys = st.lists(st.integers(0, 5).map(lambda i: i << 60 | 1) | st.integers(0, 2**64 - 1))


def as_keys(values):
    return np.array(values, np.uint64)


@given(keys)
def test_equal_keys_get_equal_numbers_by_first_occurrence(values):
    numbers, firsts = number(as_keys(values))
    different = list(dict.fromkeys(values))
    assert numbers.tolist() == [different.index(value) for value in values]
    assert firsts.tolist() == [values.index(value) for value in different]


@given(keys, keys)
def test_keys_are_found_where_they_stand_and_no_others(values, others):
    values = list(dict.fromkeys(values))
    found = places(as_keys(values + others), index(as_keys(values)), as_keys(values))
    expected = [values.index(key) if key in values else -1 for key in values + others]
    assert found.tolist() == expected


@given(st.integers(0, 10_000))
def test_a_table_always_has_free_slots(n_keys):
    size = len(free_slots(n_keys))
    assert size & (size - 1) == 0
    assert size > 1.5 * n_keys


def test_an_empty_table_holds_nothing():
    slots = np.zeros(1, np.int32)
    assert slots[find(np.uint64(7), slots, as_keys([]))] == 0


def word(*letters):
    """The hash of code points; arrays of them give arrays, numbers arrays of one."""
    key = np.atleast_1d(SEED)
    for letter in letters:
        key = stir(key, np.atleast_1d(np.uint64(letter)))
    return finish(key)


def test_hashes_stay_as_they_are():
    """Saved vocabularies hold them: other hashes would make every saved model forget its words."""
    assert word(0x61, 0x4E2D).tolist() == [0x13C7F709CBB09125]
    assert join(word(0x61), word(0x4E2D)).tolist() == [0xD2E6DF785FC2F4EB]


def test_order_matters_in_pairs():
    a, b = word(1), word(2)
    assert len({*join(a, b).tolist(), *join(b, a).tolist(), *join(a, a).tolist()}) == 3


def test_each_bit_of_a_hash_depends_on_each_bit_that_went_in():
    left, right = np.random.default_rng(0).integers(0, 2**64, (2, 4000), np.uint64)
    before = join(left, right)
    for bit in np.uint64(1) << np.arange(64, dtype=np.uint64):
        for after in (join(left ^ bit, right), join(left, right ^ bit)):
            flipped = np.unpackbits((before ^ after).view(np.uint8)).reshape(-1, 64)
            assert np.abs(flipped.mean(axis=0) - 0.5).max() < 0.05


def test_short_words_spread_evenly_over_slots_and_do_not_collide():
    letters = np.arange(32, 1056, dtype=np.uint64)
    hashes = word(np.repeat(letters, len(letters)), np.tile(letters, len(letters)))
    assert len(np.unique(hashes)) == len(letters) ** 2
    for bits in (hashes & np.uint64(2**16 - 1), hashes >> np.uint64(48)):
        filled = np.bincount(bits.astype(int), minlength=2**16)  # 16 in each on average
        assert 15.5 < filled.var() < 16.5
