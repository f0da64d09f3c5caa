"""Items and champions, found in whole vectors, are those that their definitions name."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.core.entropy import phi_pair
from credalens.kernels.lower.enumeration import flips_workspace
from credalens.kernels.lower.items import AWAY, CLASS, DOWN, HIGH, KEEPS, LOW, MANY, MOST, UP, collect_items
from credalens.kernels.lower.threshold import open_workspace
from tests.strategies import KINDS, batch_of


@numba.njit
def collected(m, known, at, r, limit, floats, integers):
    return collect_items(m, known, at, r, limit, floats, integers)


def row_of(kind, members, classes, seed):
    """l, u, phi of both and slopes of the classes that have a width, and how many these are; padded as `open_classes` does."""
    if kind == "parts":  # many slopes are equal
        p = np.random.default_rng(seed).multinomial(2 * classes, np.full(classes, 1 / classes), members) / (2 * classes)
    else:
        p = batch_of(kind, members, 1, classes, seed=seed)[:, 0]
    low, high = p.min(axis=0), p.max(axis=0)
    low, high = low[high > low], high[high > low]
    known, order = open_workspace(classes)
    known[:4], known[4] = 0.0, 1e300
    known[0, : low.size], known[1, : low.size] = low, high
    known[2], known[3] = phi_pair(known[0], known[1])
    known[4, : low.size] = (known[3] - known[2])[: low.size] / (high - low)
    return low.size, known, order


def expected(m, known, at, limit):
    """(items down, items up, champion down, champion up, least slope for taking, for giving) one class after the other."""
    low, high, phi_low, phi_high, slope = known[:, :m]
    away, everyone = slope - slope[at], range(m)
    cost, y = (high - low) * abs(away), 2.0 ** -slope[at] / np.e
    phi_y = -y * np.log2(y)
    down = min((k for k in everyone if cost[k] >= limit and away[k] >= 0), key=lambda k: -low[k], default=-1)
    up = min((k for k in everyone if cost[k] >= limit and away[k] < 0), key=lambda k: high[k], default=-1)
    items: dict[int, list[int]] = {DOWN: [], UP: []}
    takers, givers = {down} - {-1}, {up} - {-1}
    for k in sorted(everyone, key=lambda k: abs(away[k])):
        first = away[k] < 0 or (away[k] == 0 and k < at)
        champion = up if first else down
        sign = 1 if first else -1
        free = champion < 0 or sign * low[k] < sign * low[champion] or sign * high[k] < sign * high[champion]
        if cost[k] < limit and free:
            items[UP if first else DOWN].append(k)
            takers, givers = takers | {k}, givers | {k}
    rises = [slope[k] if high[k] <= y else (phi_y - phi_low[k]) / (y - low[k]) for k in takers if low[k] < y]
    falls = [slope[k] if low[k] >= y else (phi_high[k] - phi_y) / (high[k] - y) for k in givers if high[k] > y]
    takes, gives = min(rises, default=1e300) - slope[at], slope[at] - max(falls, default=-1e300)
    return items[DOWN], items[UP], down, up, max(takes, 0.0), max(gives, 0.0)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.sampled_from([*KINDS, "parts"]),
    st.integers(2, 5),
    st.integers(2, MANY),
    st.sampled_from([1e-9, 1e-4, 0.01, 0.1, 1.0, 10.0]),
    st.integers(0, 2**32 - 1),
)
def test_items_and_champions_are_those_of_the_definitions(kind, members, classes, limit, seed):
    m, known, order = row_of(kind, members, classes, seed)
    if m == 0:
        return
    at = seed % m
    floats, integers, _, _ = flips_workspace()
    found = collected(m, (*known, order), at, 0.1, limit, floats, integers)
    downs, ups, *rest = expected(m, known, at, limit)
    assert found[2:4] == tuple(rest[:2])
    np.testing.assert_allclose(found[4:], rest[2:], rtol=1e-9, atol=1e-9)
    for side, items in ((DOWN, downs), (UP, ups)):
        number = found[side]
        assert integers[side, CLASS, :number].tolist() == items
        np.testing.assert_array_equal(floats[side, LOW, :number], known[0, items])
        np.testing.assert_array_equal(floats[side, HIGH, :number], known[1, items])
        np.testing.assert_allclose(floats[side, AWAY, :number], abs(known[4, items] - known[4, at]), rtol=0, atol=1e-12)
        for i, k in enumerate(items):
            kept = known[:2, items[i + 1 :]]
            same = known[:2, [k]] >= kept if side == DOWN else known[:2, [k]] <= kept
            bits = sum(1 << int(i + 1 + j) for j in np.flatnonzero(same.all(axis=0)))
            assert integers[side, KEEPS, i] == bits


@pytest.mark.parametrize("classes", [2 * MOST + 1, 3 * MOST])
def test_too_many_items_are_not_enumerated(classes):
    """No class dominates another, none is dear, and all may be raised."""
    m, known, order = row_of("flat", 2, classes, 0)
    reach = np.linspace(0.2, 0.9, m) / m
    known[0, :m], known[1, :m] = 1 / m - reach, 1 / m + reach
    known[2], known[3] = phi_pair(known[0], known[1])
    known[4, :m] = ((known[3] - known[2])[:m]) / (2 * reach)
    floats, integers, _, _ = flips_workspace()
    found = collected(m, (*known, order), m // 2, 1.0, 10.0, floats, integers)
    assert found[:2] == (MOST + 1, MOST + 1)
