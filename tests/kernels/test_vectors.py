"""Vectors of eight numbers: every operation against NumPy, lane by lane, and memory that is not theirs left alone."""

from __future__ import annotations

import operator

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.kernels.simd.phi import phi, phi_into
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    bits_to_float,
    choose,
    count,
    everywhere,
    first_of,
    float_to_bits,
    least_of,
    load,
    load_some,
    most_of,
    positions,
    store,
    store_some,
    sum_of,
    to_float,
)

LANES = np.arange(WIDTH)
FINITE = st.floats(-1e100, 1e100)  # products stay finite
SPECIAL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e300, np.inf, -np.inf, np.nan])
INTEGERS = st.integers(-(2**31), 2**31 - 1)

laws = settings(derandomize=True, deadline=None, max_examples=40)


def eight(of):
    return st.lists(of, min_size=WIDTH, max_size=WIDTH)


def floats(values):
    return np.array(values, np.float64)


@numba.njit
def copy(source, start, target, place):
    store(target, place, load(source, start))


@numba.njit
def copy_some(source, start, target, place, read, write):
    """Conditions come as numbers that are not zero."""
    store_some(target, place, load_some(source, start, load(read, 0) != 0.0), load(write, 0) != 0.0)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.float64, np.float64), (np.float32, np.float64), (np.float64, np.float32), (np.float32, np.float32),
        (np.int64, np.int64), (np.int8, np.int64),
    ],
)  # fmt: skip
def test_a_vector_goes_from_any_position_to_any_other_and_nothing_else_changes(source, target):
    given = np.random.default_rng(0).integers(-128, 128, 40).astype(source)
    given = given if given.dtype.kind == "i" else given / source(3)
    for start in range(40 - WIDTH + 1):
        place = (7 * start) % (30 - WIDTH + 1)
        found, expected = np.full((2, 30), -99, target)
        copy(given, start, found, place)
        expected[place : place + WIDTH] = given[start : start + WIDTH]
        np.testing.assert_array_equal(found, expected)


@laws
@given(
    st.sampled_from([np.float64, np.float32]),
    st.sampled_from([np.float64, np.float32]),
    st.integers(0, 12),
    st.integers(0, 12),
    eight(st.booleans()),
    eight(st.booleans()),
)
def test_some_lanes_only(source, target, start, place, read, write):
    """Lanes that are not read are zero, places that are not written stay; either end may be at the end of an array."""
    read, write = np.array(read), np.array(write)
    given = np.random.default_rng(1).random(12 + WIDTH).astype(source)
    found, expected = np.full((2, 12 + WIDTH), np.nan, target)
    copy_some(given, start, found, place, floats(read), floats(write))
    values = np.where(read, given[start : start + WIDTH], 0)
    expected[place : place + WIDTH] = np.where(write, values, expected[place : place + WIDTH])
    np.testing.assert_array_equal(found, expected)


@numba.njit
def arithmetic(x, y, number, out):
    a, b = load(x, 0), load(y, 0)
    store(out, 0 * WIDTH, a + b)
    store(out, 1 * WIDTH, a - b)
    store(out, 2 * WIDTH, a * b)
    store(out, 3 * WIDTH, a / b)
    store(out, 4 * WIDTH, -a)
    store(out, 5 * WIDTH, abs(a))
    store(out, 6 * WIDTH, a + number)
    store(out, 7 * WIDTH, number - a)
    store(out, 8 * WIDTH, number * a)
    store(out, 9 * WIDTH, number / b)
    store(out, 10 * WIDTH, a - 3)
    store(out, 11 * WIDTH, 2 * a)
    store(out, 12 * WIDTH, everywhere(number))
    store(out, 13 * WIDTH, everywhere(3))


@laws
@given(eight(FINITE), eight(FINITE.filter(lambda v: abs(v) > 1e-100)), FINITE)
def test_arithmetic(x, y, number):
    a, b, out = floats(x), floats(y), np.empty((14, WIDTH))
    arithmetic(a, b, number, out.reshape(-1))
    same, three = np.full(WIDTH, number), np.full(WIDTH, 3.0)
    expected = [
        a + b, a - b, a * b, a / b, -a, abs(a), a + number, number - a, number * a, number / b, a - 3, 2 * a, same, three,
    ]  # fmt: skip
    np.testing.assert_array_max_ulp(out, np.array(expected), maxulp=1)


@numba.njit
def whole(x, y, number, out):
    a, b = load(x, 0), load(y, 0)
    store(out, 0 * WIDTH, a + b)
    store(out, 1 * WIDTH, a - b)
    store(out, 2 * WIDTH, a & b)
    store(out, 3 * WIDTH, a >> 5)
    store(out, 4 * WIDTH, a + number)
    store(out, 5 * WIDTH, number - a)
    store(out, 6 * WIDTH, number & a)
    store(out, 7 * WIDTH, positions())


@laws
@given(eight(INTEGERS), eight(INTEGERS), INTEGERS)
def test_arithmetic_of_integers(x, y, number):
    a, b = np.array(x), np.array(y)
    out = np.empty((8, WIDTH), np.int64)
    whole(a, b, number, out.reshape(-1))
    expected = [a + b, a - b, a & b, a >> 5, a + number, number - a, number & a, LANES]
    np.testing.assert_array_equal(out, expected)


def comparing(operation):
    """Bits of vector with vector, vector with number, number with vector."""

    @numba.njit
    def compared(x, y, number):
        a, b = load(x, 0), load(y, 0)
        return bits_of(operation(a, b)), bits_of(operation(a, number)), bits_of(operation(number, a))

    return compared


def as_bits(conditions):
    return int((np.asarray(conditions) << LANES).sum())


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("operation", COMPARISONS, ids=lambda one: one.__name__)
def test_comparisons_with_nan_among_them(operation):
    compared = comparing(operation)

    @laws
    @given(eight(SPECIAL), eight(SPECIAL), SPECIAL)
    def law(x, y, number):
        a, b = floats(x), floats(y)
        expected = operation(a, b), operation(a, number), operation(number, a)
        assert compared(a, b, number) == tuple(map(as_bits, expected))

    law()


@pytest.mark.parametrize("operation", COMPARISONS, ids=lambda one: one.__name__)
def test_comparisons_of_integers(operation):
    compared = comparing(operation)

    @laws
    @given(eight(st.integers(-2, 2)), eight(st.integers(-2, 2)), st.integers(-2, 2))
    def law(x, y, number):
        a, b = np.array(x), np.array(y)
        expected = operation(a, b), operation(a, number), operation(number, a)
        assert compared(a, b, number) == tuple(map(as_bits, expected))

    law()


@numba.njit
def conditions(x, y, number, out):
    """Both, either; then chosen: of vectors, of a vector and a number, of two numbers, by one condition for all lanes."""
    a, b = load(x, 0), load(y, 0)
    less, positive = a < b, a > 0.0
    store(out, 0 * WIDTH, choose(less, a, b))
    store(out, 1 * WIDTH, choose(less, number, b))
    store(out, 2 * WIDTH, choose(less, a, number))
    store(out, 3 * WIDTH, choose(less, number, 2))
    store(out, 4 * WIDTH, choose(number > 0.0, a, b))
    return bits_of(less & positive), bits_of(less | positive), choose(number > 0.0, number, 7)


@laws
@given(eight(SPECIAL), eight(SPECIAL), SPECIAL)
def test_conditions_and_choices(x, y, number):
    a, b, out = floats(x), floats(y), np.empty((5, WIDTH))
    both, either, one = conditions(a, b, number, out.reshape(-1))
    less = a < b
    assert (both, either) == (as_bits(less & (a > 0)), as_bits(less | (a > 0)))
    np.testing.assert_array_equal(one, number if number > 0 else 7.0)
    expected = [np.where(less, a, b), np.where(less, number, b), np.where(less, a, number), np.where(less, number, 2.0)]
    np.testing.assert_array_equal(out, [*expected, a if number > 0 else b])


@numba.njit
def together(x):
    a = load(x, 0)
    bits = bits_of(a > 0.0)
    return sum_of(a), least_of(a), most_of(a), bits, count(bits), first_of(bits) if bits != 0 else -1


@laws
@given(eight(st.floats(-1, 1) | st.sampled_from([0.0, 1e300, -1e300, np.inf])))
def test_all_lanes_together(x):
    a = floats(x)
    total, least, most, bits, number, first = together(a)
    np.testing.assert_allclose(total, a.sum(), rtol=1e-15, atol=1e-15 * min(np.abs(a).sum(), 1e300))
    assert (least, most, number) == (a.min(), a.max(), (a > 0).sum())
    assert bits == as_bits(a > 0)
    assert first == (np.flatnonzero(a > 0)[0] if (a > 0).any() else -1)


def test_the_lane_of_the_least_is_found_wherever_it_is():
    for lane in LANES:
        x = np.full(WIDTH, -3.0)
        x[lane] = 4.0
        assert together(x)[3:] == (1 << lane, 1, lane)
        assert together(x)[2] == together(-x)[2] + 1.0 == 4.0
        assert together(-x)[1] == -4.0


@numba.njit
def recast(x, integers, out):
    bits = float_to_bits(load(x, 0))
    store(out, 0, bits_to_float(bits))
    store(out, WIDTH, to_float(load(integers, 0)))
    store(integers, 0, bits)
    return (
        float_to_bits(x[1]),
        bits_to_float(bits_of(load(x, 0) == x[1]) * 0 + float_to_bits(x[2])),
        to_float(integers[0]),
    )


@laws
@given(eight(SPECIAL | FINITE), eight(INTEGERS))
def test_bits_of_floats_and_back(x, integers):
    a, n, out = floats(x), np.array(integers), np.empty((2, WIDTH))
    one, two, three = recast(a, (taken := n.copy()), out.reshape(-1))
    np.testing.assert_array_equal(taken, a.view(np.int64))
    np.testing.assert_array_equal(out.view(np.int64), np.array([a, n.astype(np.float64)]).view(np.int64))
    assert (one, floats(two).view(np.int64), three) == (taken[1], taken[2], float(taken[0]))


@numba.njit
def phi_of_both_kinds(x, vectors, numbers):
    store(vectors, 0, phi(load(x, 0)))
    for i in range(WIDTH):
        numbers[i] = phi(x[i])


@laws
@given(eight(st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5, 2**-0.5, 1e-300, 5e-324])))
def test_phi_of_a_vector_is_phi_of_its_numbers(x):
    vectors, numbers = np.empty((2, WIDTH))
    phi_of_both_kinds(floats(x), vectors, numbers)
    np.testing.assert_array_max_ulp(vectors, numbers, maxulp=1)


@pytest.mark.parametrize("size", [*range(18), 31, 32, 33])
def test_phi_of_an_array_does_not_depend_on_the_place(size):
    x = np.random.default_rng(size).random(size) ** 8
    found, alone = np.full(size + 2, 7.0), np.empty(size)
    phi_into(x, found[1:-1])
    for i in range(size):
        phi_into(x[i : i + 1], alone[i : i + 1])
    np.testing.assert_array_max_ulp(found[1:-1], alone, maxulp=1)
    assert found[0] == found[-1] == 7.0


@pytest.mark.parametrize(
    "array",
    [np.zeros((16, 2))[:, 0], np.zeros((2, 16)), np.zeros(16, np.int32), np.zeros(16, np.complex128)],
    ids=["not side by side", "two axes", "int32", "complex"],
)
def test_what_vectors_cannot_be_read_from_is_refused(array):
    with pytest.raises(numba.TypingError, match="contiguous arrays of one axis"):
        copy(array, 0, np.zeros(16), 0)


def test_a_condition_goes_with_conditions():
    @numba.njit
    def both(x, only):
        return bits_of((load(x, 0) > 3.5) & only), bits_of(only | (load(x, 0) > 3.5))

    x = np.arange(8.0)
    assert both(x, True) == (0b11110000, 0b11111111)
    assert both(x, False) == (0, 0b11110000)
