"""Classes that the threshold closes are down in some optimum; the water level makes a distribution."""

from __future__ import annotations

from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import ProbabilityIntervals
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels.buffers import Row, row_workspace, whole_vectors
from credalens.kernels.lower.open_classes import (
    OpenClasses,
    no_peaks,
    open_classes,
    open_workspace,
    peaks_more,
    peaks_of,
)
from credalens.kernels.lower.solve import lower_entropy_rows
from credalens.kernels.simd.jit import OPTIONS
from credalens.kernels.simd.phi import phi_pair
from credalens.kernels.simd.vectors import WIDTH, load
from credalens.kernels.upper import split_at, upper_entropy_rows, water_level
from tests import oracles
from tests.strategies import KINDS, make_members

SLACK = 1e-11  # bits; the oracle lets vertices leave their bounds by 1e-13
ROUNDING = Fraction(5e-14)  # mass


@numba.njit
def find_peaks(low):
    peaks = no_peaks()
    for k in range(0, low.size, WIDTH):
        peaks = peaks_more(load(low, k), peaks)
    return peaks_of(peaks)


@numba.njit(**OPTIONS)
def find_open(row, need, workspace, bounds, order):
    """Number and least threshold. As a kernel: code that counts references must not call one that returns arrays."""
    m, threshold, classes = open_classes(row, find_peaks(row.low), need, workspace)
    for k in range(m + -m % WIDTH):
        bounds[0, k], bounds[1, k], order[k] = classes.low[k], classes.high[k], classes.order[k]
        bounds[2, k], bounds[3, k] = classes.phi_low[k], classes.phi_high[k]
    return m, threshold


@numba.njit
def find_level(low, high, classes):
    return water_level(low, high, classes, split_at(low, high, 1.0 / classes))


def filled(lower, upper):
    """A row as the kernels have it: filled up to whole vectors with zeros."""
    row = row_workspace(lower.size)
    row[:] = 0.0
    row[0, : lower.size], row[1, : lower.size] = lower, upper
    row[2], row[3] = phi_pair(row[0], row[1])
    return row


def opened(lower, upper):
    """The classes left open. They come with what the row has of them; what fills up their last vector has no width."""
    row, (workspace, numbers) = filled(lower, upper), open_workspace(lower.size)
    workspace[:], numbers[:] = np.nan, -7
    bounds, order = np.full((4, numbers.size), np.nan), np.full(numbers.size, -7)
    m, threshold = find_open(Row(*row), 1.0 - lower.sum(), OpenClasses(*workspace, numbers), bounds, order)
    assert len(set(order[:m])) == m
    np.testing.assert_array_equal(bounds[:, :m], row[:, order[:m]])
    np.testing.assert_array_equal(*bounds[:2, m : whole_vectors(m)])
    low, high = bounds[:2, :m]
    return np.sort(order[:m][(high > low) & (high >= threshold)])


@st.composite
def intervals(draw, classes):
    """Bounds (lower, upper) of a row: those of members, or of anybody: wide, narrow, nested, equal, in parts, tight sums."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from([*KINDS, "permuted", "wide", "parts", "edge", "nested"]))
    if kind in KINDS:
        p = make_members(kind, int(rng.integers(1, 6)), classes, rng)
        return p.min(axis=0), p.max(axis=0)
    if kind == "permuted":
        p = np.array([rng.permutation(np.arange(classes) // 2 + 0.5) for _ in range(3)])
        p /= p.sum(axis=1, keepdims=True)
        return p.min(axis=0), p.max(axis=0)
    if kind == "edge":  # the widths of the greatest classes sum to about what is left
        lower = np.sort(rng.dirichlet(np.full(classes, 0.5)))[::-1] * rng.uniform(0.3, 0.9)
        first, left = int(rng.integers(1, classes)), 1 - lower.sum()
        width = left * rng.random(classes) ** rng.choice([1, 8])
        width[:first] = rng.dirichlet(np.ones(first)) * left * (1 + rng.choice([0, 1e-15, -1e-15, 1e-12, 0.1]))
        lower, upper = lower, np.minimum(lower + width, 1)
    elif kind == "nested":
        reach = rng.permutation(np.linspace(0.2, 0.9, classes)) / classes
        lower, upper = 1 / classes - reach, 1 / classes + reach
    else:
        p = rng.dirichlet(np.full(classes, rng.choice([0.05, 1.0])))
        lower, upper = p * rng.random(classes), np.minimum(p + rng.random(classes) ** rng.choice([1, 4, 12]), 1)
        if kind == "parts":
            lower, upper = np.floor(20 * lower) / 20, np.ceil(20 * upper) / 20
    upper[0] = max(upper[0], 1 - upper[1:].sum())
    order = rng.permutation(classes)
    tight = ProbabilityIntervals(lower[order], upper[order]).tighten()
    return tight.lower, tight.upper


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_two_greatest_lower_bounds(vectors, parts, seed):
    """Of equal ones the second may be the next smaller one, nothing else."""
    low = np.random.default_rng(seed).integers(0, parts + 1, 8 * vectors) / parts
    first, second = find_peaks(low)
    different = np.unique(low)
    assert first == different[-1]
    assert second in (np.sort(low)[-2], different[-2] if different.size > 1 else 0.0)
    if (low == first).sum() == 1:
        assert second == np.sort(low)[-2]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.integers(2, 9).flatmap(intervals))
def test_some_optimum_has_every_closed_class_down(bounds):
    lower, upper = bounds
    closed = np.setdiff1d(np.arange(lower.size), opened(lower, upper))
    capped = upper.copy()
    capped[closed] = lower[closed]
    if capped.sum() < 1:  # by rounding: what is missing is not worth a vertex
        assert 1 - capped.sum() < 1e-12
        capped[np.argmax(capped)] += 1 - capped.sum()
    assert oracles.lower_entropy(lower, capped) <= oracles.lower_entropy(lower, upper) + SLACK


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.sampled_from([7, 8, 9, 16, 24, 25, 64, 100]).flatmap(intervals))
def test_a_class_is_closed_only_if_those_above_it_cannot_all_be_up(bounds):
    """Were class k up, every class with a lower bound above u_k would be; together they have more width than mass is left.
    In exact arithmetic, for any number of classes."""
    lower, upper = ([Fraction(float(x)) for x in bound] for bound in bounds)
    left = 1 - sum(lower)
    for k in np.setdiff1d(np.arange(len(lower)), opened(*bounds)):
        above = sum((high - low for low, high in zip(lower, upper, strict=True) if low > upper[k]), Fraction(0))
        assert upper[k] == lower[k] or above > left + ROUNDING


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(2, 9).flatmap(intervals), st.sampled_from([0, 1, 2, MAX_NODES]))
def test_value_and_bound_enclose_the_lowest_entropy_whatever_the_budget(bounds, max_nodes):
    """Of the open classes alone: the certificate holds for all."""
    lower, upper = bounds
    value, bound = np.array([np.inf]), np.array([-np.inf])
    lower_entropy_rows(lower[None], upper[None], TOLERANCE, max_nodes, value, bound, np.empty((1, 0)))
    expected = oracles.lower_entropy(lower, upper)
    assert bound[0] <= expected + SLACK
    assert value[0] >= expected - SLACK
    if max_nodes == MAX_NODES:
        assert value[0] <= expected + SLACK
        assert value[0] - bound[0] <= 2 * TOLERANCE


@pytest.mark.parametrize("classes", [8, 16, 24, 7, 9, 25, 1000])
def test_the_tail_of_a_peaked_row_is_closed(classes):
    """One class is ahead; of the others only those that reach its lower bound are open, whatever their place."""
    lower, upper = np.full(classes, 0.1 / classes), np.full(classes, 0.2 / classes)
    for ahead, second in ((0, classes - 1), (classes - 1, 0), (classes // 2, 1)):
        low, high = lower.copy(), upper.copy()
        low[[ahead, second]], high[[ahead, second]] = [0.3, 0.05], [0.89, 0.4]
        low, high = ProbabilityIntervals(low, high).tighten()
        assert opened(low, high).tolist() == sorted((ahead, second))


def test_a_row_without_widths_has_nothing_open():
    p = np.full(11, 1 / 11)
    assert opened(p, p).size == 0


def test_a_row_of_zeros_to_ones_is_open_everywhere():
    for classes in (2, 8, 9, 33):
        assert opened(np.zeros(classes), np.ones(classes)).tolist() == list(range(classes))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.sampled_from([2, 3, 7, 8, 9, 16, 24, 25, 100]).flatmap(intervals))
def test_the_water_level_makes_a_distribution_of_the_highest_entropy(bounds):
    lower, upper = bounds
    row = filled(lower, upper)
    t = find_level(row[0], row[1], lower.size)
    p = np.clip(t, lower, upper)
    np.testing.assert_allclose(p.sum(), 1, rtol=0, atol=1e-14)
    expected, _ = oracles.upper_entropy(lower, upper)
    found, out = np.empty(1), np.empty((1, lower.size))
    upper_entropy_rows(lower[None], upper[None], found, out)
    np.testing.assert_array_equal(out[0], p)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("lower", "upper", "level"),
    [
        ([0.25, 0.0, 0.0, 0.0], [0.5, 0.25, 0.5, 0.5], 0.25),  # l == t and u == t
        ([0.25, 0.25, 0.0, 0.125], [0.25, 1.0, 0.25, 0.375], 0.25),  # a point at t
        ([0.5, 0.0, 0.0], [1.0, 0.25, 0.25], 0.25),  # nothing is left between its bounds
        ([0.5, 0.0, 0.0], [0.75, 0.5, 0.125], 0.375),
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.125], 0.0),  # all mass is taken
        ([1.0, 0.0], [1.0, 0.0], None),
        ([0.125] * 8, [0.125] * 8, 0.125),
    ],
)
def test_bounds_at_the_level_itself(lower, upper, level):
    lower, upper = np.array(lower), np.array(upper)
    row = filled(lower, upper)
    t = find_level(row[0], row[1], lower.size)
    assert np.clip(t, lower, upper).sum() == 1.0
    p = lower if level is None else np.clip(level, lower, upper)
    np.testing.assert_array_equal(np.clip(t, lower, upper), p)
    found = np.empty(1)
    upper_entropy_rows(lower[None], upper[None], found, np.empty((0, lower.size)))
    np.testing.assert_allclose(found, oracles.entropy(p), rtol=0, atol=1e-15)


def test_rows_are_filled_up_to_whole_vectors():
    for classes in range(1, 70):
        assert whole_vectors(classes) % 8 == 0
        assert classes <= whole_vectors(classes) < classes + 8
