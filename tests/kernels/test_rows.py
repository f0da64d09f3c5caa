"""One row after the other: every class position counts, and no kernel leaves the memory it was given."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import intersection_probability, lower_entropy, probability_intervals, upper_entropy, wrap
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels.decompose import decompose_bounds, decompose_members
from credalens.kernels.lower.enumeration import flips_workspace
from credalens.kernels.lower.solve import enumerate_records, enumerate_rows, records_workspace, search_workspace
from credalens.kernels.members import bounds_rows, fold_rows, intersect_rows
from credalens.kernels.upper import water_fill_rows
from tests import oracles
from tests.strategies import KINDS, batch_of

ALLOWED = 1e-5
SENTINEL = 777.0


def fold(members):
    rows = members.shape[1:]
    lower, upper, mean = np.full((3, *rows), SENTINEL)
    good = bounds_rows(members, 0, rows[0], ALLOWED, lower, upper, mean)
    return good, lower, upper, mean


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", range(1, 41))
def test_bounds_are_those_of_numpy(classes, dtype):
    members = batch_of("flat", 3, 4, classes, seed=classes).astype(dtype)
    good, lower, upper, mean = fold(members)
    p = members.astype(np.float64)
    total = p.sum(axis=-1, keepdims=True)
    p = np.where(np.abs(total - 1) <= 1e-14, p, p / total)
    assert good
    np.testing.assert_allclose(lower, p.min(axis=0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(upper, p.max(axis=0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(mean, p.mean(axis=0), rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", range(1, 41))
def test_one_bad_value_is_found_in_every_member_and_class(classes, dtype):
    """Whatever its place, a negative number whose row still sums to one included; the row is the last of three."""
    members = batch_of("flat", 3, 3, classes, seed=classes).astype(dtype)
    for n in range(3):
        for k in range(classes):
            for value in (np.nan, np.inf, -np.inf, 1.5, -0.25):
                bad = members.copy()
                bad[n, 2, k] = value
                assert not fold(bad)[0], (n, k, value)
            if classes > 1:
                bad = members.copy()
                bad[n, 2, (k + 1) % classes] += bad[n, 2, k] + dtype(1e-6)
                bad[n, 2, k] = -1e-6
                assert not fold(bad)[0], (n, k)
    assert fold(members)[0]


@pytest.mark.parametrize("classes", [1, 5, 8, 9, 16, 17, 24])
def test_rows_whose_sum_is_off_by_more_than_allowed(classes):
    members = batch_of("flat", 2, 3, classes)
    for factor, good in (
        (1 + 0.9 * ALLOWED, True),
        (1 - 0.9 * ALLOWED, True),
        (1 + 1.1 * ALLOWED, False),
        (0.0, False),
    ):
        scaled = members.copy()
        scaled[1, 1] *= factor
        found, lower, upper, _ = fold(scaled)
        assert found == good
        if good:
            np.testing.assert_allclose(lower, members.min(axis=0), rtol=1e-12, atol=0)
            np.testing.assert_allclose(upper, members.max(axis=0), rtol=1e-12, atol=0)


CLASSES = [*range(2, 41), 63, 64, 65, 66, 100]


@pytest.mark.parametrize("classes", CLASSES)
def test_wrap_agrees_with_the_functions_for_bounds(classes):
    for number, kind in zip((1, 2, 5, 50, 3, 4, 5, 2, 5, 6), KINDS, strict=True):
        members = batch_of(kind, number, 6, classes, seed=classes)
        prediction, (lower, upper) = wrap(members), probability_intervals(members)
        np.testing.assert_array_equal(prediction.lower, lower)
        np.testing.assert_array_equal(prediction.upper, upper)
        np.testing.assert_allclose(prediction.mean, members.mean(axis=0), rtol=0, atol=1e-15)
        np.testing.assert_allclose(prediction.probability, intersection_probability(lower, upper), rtol=0, atol=1e-15)
        np.testing.assert_allclose(prediction.total, upper_entropy(lower, upper), rtol=0, atol=1e-13)
        np.testing.assert_allclose(prediction.aleatoric, lower_entropy(lower, upper), rtol=0, atol=2e-12)
        for row in range(3):
            expected, _ = oracles.upper_entropy(members.min(axis=0)[row], members.max(axis=0)[row])
            np.testing.assert_allclose(prediction.total[row], expected, rtol=0, atol=1e-12)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 5),
    st.integers(2, 8),
    st.sampled_from([9, 16, 24, 25, 40]),
    st.integers(0, 2**32 - 1),
)
def test_few_classes_among_many_that_all_members_agree_on(kind, number, few, classes, seed):
    """The rest are points, at any positions: what is open is small enough to try every vertex."""
    rng = np.random.default_rng(seed)
    part = batch_of(kind, number, 1, few, seed=seed)[:, 0]
    rest, share = rng.dirichlet(np.ones(classes - few)), rng.choice([0.0, 0.3, 0.9])
    members = np.concatenate([(1 - share) * part, np.tile(share * rest, (number, 1))], axis=1)
    members = np.ascontiguousarray(members[:, None, rng.permutation(classes)])
    found, class_outputs = np.empty((3, 1)), np.empty((4, 1, classes))
    records, workspace = records_workspace(1, classes), search_workspace(classes)
    size = decompose_members(
        members, 0, 1, ALLOWED, TOLERANCE, tuple(class_outputs), tuple(found), records, workspace, np.empty(number)
    )
    left = np.empty(1, np.int64)
    assert enumerate_records(records, size, TOLERANCE, MAX_NODES, found[1], found[2], left, flips_workspace()) == 0
    vertices = (1 - share) * oracles.vertices(part.min(axis=0), part.max(axis=0))
    expected = oracles.entropy(vertices).min() + oracles.entropy(share * rest)
    np.testing.assert_allclose(found[1:, 0], expected, rtol=0, atol=2e-11)


def in_a_larger_buffer(array, value=SENTINEL):
    """The same array, contiguous, in the middle of one filled with ``value``; and the larger one."""
    buffer = np.full(array.size + 64, value).astype(array.dtype)
    inside = buffer[32:-32].reshape(array.shape)
    inside[:] = array
    return inside, buffer


def assert_untouched(buffers):
    for buffer in buffers:
        around = np.concatenate([buffer[:32], buffer[-32:]])
        np.testing.assert_array_equal(around, np.full(64, buffer[0]))


def guarded(arrays, fill):
    """Arrays filled with what they may not be read for, each inside a larger buffer."""
    pairs = [in_a_larger_buffer(np.full(array.shape, fill).astype(array.dtype)) for array in arrays]
    return tuple(pair[0] for pair in pairs), [pair[1] for pair in pairs]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 40, 64, 100])
def test_kernels_stay_in_their_memory_and_read_nothing_left_there(classes, dtype):
    """Members among NaN, results and scratch memory among sentinels, scratch filled with one thing and then another."""
    given = np.concatenate([batch_of(kind, 5, 3, classes, seed=classes) for kind in KINDS], axis=1).astype(dtype)
    rows = given.shape[1]
    members, around = in_a_larger_buffer(given, np.nan)
    seen = []
    for fill in (-5e8, 3e-5):
        class_outputs, beside = guarded([np.empty((rows, classes), dtype)] * 4, SENTINEL)
        row_outputs, more = guarded([np.empty(rows)] * 3, SENTINEL)
        left, last = guarded([np.empty(rows, np.int64)], 0)
        scratch, within = guarded(search_workspace(classes), fill)
        flips, around_flips = guarded(flips_workspace(), fill)
        (scales, records), few = guarded([np.empty(5), records_workspace(rows, classes)], fill)
        size = decompose_members(
            members, 0, rows, ALLOWED, TOLERANCE, class_outputs, row_outputs, records, scratch, scales
        )
        assert size >= 0
        enumerate_records(records, size, TOLERANCE, MAX_NODES, *row_outputs[1:], *left, flips)
        low, high = (np.ascontiguousarray(x, np.float64) for x in class_outputs[:2])
        again, yet = guarded([np.empty(rows)] * 3, SENTINEL)
        (point,), other = guarded([np.empty((rows, classes), dtype)], SENTINEL)
        decompose_bounds(low, high, TOLERANCE, point, again, records, scratch)
        (value, bound, p), rest = guarded([np.empty(rows), np.empty(rows), low], SENTINEL)
        value[:], bound[:] = np.inf, -np.inf
        enumerate_rows(low, high, TOLERANCE, MAX_NODES, value, bound, p, *left, scratch, flips)
        assert_untouched([*beside, *more, *last, *within, *around_flips, *yet, *other, *few, *rest])
        assert np.isnan(around[:32]).all()
        seen.append([x.copy() for x in (*class_outputs, *row_outputs, *again, point, value, bound, p)])
    for one, two in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("classes", [1, 3, 8, 9, 16, 25])
def test_passes_over_bounds_stay_in_their_memory(classes):
    members = batch_of("flat", 3, 4, classes, seed=classes)
    for row in range(4):
        (lower, upper, mean, point, q), beside = guarded([np.empty((1, classes))] * 5, SENTINEL)
        (entropy,), more = guarded([np.empty(1)], SENTINEL)
        (scratch, scales), within = guarded([search_workspace(classes)[0], np.empty(3)], -5e8)
        assert fold_rows(members, row, row + 1, ALLOWED, lower, upper, mean, scratch, scales)
        intersect_rows(lower, upper, point, scratch)
        water_fill_rows(lower, upper, entropy, q, scratch)
        assert_untouched([*beside, *more, *within])
        np.testing.assert_allclose(point.sum(), 1, rtol=0, atol=1e-14)
        np.testing.assert_allclose(oracles.entropy(q), entropy, rtol=0, atol=1e-13)


AT_THE_END_OF_A_PAGE = """
import ctypes, mmap, sys
import numpy as np
from credalens.kernels.decompose import decompose_members
from credalens.kernels.lower.enumeration import flips_workspace
from credalens.kernels.lower.solve import enumerate_records, records_workspace
from credalens.kernels.lower.solve import search_workspace

libc = ctypes.CDLL(None, use_errno=True)
kept = []

def walled(array, *, end):
    "A copy whose last byte, or whose first, is next to memory that nobody may touch."
    pages = -(-array.nbytes // mmap.PAGESIZE) + 2
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    kept.append(memory)
    raw = np.frombuffer(memory, np.uint8)
    base = raw.ctypes.data
    for page in (0, pages - 1):
        assert libc.mprotect(ctypes.c_void_p(base + page * mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    start = raw.size - mmap.PAGESIZE - array.nbytes if end else mmap.PAGESIZE
    inside = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    inside[:] = array
    return inside

rng = np.random.default_rng(0)
for dtype in (np.float64, np.float32):
    for classes in (2, 7, 8, 9, 16, 23, 25, 100):
        members = rng.dirichlet(np.full(classes, 0.3), (3, 5)).astype(dtype)
        for end in (False, True):
            class_outputs = tuple(walled(np.empty((5, classes), dtype), end=end) for _ in range(4))
            row_outputs = tuple(walled(np.empty(5), end=end) for _ in range(3))
            left = walled(np.empty(5, np.int64), end=end)
            scratch = tuple(walled(np.zeros(x.shape, x.dtype), end=end) for x in search_workspace(classes))
            flips = tuple(walled(np.zeros(x.shape, x.dtype), end=end) for x in flips_workspace())
            given, scales = walled(members, end=end), walled(np.empty(3), end=end)
            records = walled(np.empty(records_workspace(5, classes).shape), end=end)
            size = decompose_members(given, 0, 5, 1e-5, 1e-12, class_outputs, row_outputs, records, scratch, scales)
            assert enumerate_records(records, size, 1e-12, 1000, *row_outputs[1:], left, flips) == 0
            np.testing.assert_allclose(class_outputs[3], members.mean(axis=0), rtol=0, atol=1e-6)
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="asks the system for memory that must not be touched")
def test_nothing_is_read_or_written_next_to_an_array():
    """Members, results and scratch memory at the very beginning and end of pages: a lane too far would end the process."""
    command = [sys.executable, "-c", AT_THE_END_OF_A_PAGE]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert result.returncode == 0, (result.returncode, result.stderr)


@pytest.mark.processes
def test_memory_that_is_not_cleared_does_not_show():
    """Fresh memory filled with another byte by the system's allocator: the same numbers."""
    code = """
import hashlib, numpy as np, credalens
rng = np.random.default_rng(0)
for classes in (3, 8, 21, 24, 33, 100):
    found = credalens.wrap(rng.dirichlet(np.full(classes, 0.2), (4, 40)), threads=1)
    print(*(hashlib.sha256(np.asarray(getattr(found, n)).tobytes()).hexdigest() for n in ("lower", "total", "aleatoric")))
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"MALLOC_PERTURB_": byte},
        ).stdout
        for byte in ("85", "170")
    ]
    assert runs[0] == runs[1] != ""
