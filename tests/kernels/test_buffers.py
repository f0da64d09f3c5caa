"""Arrays that begin at a cache line and are otherwise like any others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import wrap
from credalens.kernels.buffers import APART, LARGE, LINE, TINY, aligned_arrays, aligned_empty

common = settings(derandomize=True, deadline=None)
shapes = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple)
dtypes = st.sampled_from([np.float32, np.float64])


def assert_usual(array, shape, dtype, *, tiny=False):
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert tiny or array.size == 0 or array.ctypes.data % LINE == 0


@common
@given(shapes, dtypes)
def test_arrays_begin_at_a_cache_line(shape, dtype):
    assert_usual(aligned_empty(shape, dtype), shape, dtype)


@common
@given(st.integers(1, 5), shapes, dtypes)
def test_several_arrays_do_not_overlap(count, shape, dtype):
    arrays = aligned_arrays(count, shape, dtype)
    for n, array in enumerate(arrays):
        assert_usual(array, shape, dtype, tiny=count * array.nbytes <= TINY)
        array[...] = n
    for n, array in enumerate(arrays):
        assert (array == n).all()


def test_small_arrays_share_their_memory_and_large_ones_do_not():
    few, many = aligned_arrays(2, (1000,), np.float64), aligned_arrays(2, (LARGE // 8,), np.float64)
    assert few[0].base is few[1].base
    assert many[0].base is not many[1].base


def test_results_of_many_rows_can_be_kept_one_by_one():
    """Each has memory of its own, little larger than itself."""
    p = np.full((2, LARGE // 80 + 1, 10), 0.1)
    probability = wrap(p).probability
    assert probability.base.nbytes <= probability.nbytes + (3 * APART + 1) * LINE
