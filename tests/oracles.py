"""Slow, obvious truths that the fast code is tested against. Nothing here shares code with the package."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import brentq, linprog, nnls


def entropy(p: np.ndarray) -> np.ndarray:
    """Shannon entropy in bits along the last axis, 0 log 0 = 0."""
    safe = np.where(p > 0, p, 1.0)
    return -(np.where(p > 0, p, 0.0) * np.log2(safe)).sum(axis=-1)


def upper_entropy(lower: np.ndarray, upper: np.ndarray) -> tuple[float, np.ndarray]:
    """Water-filling by a root finder on the level, then by hand on the classes that move."""
    low, high = lower.min(), upper.max()
    if high <= low or upper.sum() - lower.sum() < 1e-14:
        return float(entropy(lower / lower.sum())), lower / lower.sum()

    def excess(t: float) -> float:
        return float(np.clip(t, lower, upper).sum() - 1)

    if excess(low) >= 0:
        t = low
    elif excess(high) <= 0:
        t = high
    else:
        t = brentq(excess, low, high, xtol=1e-16, rtol=8.9e-16, maxiter=1000)
    moving = (lower < t) & (t < upper)
    if moving.any():
        fixed = np.clip(t, lower, upper)[~moving].sum()
        t = (1 - fixed) / moving.sum()
    p = np.clip(t, lower, upper)
    return float(entropy(p)), p


def vertices(lower: np.ndarray, upper: np.ndarray, slack: float = 1e-13) -> np.ndarray:
    """All points with every class at a bound except one: a superset of the vertices, with repetitions."""
    classes = lower.size
    choices = np.array(list(itertools.product((0, 1), repeat=classes - 1)), dtype=bool)
    found = []
    for f in range(classes):
        others = [k for k in range(classes) if k != f]
        p = np.empty((len(choices), classes))
        p[:, others] = np.where(choices, upper[others], lower[others])
        p[:, f] = 1 - p[:, others].sum(axis=1)
        ok = (p[:, f] >= lower[f] - slack) & (p[:, f] <= upper[f] + slack)
        found.append(np.clip(p[ok], 0, 1))
    return np.concatenate(found)


def lower_entropy(lower: np.ndarray, upper: np.ndarray) -> float:
    """The lowest entropy over all vertices."""
    return float(entropy(vertices(lower, upper)).min())


def lower_entropy_in_parts(lower: np.ndarray, upper: np.ndarray, parts: int) -> float:
    """The lowest entropy of any number of classes whose bounds are whole parts: every class but f at a bound, f takes the rest.

    For each f and each number of parts, the least entropy of the other classes that have so many in all, one class after the
    other.
    """
    share = np.arange(parts + 1) / parts
    phi = -share * np.log2(np.where(share > 0, share, 1))
    best = np.inf
    for f in range(len(lower)):
        least = np.full(parts + 1, np.inf)
        least[0] = 0.0
        for k in range(len(lower)):
            if k != f:
                ends = lower[k], upper[k]
                down, up = (np.concatenate([np.full(v, np.inf), least[: parts + 1 - v] + phi[v]]) for v in ends)
                least = np.minimum(down, up)
        rest = np.arange(lower[f], upper[f] + 1)
        best = min(best, (least[parts - rest] + phi[rest]).min())
    return float(best)


def chord_bound(lower: np.ndarray, upper: np.ndarray) -> float:
    """The least sum of the chords of phi on the classes' intervals, as a linear program; infinite if the set is empty."""
    phi_low, phi_high = (-x * np.log2(np.where(x > 0, x, 1)) for x in (lower, upper))
    width = upper - lower
    slope = np.where(width > 0, phi_high - phi_low, 0) / np.where(width > 0, width, 1)
    bounds = list(zip(lower, upper, strict=True))
    result = linprog(slope, A_eq=np.ones((1, lower.size)), b_eq=[1], bounds=bounds)
    return float(phi_low.sum() + slope @ (result.x - lower)) if result.status == 0 else math.inf


def lower_probability(lower: np.ndarray, upper: np.ndarray, subset: list[int]) -> float:
    """min p(A) over the credal set, as a linear program."""
    cost = np.zeros(lower.size)
    cost[subset] = 1
    result = linprog(cost, A_eq=np.ones((1, lower.size)), b_eq=[1], bounds=list(zip(lower, upper, strict=True)))
    return float(result.fun)


def mobius(capacity: np.ndarray, classes: int) -> np.ndarray:
    """m(B) = sum over A subset of B of (-1)^|B - A| nu(A), straight from the definition."""
    mass = np.zeros(2**classes)
    for b in range(2**classes):
        a = b
        while True:
            mass[b] += (-1) ** ((b ^ a).bit_count()) * capacity[a]
            if a == 0:
                break
            a = (a - 1) & b
    return mass


def hartley_of_capacity(capacity: np.ndarray, classes: int) -> float:
    """sum over B of m(B) log2 |B|, with m by the fast in-place Moebius transform (the definition for up to 8 classes)."""
    if classes <= 8:
        mass = mobius(capacity, classes)
    else:
        mass = capacity.astype(np.longdouble).copy()
        masks = np.arange(2**classes)
        for k in range(classes):
            has = (masks >> k) & 1 == 1
            mass[has] -= mass[masks[has] ^ (1 << k)]
    sizes = np.array([b.bit_count() for b in range(2**classes)])
    return float((mass[1:] * np.log2(sizes[1:].astype(np.longdouble))).sum())


def interval_capacity(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """nu(A) = max(l(A), 1 - u(A^c)) for every subset, indexed by bit mask."""
    member = (np.arange(2**lower.size)[:, None] >> np.arange(lower.size)) & 1
    capacity = np.maximum(member @ lower, 1 - (1 - member) @ upper)
    capacity[0] = 0
    return capacity


def generalized_hartley(lower: np.ndarray, upper: np.ndarray) -> float:
    """Over the subsets of the possible classes: with an impossible one added, no subset has another lower probability."""
    low, high = lower[upper > 0], upper[upper > 0]
    return hartley_of_capacity(interval_capacity(low, high), low.size)


def hull_upper_entropy(members: np.ndarray) -> tuple[float, float]:
    """Upper entropy of the hull by very many steps of exponentiated gradient ascent on the weights, as a bracket.

    Entropy is concave, so that it is nowhere above its tangent: the greatest cross-entropy of a member is an upper bound.
    """
    weights = np.full(len(members), 1 / len(members))
    for step in range(20000):
        q = weights @ members
        gradient = -(members * np.log2(np.maximum(q, 1e-300))).sum(axis=1)
        weights = weights * np.exp((gradient - gradient.max()) * 0.5 / math.sqrt(1 + step / 50))
        weights /= weights.sum()
    q = weights @ members
    return float(entropy(q)), float((-members * np.log2(np.maximum(q, 1e-300))).sum(axis=1).max())


def line_upper_entropy(first: np.ndarray, last: np.ndarray) -> tuple[float, np.ndarray]:
    """The highest entropy of a mixture of two, and the mixture: where the slope along the line is zero, or at an end."""

    def slope(t: float) -> float:
        q = first + t * (last - first)
        return float(-((last - first) * np.log2(np.maximum(q, 1e-300))).sum())

    t = 0.0 if slope(0.0) <= 0 else 1.0 if slope(1.0) >= 0 else brentq(slope, 0.0, 1.0, xtol=1e-16)
    q = first + t * (last - first)
    return float(entropy(q)), q


def distance_to_hull(members: np.ndarray, q: np.ndarray) -> float:
    """The Euclidean distance of q from the nearest mixture of the members, as a non-negative least-squares problem."""
    count = len(members)
    _, distance = nnls(np.vstack([members.T, np.ones(count)]), np.append(q, 1))
    return float(distance)


def dominates(lower: np.ndarray, upper: np.ndarray, i: int, j: int) -> bool:
    """Whether p_i > p_j for every p in the set, as a linear program."""
    cost = np.zeros(lower.size)
    cost[i], cost[j] = 1, -1
    result = linprog(cost, A_eq=np.ones((1, lower.size)), b_eq=[1], bounds=list(zip(lower, upper, strict=True)))
    return bool(result.fun > 1e-9)


def is_e_admissible(lower: np.ndarray, upper: np.ndarray, i: int) -> bool:
    """Whether some p in the set has p_i >= p_j for all j, as a linear program."""
    classes = lower.size
    rows = np.array([[(j == k) - (k == i) for k in range(classes)] for j in range(classes) if j != i], dtype=float)
    result = linprog(
        np.zeros(classes), A_ub=rows, b_ub=np.full(len(rows), 1e-10), A_eq=np.ones((1, classes)), b_eq=[1],
        bounds=list(zip(lower, upper, strict=True)),
    )  # fmt: skip
    return result.status == 0


def maximum_mean_imprecision(low: np.ndarray, high: np.ndarray) -> float:
    """max_A upper(A) - lower(A) over all events, each from its definition for reachable intervals."""
    classes = np.arange(len(low))
    gaps = [0.0]
    for mask in range(1, 2 ** len(low) - 1):
        event = (mask >> classes & 1).astype(bool)
        above = min(high[event].sum(), 1 - low[~event].sum())
        below = max(low[event].sum(), 1 - high[~event].sum())
        gaps.append(above - below)
    return max(gaps)


def least_expectation(lower: np.ndarray, upper: np.ndarray, values: np.ndarray) -> float:
    """min_p sum_k values_k p_k over the set, as a linear program."""
    bounds = list(zip(lower, upper, strict=True))
    return float(linprog(values, A_eq=np.ones((1, lower.size)), b_eq=[1], bounds=bounds).fun)


def regrets_under_costs(lower: np.ndarray, upper: np.ndarray, costs: np.ndarray) -> dict[str, np.ndarray]:
    """For each rule and action a number that is at most zero exactly if the action remains, by linear programs."""
    lowest = np.array([least_expectation(lower, upper, row) for row in costs])
    highest = -np.array([least_expectation(lower, upper, -row) for row in costs])
    beaten = [max(least_expectation(lower, upper, a - b) for b in costs) for a in costs]
    nowhere_best = []
    for a in range(len(costs)):  # min t with E_p[K_a - K_b] <= t for all b
        rows = np.delete(costs[a] - costs, a, axis=0)
        result = linprog(
            np.append(np.zeros(lower.size), 1), A_ub=np.c_[rows, -np.ones(len(rows))], b_ub=np.zeros(len(rows)),
            A_eq=np.append(np.ones(lower.size), 0)[None], b_eq=[1], bounds=[*zip(lower, upper, strict=True), (None, None)],
        )  # fmt: skip
        nowhere_best.append(result.fun)
    return {
        "interval_dominance": lowest - highest.min(),
        "maximality": np.array(beaten),
        "e_admissibility": np.array(nowhere_best),
        "gamma_maximin": highest - highest.min(),
        "gamma_maximax": lowest - lowest.min(),
    }
