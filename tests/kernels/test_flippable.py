"""Items and champions, found in whole vectors, are those that their definitions name."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.kernels.lower.flippable import DOWN, MANY, MOST, UP, Items, collect_items, items_workspace
from credalens.kernels.lower.open_classes import OpenClasses, open_workspace
from credalens.kernels.simd.phi import phi_pair
from tests.strategies import KINDS, batch_of


@numba.njit
def collected(m, classes, at, r, limit, items):
    return collect_items(m, classes, at, r, limit, items)


def room_for_items():
    floats, integers = items_workspace()
    return Items(*floats, *integers)


def row_of(kind, members, classes, seed):
    """l, u, phi of both and slopes of the classes that have a width, and how many these are; padded as `open_classes` does."""
    if kind == "parts":  # many slopes are equal
        p = np.random.default_rng(seed).multinomial(2 * classes, np.full(classes, 1 / classes), members) / (2 * classes)
    else:
        p = batch_of(kind, members, 1, classes, seed=seed)[:, 0]
    low, high = p.min(axis=0), p.max(axis=0)
    low, high = low[high > low], high[high > low]
    bounds, order = open_workspace(classes)
    bounds[:4], bounds[4] = 0.0, 1e300
    bounds[0, : low.size], bounds[1, : low.size] = low, high
    bounds[2], bounds[3] = phi_pair(bounds[0], bounds[1])
    bounds[4, : low.size] = (bounds[3] - bounds[2])[: low.size] / (high - low)
    return low.size, bounds, order


def expected(m, bounds, at, limit):
    """(items down, items up, champion down, champion up, least slope for taking, for giving) one class after the other."""
    low, high, phi_low, phi_high, slope = bounds[:, :m]
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
    m, bounds, order = row_of(kind, members, classes, seed)
    if m == 0:
        return
    at = seed % m
    items = room_for_items()
    counts = collected(m, OpenClasses(*bounds, order), at, 0.1, limit, items)
    downs, ups, *rest = expected(m, bounds, at, limit)
    assert counts[2:4] == tuple(rest[:2])
    np.testing.assert_allclose(counts[4:], rest[2:], rtol=1e-9, atol=1e-9)
    for side, places in ((DOWN, downs), (UP, ups)):
        number = counts[side]
        assert items.place[side, :number].tolist() == places
        np.testing.assert_array_equal(items.low[side, :number], bounds[0, places])
        np.testing.assert_array_equal(items.high[side, :number], bounds[1, places])
        np.testing.assert_allclose(
            items.away[side, :number], abs(bounds[4, places] - bounds[4, at]), rtol=0, atol=1e-12
        )
        for i, k in enumerate(places):
            kept = bounds[:2, places[i + 1 :]]
            same = bounds[:2, [k]] >= kept if side == DOWN else bounds[:2, [k]] <= kept
            bits = sum(1 << int(i + 1 + j) for j in np.flatnonzero(same.all(axis=0)))
            assert items.keeps[side, i] == bits


@pytest.mark.parametrize("classes", [2 * MOST + 1, 3 * MOST])
def test_too_many_items_are_not_enumerated(classes):
    """No class dominates another, none is dear, and all may be raised."""
    m, bounds, order = row_of("flat", 2, classes, 0)
    reach = np.linspace(0.2, 0.9, m) / m
    bounds[0, :m], bounds[1, :m] = 1 / m - reach, 1 / m + reach
    bounds[2], bounds[3] = phi_pair(bounds[0], bounds[1])
    bounds[4, :m] = ((bounds[3] - bounds[2])[:m]) / (2 * reach)
    counts = collected(m, OpenClasses(*bounds, order), m // 2, 1.0, 10.0, room_for_items())
    assert counts[:2] == (MOST + 1, MOST + 1)
