import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from umpteen.kernels.tfidf import _sort


@given(st.integers(0, 2**31 - 1).flatmap(lambda top: st.lists(st.integers(0, top), max_size=200)))
def test_few_and_many_numbers_are_sorted(numbers):
    array = np.array(numbers, np.int32)
    _sort(array, np.empty_like(array), max(numbers, default=0))
    assert array.tolist() == sorted(numbers)
