"""Slow, obvious truths beyond those of ``tests/oracles.py``; nothing here shares code with the library."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from attack.ensembles import Grid
from tests import oracles


def member_rows(probs: NDArray, /) -> NDArray:
    """Members in float64, every row divided by its sum."""
    p = probs.astype(np.float64)
    return p / p.sum(axis=-1, keepdims=True)


def intersection(lower: NDArray, upper: NDArray, /) -> NDArray:
    """p = l + alpha (u - l) that sums to one, for one set."""
    width = math.fsum(upper - lower)
    alpha = min(max((1 - math.fsum(lower)) / width, 0.0), 1.0) if width > 0 else 0.0
    return lower + alpha * (upper - lower)


def vertices_by_filling(lower: NDArray, upper: NDArray, orders: NDArray, /) -> NDArray:
    """From the lower bounds, raise class after class in each order to its upper bound until the mass is used up."""
    width = np.take_along_axis(np.broadcast_to(upper - lower, orders.shape), orders, -1)
    before = np.cumsum(width, axis=-1) - width
    raised = np.clip(1 - lower.sum() - before, 0, width)
    p = np.empty(orders.shape)
    np.put_along_axis(p, orders, lower[orders] + raised, -1)
    return p


def low_entropy_by_search(lower: NDArray, upper: NDArray, rng: np.random.Generator, /, *, tries: int = 200) -> float:
    """The lowest entropy of many vertices: filled in random orders, and in noisy orders of the upper bounds and widths."""
    noise = rng.gumbel(size=(tries, lower.size)) * 10.0 ** rng.uniform(-4, 1, (tries, 1))
    with np.errstate(divide="ignore"):
        keys = np.where(np.arange(tries)[:, None] % 2, np.log(upper), np.log(upper - lower))
    orders = np.argsort(-(keys + noise), axis=-1)
    return float(oracles.entropy(vertices_by_filling(lower, upper, orders)).min())


def integer_vertices(lower: NDArray, upper: NDArray, parts: int, /) -> NDArray:
    """All points of a grid's set with every class at a bound except one, without rounding."""
    points = []
    for free in range(len(lower)):
        for choice in itertools.product(*({int(a), int(b)} for a, b in zip(lower, upper, strict=True))):
            p = list(choice)
            p[free] = parts - (sum(choice) - choice[free])
            if lower[free] <= p[free] <= upper[free]:
                points.append(p)
    return np.array(points)


def hartley_of_moving(lower: NDArray, upper: NDArray, /) -> float:
    """Generalized Hartley measure by enumeration over the classes whose bounds differ, however many others there are.

    A class k with l = u adds l to the lower probability of every set it joins: its only mass is that of {k}.
    """
    moving = np.flatnonzero(upper > lower)
    fixed = math.fsum(np.delete(upper, moving))
    low, high = lower[moving], upper[moving]
    inside = (np.arange(2**moving.size)[:, None] >> np.arange(moving.size)) & 1
    capacity = np.maximum(inside @ low, 1 - fixed - (1 - inside) @ high)
    capacity[0] = 0
    return oracles.hartley_of_capacity(capacity, moving.size) if moving.size else 0.0


def hartley_of_groups(groups: Grid, counts: NDArray, /) -> float:
    """Generalized Hartley measure of classes that come in groups with the same bounds: sets are counted, not listed.

    sum over A of c_|A| nu(A) with c_a = sum_j (-1)^j C(n - a, j) log2(a + j), in whole numbers and long decimals.
    """
    classes, sums = int(counts.sum()), [0] * (int(counts.sum()) + 1)
    for chosen in itertools.product(*(range(count + 1) for count in counts)):
        ways = math.prod(math.comb(int(n), k) for n, k in zip(counts, chosen, strict=True))
        inside = sum(k * int(low) for k, low in zip(chosen, groups.lower[0], strict=True))
        outside = sum((int(n) - k) * int(high) for n, k, high in zip(counts, chosen, groups.upper[0], strict=True))
        sums[sum(chosen)] += ways * max(inside, groups.parts - outside)
    with localcontext() as context:
        context.prec = 60 + classes
        logs = [Decimal(0)] + [Decimal(k).ln() / Decimal(2).ln() for k in range(1, classes + 1)]
        total = Decimal(0)
        for a in range(1, classes + 1):
            terms = ((-1) ** j * math.comb(classes - a, j) * logs[a + j] for j in range(classes - a + 1))
            total += sum(terms, Decimal(0)) * sums[a] / groups.parts
        return float(total)
