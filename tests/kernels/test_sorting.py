import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from umpteen.kernels.sorting import best_to_front, sort_ids, stable_order


@given(st.integers(0, 2**31 - 1).flatmap(lambda top: st.lists(st.integers(0, top), max_size=200)))
def test_few_and_many_numbers_are_sorted(numbers):
    array = np.array(numbers, np.int32)
    sort_ids(array, np.empty_like(array), max(numbers, default=0))
    assert array.tolist() == sorted(numbers)


@given(arrays(np.float32, st.integers(0, 200), elements=st.integers(-9, 9).map(float)))
def test_equal_keys_keep_their_order(keys):
    """Otherwise the same seed could give another tree with another release."""
    np.testing.assert_array_equal(stable_order(keys), np.argsort(keys, kind="stable"))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=50), st.data())
def test_the_best_come_to_the_front_and_of_equals_the_first(values, data):
    n_best = data.draw(st.integers(1, len(values)))
    ids = np.array(data.draw(st.permutations(range(len(values)))), np.int32)
    values = np.array(values, np.float32)
    expected = sorted(zip(-values, ids, strict=True))[:n_best]
    best_to_front(ids, values, n_best)
    assert sorted(zip(-values[:n_best], ids[:n_best], strict=True)) == expected
