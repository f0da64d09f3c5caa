"""Thousands of inputs at a time: predictions that have broken something before, and slow truths for all rows at once.

Nothing here shares code with the library, nor with the truths for one row but the definitions.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attack.case import Case

Array = NDArray[np.float64]
KINDS = (
    "flat",
    "peaked",
    "sparse",
    "tenths",
    "one_hot",
    "agreeing",
    "tiny",
    "common_part",
    "swaps",
    "permutations",
    "ulps",
    "mixed",
)


def predictions(case: Case, /, *, rows: int, classes: int, members: int) -> Array:
    """Member predictions (members, rows, classes) of one kind."""
    case.count(rows)
    rng, shape = case.rng, (members, rows, classes)
    kind = case.choose(*KINDS)
    if kind == "flat":
        p = rng.standard_gamma(case.choose(0.5, 1.0, 5.0), shape)
    elif kind == "peaked":
        p = np.exp(case.choose(1.0, 3.0, 8.0) * rng.normal(size=shape[1:]) + rng.normal(size=shape))
    elif kind == "sparse":
        p = rng.standard_gamma(0.3, shape) * (rng.random(shape) < 0.5)
    elif kind == "tenths":
        p = rng.multinomial(case.choose(2, 3, 10), rng.dirichlet(np.ones(classes), rows), (members, rows)).astype(float)
    elif kind == "one_hot":
        p = np.eye(classes)[rng.integers(0, classes, shape[:2])]
    elif kind == "agreeing":
        p = np.repeat(rng.standard_gamma(1.0, (1, *shape[1:])), members, axis=0)
    elif kind == "tiny":
        p = rng.standard_gamma(0.02, shape) + 1e-300
    elif kind == "common_part":
        p = rng.standard_gamma(0.2, shape) * (np.arange(classes) < case.between(1, classes)) + rng.random(shape[1:])
    elif kind == "swaps":
        p = np.repeat(rng.standard_gamma(1.0, (1, *shape[1:])), members, axis=0)
        first, second = rng.integers(0, classes, (2, members, rows, 1))
        at_first, at_second = (np.take_along_axis(p, at, axis=-1) for at in (first, second))
        np.put_along_axis(p, first, at_second, axis=-1)
        np.put_along_axis(p, second, at_first, axis=-1)
    elif kind == "permutations":
        p = rng.permuted(np.broadcast_to(np.resize([1, 1.1, 1.2, 1.3, 3], classes), shape).copy(), axis=-1)
    elif kind == "ulps":
        p = rng.standard_gamma(1.0, shape[1:]) * (1 + 10.0 ** -rng.integers(8, 17, shape) * rng.normal(size=shape))
    else:
        p = 0.6 * np.eye(classes)[rng.integers(0, classes, shape[:2])] + 0.4 * rng.dirichlet(
            np.ones(classes), shape[:2]
        )
    p = p * (1 + case.choose(0.0, 0.0, 1e-15) * rng.normal(size=shape))
    p[..., 0] += p.sum(axis=-1) == 0
    return p / p.sum(axis=-1, keepdims=True)


def entropy(p: Array, /) -> Array:
    """In bits along the last axis."""
    return phi(p).sum(axis=-1)


def phi(x: Array, /) -> Array:
    """-x log2 x, 0 at 0."""
    return -x * np.log2(np.where(x > 0, x, 1.0))


@cache
def subsets(size: int, /) -> Array:
    """All subsets of so many classes as rows of zeros and ones."""
    return ((np.arange(2**size)[:, None] >> np.arange(size)) & 1).astype(float)


def lowest_entropy(lower: Array, upper: Array, /) -> Array:
    """Over all points with every class at a bound except one."""
    rows, classes = lower.shape
    best = np.full(rows, np.inf)
    at_upper = subsets(classes - 1)
    for free in range(classes):
        low, high = np.delete(lower, free, axis=1), np.delete(upper, free, axis=1)
        rest = 1 - (low.sum(axis=1)[:, None] + (high - low) @ at_upper.T)
        value = phi(low).sum(axis=1)[:, None] + (phi(high) - phi(low)) @ at_upper.T + phi(np.clip(rest, 0, 1))
        inside = (rest >= lower[:, [free]] - 1e-13) & (rest <= upper[:, [free]] + 1e-13)
        best = np.minimum(best, np.where(inside, value, np.inf).min(axis=1))
    return best


def highest_entropy(lower: Array, upper: Array, /) -> Array:
    """By halving the interval of the water level eighty times, then by hand on the classes that move."""
    low, high = lower.min(axis=1), upper.max(axis=1)
    for _ in range(80):
        level = 0.5 * (low + high)
        too_high = np.clip(level[:, None], lower, upper).sum(axis=1) > 1
        low, high = np.where(too_high, low, level), np.where(too_high, level, high)
    p = np.clip(low[:, None], lower, upper)
    moving = (p > lower) & (p < upper)
    count = moving.sum(axis=1)
    share = (1 - np.where(moving, 0, p).sum(axis=1)) / np.maximum(count, 1)
    return entropy(np.where(moving & (count > 0)[:, None], np.clip(share[:, None], lower, upper), p))


def hartley(lower: Array, upper: Array, /) -> Array:
    """Sum over all subsets, each with the Moebius mass of the definition folded into one weight by its size."""
    classes = lower.shape[1]
    inside = subsets(classes)
    capacity = np.maximum(lower @ inside.T, 1 - upper @ (1 - inside).T)
    capacity[:, 0] = 0
    return capacity @ _hartley_weights(classes)


@cache
def _hartley_weights(classes: int) -> Array:
    """What a unit of nu(A) adds: sum over B above A of (-1)^|B - A| log2 |B|."""
    by_size = [
        math.fsum((-1) ** j * math.comb(classes - a, j) * math.log2(a + j) for j in range(classes - a + 1))
        if a
        else 0.0
        for a in range(classes + 1)
    ]
    return np.array(by_size)[subsets(classes).sum(axis=1).astype(int)]


def imprecision(lower: Array, upper: Array, /) -> Array:
    """The largest upper minus lower probability of any event."""
    inside = subsets(lower.shape[1])
    low, high, rest_low, rest_high = lower @ inside.T, upper @ inside.T, lower @ (1 - inside).T, upper @ (1 - inside).T
    gap = np.minimum(high, 1 - rest_low) - np.maximum(low, 1 - rest_high)
    return np.maximum(gap.max(axis=1), 0)


class Margins(NamedTuple):
    """How clearly each class j is dropped by another one: positive where it is, negative where it stays."""

    dominance: Array
    maximality: Array


def margins(lower: Array, upper: Array, /) -> Margins:
    """For every class the largest l_i - u_j, and the largest minimum of p_i - p_j over the set, filled greedily."""
    mass = 1 - lower.sum(axis=1)
    width = upper - lower
    dominance, maximal = (np.full(lower.shape, -np.inf) for _ in range(2))
    for i in range(lower.shape[1]):
        for j in range(lower.shape[1]):
            if i == j:
                continue
            to_j = np.minimum(mass, width[:, j])  # what p_j can take
            others = width.sum(axis=1) - width[:, i] - width[:, j]
            to_i = np.maximum(mass - width[:, j] - others, 0)  # what p_i must take
            least = lower[:, i] + to_i - lower[:, j] - to_j
            maximal[:, j] = np.maximum(maximal[:, j], least)
            dominance[:, j] = np.maximum(dominance[:, j], lower[:, i] - upper[:, j])
    return Margins(dominance, maximal)
